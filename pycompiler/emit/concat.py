"""Fragments of a segment, one after the other, as one program.

Inserts `nop` where a hazard demands distance and `wait` where a line needs the result of an MV.
The text is made for given addresses; places where it names a DRAM address are listed, so that
:func:`relocate` can move the whole program to another DRAM base.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..layers.fragment import Fragment, Instruction, Line, Move, Step
from ..machine import Target
from .hazards import Accesses, Tracker, accesses
from .schedule import schedule
from .text import Addresses, dram_operand, instruction_text, move_text

_NOTHING = Accesses((), ())


@dataclass(frozen=True)
class Relocation:
    """Line ``line`` (from 0) names the DRAM address ``value`` + ``offset``."""

    line: int
    value: str
    offset: int


@dataclass(frozen=True)
class NodeCode:
    """What a node's code came to.

    ``dram`` counts long words over all groups, ``busy`` the steps in which an issue slot is used.
    """

    node: str
    first_line: int
    lines: int
    steps: int
    dram_read: int
    dram_written: int
    busy: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """A program: its lines, where DRAM addresses stand, and a row per node."""

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
    busy: Counter[str] = field(default_factory=Counter)
    #: by identity; the instruction is kept so that no other takes its place
    texts: dict[int, tuple[Instruction, str]] = field(default_factory=dict)

    def nops(self, count: int) -> None:
        if count > 0:
            self.lines.append("nop" if count == 1 else f"nop/{count}")
            for _ in range(count):
                self.tracker.issue_step(None, _NOTHING)

    def wait(self, tag: int) -> None:
        self.lines.append(f"nop; wait i{tag:02x}")
        self.tracker.issue_step(None, _NOTHING)
        self.tracker.waited(tag)

    def line(self, line: Line, touched: Accesses) -> None:
        tags = self.tracker.tags_before(touched)
        if isinstance(line, Move):
            self._move(line, touched, tags)
        else:
            self._step(line, touched, tags)

    def _step(self, step: Step, touched: Accesses, tags: list[int]) -> None:
        for tag in tags[:-1]:
            self.wait(tag)
        self.nops(self.tracker.distance(touched))
        self.busy.update(instruction.slot for instruction in step.instructions)
        texts = [self._text(i) for i in step.instructions]
        for tag in tags[-1:]:
            texts.append(f"wait i{tag:02x}")
            self.tracker.waited(tag)
        self.lines.append("; ".join(texts))
        self.tracker.issue_step(step, touched)

    def _text(self, instruction: Instruction) -> str:
        # Some instructions stand on many lines.
        found = self.texts.get(id(instruction))
        if found is None:
            text = instruction_text(instruction, self.addresses, self.target)
            found = self.texts[id(instruction)] = instruction, text
        return found[1]

    def _move(self, move: Move, touched: Accesses, tags: list[int]) -> None:
        for tag in tags:
            self.wait(tag)
        tag = self.tracker.next_tag()
        if tag in self.tracker.moves:
            self.wait(tag)
        self.nops(self.tracker.distance(touched))
        self.tracker.issue_move(tag, touched)
        dram = dram_operand(move)
        if dram is not None and dram.value is not None:
            self.relocations.append(Relocation(len(self.lines), dram.value, dram.offset))
        self.lines.append(move_text(move, tag, self.addresses, self.target))


@dataclass
class _Row:
    """What is counted for a node."""

    first_line: int = 0
    lines: int = 0
    steps: int = 0
    read: int = 0
    written: int = 0
    busy: Counter[str] = field(default_factory=Counter)


def concatenate(
    fragments: Sequence[tuple[str, str, Fragment]], addresses: Addresses, target: Target
) -> Code:
    """One program of ``(node, comment, fragment)``; at its end every MV has finished.

    What is read from DRAM is asked for as early as its buffer in L2BM is free, so that it is on
    its way while the nodes before work.
    """
    writer = _Writer(target, addresses, Tracker(target))
    rows = [_Row() for _ in fragments]
    current = -1

    def begin(node: int) -> None:
        nonlocal current
        while current < node:
            current += 1
            rows[current].first_line = len(writer.lines)
            rows[current].lines = 1
            writer.lines.append(f"# {fragments[current][1]}")

    for at, owner, line, touched in _hoisted(fragments, addresses, target):
        begin(at)
        row, first, step = rows[owner], len(writer.lines), writer.tracker.step
        writer.busy = row.busy
        writer.line(line, touched)
        row.lines += len(writer.lines) - first
        row.steps += writer.tracker.step - step
        dram = dram_operand(line) if isinstance(line, Move) else None
        if isinstance(line, Move) and dram is not None and dram.value is not None:
            words = line.words * target.groups
            if dram is line.source:
                row.read += words
            else:
                row.written += words
    begin(len(fragments) - 1)
    step = writer.tracker.step
    for tag in list(writer.tracker.moves):
        writer.wait(tag)
    if rows:
        rows[-1].steps += writer.tracker.step - step
    found = (
        NodeCode(node, row.first_line, row.lines, row.steps, row.read, row.written, dict(row.busy))
        for (node, _, _), row in zip(fragments, rows, strict=True)
    )
    return Code(tuple(writer.lines), tuple(writer.relocations), tuple(found))


def _packed(fragment: Fragment, addresses: Addresses, target: Target) -> Sequence[Line]:
    return fragment.lines if fragment.packed else schedule(fragment.lines, addresses, target)


#: Memories that MVs use.
_SHARED = frozenset({"dram", "pdm", "l2bm"})


def _hoisted(
    fragments: Sequence[tuple[str, str, Fragment]], addresses: Addresses, target: Target
) -> Iterator[tuple[int, int, Line, Accesses]]:
    """Yield the node under which a line is issued, its own, the line and its accesses, in order.

    A transfer from DRAM goes up to behind the last line that it may not pass: the one that made
    what it reads, or that used its buffer.
    """
    lines = [
        (owner, line, accesses(line, addresses))
        for owner, (_, _, fragment) in enumerate(fragments)
        for line in _packed(fragment, addresses, target)
    ]
    shared = [
        index
        for index, (_, _, touched) in enumerate(lines)
        if any(a.memory in _SHARED for a in (*touched.reads, *touched.writes))
    ]
    behind: dict[int, list[int]] = {}
    slot = list(range(len(lines)))
    for place, index in enumerate(shared):
        _, line, touched = lines[index]
        if not isinstance(line, Move) or line.source.memory != "dram":
            continue
        found = next((i for i in reversed(shared[:place]) if lines[i][2].conflicts(touched)), -1)
        slot[index] = slot[found] if found >= 0 else -1
        behind.setdefault(slot[index], []).append(index)
    for index in range(-1, len(lines)):
        here = lines[index][0] if index >= 0 else 0
        if index >= 0 and slot[index] == index:
            yield here, *lines[index]
        for moved in behind.get(index, ()):
            yield here, *lines[moved]


@dataclass(frozen=True)
class Moved:
    """The DRAM words from ``start`` to ``stop`` of a program lie at ``at`` instead."""

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
    """Return the program with its DRAM at ``delta``, apart from what ``moved`` puts elsewhere."""
    if not delta and not moved:
        return text
    dram = f"${target.letter('dram')}"
    address = re.compile(re.escape(dram) + r"(\d+)")
    by_start = sorted(moved, key=lambda part: part.start)
    starts = [part.start for part in by_start]

    def place(found: re.Match[str]) -> str:
        at = int(found.group(1))
        number = bisect_right(starts, at) - 1
        if number >= 0 and at < by_start[number].stop:
            return f"{dram}{by_start[number].at + at - starts[number]}"
        return f"{dram}{at + delta}"

    lines = text.split("\n")
    for relocation in relocations:
        lines[relocation.line] = address.sub(place, lines[relocation.line])
    return "\n".join(lines)
