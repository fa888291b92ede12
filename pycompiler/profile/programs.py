"""The program of a compile: lines, slots and cycles by node, and the time line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import emu2
from emu2.profiling import Slots
from emu2.trace_events import Event, TraceReader

from ..app.make_app import programs_of
from ..app.model import App, DeviceSegment
from ..machine import Target

MOST_EVENTS = 200_000
#: What an MV does while the PEs wait for it.
WAIT_KINDS = ("queue", "transfer", "latency")


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
    """A row of the time line; ``place`` gives the order: the PEs, DRAM, other memories, MVs."""

    place: tuple[int, int]
    name: str


@dataclass
class Program:
    """Lines by node (``nodes``), and events of the time line.

    An event has the number of its track, its start and its length in cycles, a text, the name of
    its node, and the line (from 1) where it begins. The text of a wait is its reason. ``rows`` has
    the name under which the report counts a node.
    """

    nodes: dict[str, list[Line]] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    tracks: list[Track] = field(default_factory=list)
    events: list[tuple[int, int, int, str, str, int]] = field(default_factory=list)
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


#: Slots whose rows come first, in this order.
_SLOTS = ("alu", "mau", "mwrite", "mread", "l1bm", "l2bm", "mv")
_STEPS, _WAITS = "PE: steps", "PE: waits"
#: The first part of the place of rows of MVs: the last rows, because there may be many.
MVS = 4
#: Steps without an instruction: a result is not ready, and no MV is waited for.
_EMPTY = "empty steps"
_MEMORY = re.compile(r"(?P<kind>[a-z0-9]+?)(?P<group>\d+)(?:\.\d+)?")


class _Reader(TraceReader):
    """Puts the events of a segment into a ``Program``."""

    def __init__(self, found: Program, lines: Mapping[int, Line]):
        super().__init__()
        self._found, self._lines = found, lines
        self._numbers = {track: k for k, track in enumerate(found.tracks)}
        #: the last event of each track
        self._last: dict[int, int] = {}
        #: by tag, when the MV was issued, began, had moved its words, and ended
        self._flights: dict[str, tuple[int, int, int, int]] = {}

    def take(self, process: str, track: str, event: Event) -> None:
        if event["ph"] != "X":
            return
        own = self._lines.get(event["args"]["line"])
        start, length, name = event["ts"], event["dur"], event["name"]
        if process == "PE" and own is not None:
            self._pe(track, start, length, name, own)
        elif process == "MV":
            facts = event["args"]
            moved = start + facts["holds memories for"]
            self._flights[facts["tag"]] = (facts["issued"], start, moved, start + length)
            self._add(Track((MVS, event["tid"]), track), start, length, name, own)
        elif (port := _MEMORY.fullmatch(track)) is not None:
            # The memories of a group that MVs reach beside DRAM are one row.
            kind, order = ("DRAM", 2) if port["kind"] == "dram" else ("MV ports", 3)
            row = Track((order, int(port["group"])), f"{kind}, group {port['group']}")
            self._add(row, start, length, name, own)

    def _pe(self, track: str, start: int, length: int, name: str, own: Line) -> None:
        if track == "waits":
            own.waits += length
            for kind, begin, end in self._reasons(name, start, start + length):
                self._add(Track((1, 2), _WAITS), begin, end - begin, kind, own)
            return
        if not own.cycles:
            own.start = start + self._found.cycles
        own.cycles += length
        self._add(Track((1, 1), _STEPS), start, length, own.nodes[0], own)
        for slot in own.slots:
            order = _SLOTS.index(slot) if slot in _SLOTS else len(_SLOTS)
            self._add(Track((1, 4 + order), slot.upper()), start, length, own.nodes[0], own)
        if not own.slots:
            self._add(Track((1, 3), _EMPTY), start, length, "dependence", own)

    def _reasons(self, name: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the parts of a wait: what the MV does meanwhile."""
        flight = self._flights.get(name.rpartition(" i")[2], (start, start, start, end))
        for kind, (begin, stop) in zip(WAIT_KINDS, pairwise(flight), strict=True):
            begin, stop = max(begin, start), min(stop, end)
            if begin < stop:
                yield kind, begin, stop

    def _add(self, track: Track, start: int, length: int, text: str, own: Line | None) -> None:
        found = self._found
        start += found.cycles
        node, line = ("", 0) if own is None else (own.nodes[0], own.number)
        number = self._numbers.setdefault(track, len(found.tracks))
        if number == len(found.tracks):
            found.tracks.append(track)
        before = self._last.get(number)
        if before is not None:
            last = found.events[before]
            if (last[1], *last[3:]) == (start, text, node, line):
                return  # memories of one row that an MV holds together
            joined = track.place[0] == 1 and track.name != _WAITS
            if joined and (last[3], last[4]) == (text, node) and last[1] + last[2] == start:
                found.events[before] = (*last[:2], last[2] + length, *last[3:])
                return
        if len(found.events) < MOST_EVENTS:
            self._last[number] = len(found.events)
            found.events.append((number, start, length, text, node, line))
        else:
            self._last.pop(number, None)
