"""The program of a compile: lines, slots and cycles by node, and the time line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import emu2
from emu2.profiling import Slots
from emu2.trace_events import Event, TraceReader

from ..machine import Target

MOST_EVENTS = 200_000
_SEGMENT = "# segment "
_NODE = re.compile(r"# (\S+) (.+?): \((?=.*\) -> \()")


@dataclass
class Line:
    """A line of the program. ``cycles`` are those of its steps, ``waits`` those that it waits."""

    number: int
    text: str
    slots: list[str]
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
    of its node.
    """

    nodes: dict[str, list[Line]] = field(default_factory=dict)
    tracks: list[Track] = field(default_factory=list)
    events: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    cycles: int = 0
    problems: list[str] = field(default_factory=list)


def read_program(code: str, target: Target) -> Program:
    """Return the program in the text of ``model.vsm``.

    Each segment is assembled alone: between two segments the host works, and counts no cycles.
    """
    found, slots = Program(), Slots(target.spec)
    for first, text in segments(code):
        lines: dict[int, tuple[str, Line]] = {}
        node = ""
        for number, line in enumerate(text.split("\n"), first):
            begun = node_of(line)
            if begun is not None:
                node = begun
            elif line and not line.startswith("#"):
                own = Line(number, line, slots.of(line))
                found.nodes.setdefault(node, []).append(own)
                lines[number] = (node, own)
        try:
            program = emu2.assemble(text, target.spec, filename="model.vsm")
        except emu2.Emu2Error as problem:
            found.problems.append(f"model.vsm: {str(problem).splitlines()[0]}")
            continue
        reader = _Reader(found, lines, first - 1)
        program.trace(reader)
        reader.close()
        found.cycles += program.report()["cycles"]
    return found


def segments(code: str) -> Iterator[tuple[int, str]]:
    """Yield each segment with the number of its first line, from 1."""
    lines = code.split("\n")
    starts = [k for k, line in enumerate(lines) if line.startswith(_SEGMENT)] or [0]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield start + 1, "\n".join(lines[start:stop])


def node_of(line: str) -> str | None:
    """Return the name of the node that a comment of the program announces; None for other lines."""
    comment = _NODE.match(line)
    if comment is None:
        return None
    try:
        return str(json.loads(f'"{comment[2]}"'))
    except ValueError:
        return comment[2]


def read_pieces(code: str) -> Iterator[tuple[str, str]]:
    """Yield runs of consecutive lines of ``model.vsm`` that belong to one node, with its name."""
    node, lines = "", list[str]()
    for line in code.split("\n"):
        begun = node_of(line)
        if begun is not None and begun != node:
            if lines:
                yield node, "\n".join(lines)
            node, lines = begun, []
        elif line and not line.startswith("#"):
            lines.append(line)
    if lines:
        yield node, "\n".join(lines)


class _Reader(TraceReader):
    """Puts the events of a segment into a ``Program``."""

    def __init__(self, found: Program, lines: Mapping[int, tuple[str, Line]], before: int):
        super().__init__()
        self._found, self._lines, self._before = found, lines, before
        self._numbers = {track: k for k, track in enumerate(found.tracks)}
        #: the event of the steps of the node that runs
        self._last: int | None = None

    def take(self, process: str, track: str, event: Event) -> None:
        if event["ph"] != "X":
            return
        place = event["pid"], event["tid"]
        node, own = self._lines.get(event["args"]["line"] + self._before, ("", None))
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
