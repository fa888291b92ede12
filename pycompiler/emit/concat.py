"""Concatenate the fragments of a segment into one program.

A `nop` is inserted where a hazard demands distance, and a `wait` where a line needs the result of
an MV. The text is made for given addresses. The program lists the lines that name a DRAM address,
so that :func:`relocate` can move the whole program to another DRAM base.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..layers.fragment import Fragment, Move
from ..machine import Target
from .addressed_lines import Ready, Shelf, literals
from .early_downloads import Part, bring_forward
from .hazards import Accesses, Tracker
from .text import Addresses, dram_operand, literal_text, move_text


@dataclass(frozen=True)
class Relocation:
    """Line ``line`` (from 0) names the DRAM address ``value`` + ``offset``.

    A PE line has it as a literal, in blocks of an MV.
    """

    line: int
    value: str
    offset: int


@dataclass(frozen=True)
class NodeCode:
    """Counts of the code of one node.

    ``dram_read`` and ``dram_written`` count long words over all groups. ``busy`` counts the steps
    that use each issue slot. ``wait_steps`` counts the `nop`s that are there only for an MV, and
    ``wait_lines`` are the lines (from 0) that wait for one.
    """

    node: str
    first_line: int
    lines: int
    steps: int
    dram_read: int
    dram_written: int
    busy: Mapping[str, int] = field(default_factory=dict)
    wait_steps: int = 0
    wait_lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Code:
    """A program: its lines, the lines that name DRAM addresses, and the counts of each node."""

    lines: tuple[str, ...]
    relocations: tuple[Relocation, ...]
    nodes: tuple[NodeCode, ...]

    @property
    def text(self) -> str:
        """The program text."""
        return "".join(line + "\n" for line in self.lines)


@dataclass
class _Writer:
    target: Target
    addresses: Addresses
    tracker: Tracker
    lines: list[str] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)
    wait_steps: int = 0
    wait_lines: list[int] = field(default_factory=list)

    def nops(self, count: int) -> None:
        if count > 0:
            self.lines.append("nop" if count == 1 else f"nop/{count}")

    def wait(self, tag: int) -> None:
        self.wait_lines.append(len(self.lines))
        self.wait_steps += 1
        self.lines.append(f"nop; wait {self.target.tag(tag)}")
        self.tracker.nops(1)
        self.tracker.waited(tag)

    def line(self, ready: Ready) -> None:
        touched, line = ready.touched, ready.line
        tags = self.tracker.tags_before(touched) if ready.shared else []
        if isinstance(line, Move):
            self._move(line, touched, tags)
            return
        for tag in tags[:-1]:
            self.wait(tag)
        self.nops(self.tracker.issue(touched))
        text = ready.text
        for tag in tags[-1:]:
            self.wait_lines.append(len(self.lines))
            text += f"; wait {self.target.tag(tag)}"
            self.tracker.waited(tag)
        for literal in literals(line):
            self.relocations.append(Relocation(len(self.lines), literal.value or "", 0))
        self.lines.append(text)

    def _move(self, move: Move, touched: Accesses, tags: list[int]) -> None:
        for tag in tags:
            self.wait(tag)
        tag = self.tracker.next_tag()
        if tag in self.tracker.moves:
            self.wait(tag)
        distance = self.tracker.distance(touched)
        self.nops(distance)
        self.wait_steps += distance
        self.tracker.nops(distance)
        self.tracker.issue_move(tag, touched)
        dram = dram_operand(move)
        if dram is not None and dram.value is not None and dram.entries is None:
            self.relocations.append(Relocation(len(self.lines), dram.value, dram.offset))
        self.lines.append(move_text(move, tag, self.addresses, self.target))


@dataclass
class _Row:
    """The counts of a node while the program is written."""

    busy: Mapping[str, int]
    first_line: int = 0
    lines: int = 0
    steps: int = 0
    read: int = 0
    written: int = 0
    wait_steps: int = 0
    wait_lines: list[int] = field(default_factory=list)

    def take_waits(self, writer: _Writer) -> None:
        """Count the waits that were written since the last call."""
        self.wait_steps += writer.wait_steps
        self.wait_lines += writer.wait_lines
        writer.wait_steps, writer.wait_lines = 0, []


def concatenate(
    fragments: Sequence[tuple[str, str, Fragment]],
    addresses: Addresses,
    target: Target,
    downloads: Sequence[bool] = (),
) -> Code:
    """Make one program of ``(node, comment, fragment)``; at its end every MV has finished.

    A transfer from DRAM is issued as soon as its buffer in L2BM is free. So it runs while the nodes
    before its own still work. ``downloads`` says for each fragment whether it is a download, whose
    parts may stand before earlier nodes; without it all stays in order.
    """
    tracker = Tracker(target)
    writer = _Writer(target, addresses, tracker)
    shelf = Shelf(addresses, target)
    ready = [shelf.of(fragment) for _, _, fragment in fragments]
    rows = [_Row(lines.busy) for lines in ready]
    current = -1

    def begin(node: int) -> None:
        nonlocal current
        while current < node:
            current += 1
            rows[current].first_line = len(writer.lines)
            rows[current].lines = 1
            writer.lines.append(f"# {fragments[current][1]}")

    own = [lines.lines for lines in ready]
    parts = list(bring_forward(own, downloads or [False] * len(own), target))
    for at, owner, line in _hoisted(parts):
        begin(at)
        row, first, step = rows[owner], len(writer.lines), tracker.step
        writer.line(line)
        row.lines += len(writer.lines) - first
        row.steps += tracker.step - step
        if writer.wait_steps or writer.wait_lines:
            row.take_waits(writer)
        if isinstance(line.line, Move):
            dram = dram_operand(line.line)
            if dram is not None and dram.value is not None:
                # What an MV reads by addresses stands anywhere in its operand.
                words = (line.line.words if dram.entries else dram.words) * target.groups
                if dram is line.line.source:
                    row.read += words
                else:
                    row.written += words
    begin(len(fragments) - 1)
    step = tracker.step
    for tag in list(tracker.moves):
        writer.wait(tag)
    if rows:
        rows[-1].steps += tracker.step - step
        rows[-1].take_waits(writer)
    found = (
        NodeCode(
            node,
            row.first_line,
            row.lines,
            row.steps,
            row.read,
            row.written,
            dict(row.busy),
            row.wait_steps,
            tuple(row.wait_lines),
        )
        for (node, _, _), row in zip(fragments, rows, strict=True)
    )
    return Code(tuple(writer.lines), tuple(writer.relocations), tuple(found))


def _hoisted(parts: Sequence[Part]) -> Iterator[tuple[int, int, Ready]]:
    """Yield each line in the order of issue, with the node it is issued under and its own node.

    A transfer from DRAM moves up until right behind the last line that it may not pass. That is
    the line that wrote the data it reads, or the line that used its buffer.
    """
    # By part and line number: the transfers that are issued right behind this line.
    behind: dict[tuple[int, int], list[tuple[int, Ready]]] = {}
    moved: set[tuple[int, int]] = set()
    slots: list[tuple[int, int]] = []
    shared: list[Ready] = []
    for number, part in enumerate(parts):
        for index, ready in enumerate(part.lines):
            if not ready.shared:
                continue
            place = number, index
            line = ready.line
            if isinstance(line, Move) and line.source.memory == "dram":
                found = len(shared) - 1
                while found >= 0 and not shared[found].touched.conflicts(ready.touched):
                    found -= 1
                moved.add(place)
                place = slots[found] if found >= 0 else (-1, 0)
                behind.setdefault(place, []).append((part.owner, ready))
            shared.append(ready)
            slots.append(place)
    for owner, ready in behind.get((-1, 0), ()):
        yield 0, owner, ready
    for number, part in enumerate(parts):
        for index, ready in enumerate(part.lines):
            if not ready.shared:
                yield part.under, part.owner, ready
                continue
            place = number, index
            if place not in moved:
                yield part.under, part.owner, ready
            for owner, other in behind.get(place, ()):
                yield part.under, owner, other


@dataclass(frozen=True)
class Moved:
    """The DRAM words from ``start`` to before ``stop`` of a program lie at ``at`` instead."""

    start: int
    stop: int
    at: int


def relocate(
    text: str,
    relocations: Sequence[Relocation],
    delta: int,
    target: Target,
    moved: Sequence[Moved] = (),
) -> str:
    """Return the program with ``delta`` added to its DRAM addresses; ``moved`` lists exceptions."""
    if not delta and not moved:
        return text
    dram = f"${target.letter('dram')}"
    address = re.compile(re.escape(dram) + r"(\d+)")
    by_start = sorted(moved, key=lambda part: part.start)
    starts = [part.start for part in by_start]

    literal = re.compile(re.escape(literal_text(0)).replace("0" * 8, r"([0-9A-F]{8})"))
    block = target.mv_block

    def place(at: int) -> int:
        number = bisect_right(starts, at) - 1
        if number >= 0 and at < by_start[number].stop:
            return by_start[number].at + at - starts[number]
        return at + delta

    def operand(found: re.Match[str]) -> str:
        return f"{dram}{place(int(found.group(1)))}"

    def bits(found: re.Match[str]) -> str:
        return literal_text(place(int(found.group(1), 16) * block) // block)

    lines = text.split("\n")
    for relocation in relocations:
        line, moves = address.subn(operand, lines[relocation.line])
        lines[relocation.line] = line if moves else literal.sub(bits, line)
    return "\n".join(lines)
