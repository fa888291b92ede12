"""The program of a compile: lines, slots and cycles by node, and the time line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import emu2
from emu2.profiling import Slots
from emu2.trace_events import Event, TraceReader

from ..app.make_app import programs_of
from ..app.model import App, DeviceSegment
from ..machine import Target

MOST_EVENTS = 200_000


@dataclass
class Line:
    """A line of the program. ``cycles`` are those of its steps, ``waits`` those that it waits.

    It is in the code of all of ``nodes``; its cycles count for the first one.
    """

    number: int
    text: str
    slots: list[str]
    nodes: list[str]
    start: int = 0
    cycles: int = 0
    waits: int = 0


@dataclass(frozen=True, order=True)
class Track:
    """A row of the time line; ``place`` gives the order: the PEs, MVs, memories."""

    place: tuple[int, int]
    name: str


@dataclass
class Program:
    """Lines by node (``nodes``), and events of the time line.

    An event has the number of its track, its start and its length in cycles, a text, and the name
    of its node. ``rows`` has the name under which the report counts a node.
    """

    nodes: dict[str, list[Line]] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    tracks: list[Track] = field(default_factory=list)
    events: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    cycles: int = 0
    problems: list[str] = field(default_factory=list)


def read_program(app: App, target: Target) -> Program:
    """Return the program of an app, with the lines of ``model.vsm``. P0504.

    Each segment is assembled alone: between two segments the host works, and counts no cycles.
    """
    found, slots = Program(), Slots(target.spec)
    for before, segment in programs_of(app, "model.app"):
        found.rows.update((owner.node, owner.row) for owner in segment.lines.owners)
        lines: dict[int, Line] = {}
        for number, text, nodes in owned_lines(segment):
            own = Line(before + number, text, slots.of(text), nodes)
            for node in nodes:
                found.nodes.setdefault(node, []).append(own)
            lines[number] = own
        try:
            program = emu2.assemble(segment.code, target.spec, filename="model.app")
        except emu2.Emu2Error as problem:
            found.problems.append(f"model.app: {str(problem).splitlines()[0]}")
            continue
        reader = _Reader(found, lines)
        program.trace(reader)
        reader.close()
        found.cycles += program.report()["cycles"]
    return found


def owned_lines(segment: DeviceSegment) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the lines of a segment that are no comments: number (from 1), text, nodes."""
    table = segment.lines
    for number, line in enumerate(segment.code.split("\n")):
        if line and not line.startswith("#"):
            yield number + 1, line, [owner.node for owner in table.of(number)]


def pieces(segment: DeviceSegment) -> Iterator[tuple[str, str]]:
    """Yield runs of lines of a segment that count for one node, with its name."""
    for node, own in groupby(owned_lines(segment), lambda line: line[2][0]):
        yield node, "\n".join(text for _, text, _ in own)


class _Reader(TraceReader):
    """Puts the events of a segment into a ``Program``."""

    def __init__(self, found: Program, lines: Mapping[int, Line]):
        super().__init__()
        self._found, self._lines = found, lines
        self._numbers = {track: k for k, track in enumerate(found.tracks)}
        #: the event of the steps of the node that runs
        self._last: int | None = None

    def take(self, process: str, track: str, event: Event) -> None:
        if event["ph"] != "X":
            return
        place = event["pid"], event["tid"]
        own = self._lines.get(event["args"]["line"])
        node = "" if own is None else own.nodes[0]
        start, length = event["ts"], event["dur"]
        if process == "PE" and own is not None:
            if track == "waits":
                own.waits += length
            else:
                if not own.cycles:
                    own.start = start + self._found.cycles
                own.cycles += length
        name = f"{process}: {track}" if process == "PE" else track
        self._add(Track(place, name), start + self._found.cycles, length, event["name"], node)

    def _add(self, track: Track, start: int, length: int, text: str, node: str) -> None:
        found = self._found
        number = self._numbers.setdefault(track, len(found.tracks))
        if number == len(found.tracks):
            found.tracks.append(track)
        if track.name == "PE: steps":
            text = node
            if self._last is not None:
                last = found.events[self._last]
                if last[4] == node and last[1] + last[2] == start:
                    found.events[self._last] = (last[0], last[1], last[2] + length, text, node)
                    return
            self._last = len(found.events)
        if len(found.events) < MOST_EVENTS:
            found.events.append((number, start, length, text, node))
        else:
            self._last = None
