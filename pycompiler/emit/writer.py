"""Writes the lines of a program in the order of issue, and counts them for each node.

A `nop` is inserted where a hazard demands distance, and a `wait` where a line needs the result of
an MV. The text is made for given addresses. The program lists the lines that name a DRAM address,
so that :func:`.relocation.relocate` can move the whole program to another DRAM base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..layers.fragment import Move
from ..machine import Target
from .addressed_lines import Ready, literals
from .clock import Clock
from .hazards import Accesses, Tracker
from .relocation import Relocation
from .text import Addresses, dram_operand, move_text


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
class Span:
    """Cycles ``start`` to ``stop`` of a program, in which it issues lines of ``node``."""

    node: int
    start: int
    stop: int


@dataclass(frozen=True)
class Transfer:
    """An MV of ``node``: it holds its memories from ``start`` on, and its data arrives at ``end``.

    ``what`` names both memories. ``words`` are long words, in each group if the MV names none.
    """

    node: int
    what: str
    words: int
    start: int
    end: int


@dataclass(frozen=True)
class Code:
    """A program: its lines, the lines that name DRAM addresses, and the counts of each node.

    ``cycles`` are those of the cycle model. ``spans`` tell which node has which of them, in order;
    ``transfers`` are the MVs in order of issue. Both name nodes by their number in ``nodes``.
    """

    lines: tuple[str, ...]
    relocations: tuple[Relocation, ...]
    nodes: tuple[NodeCode, ...]
    cycles: int
    spans: tuple[Span, ...] = ()
    transfers: tuple[Transfer, ...] = ()

    @property
    def text(self) -> str:
        """The program text."""
        return "".join(line + "\n" for line in self.lines)


@dataclass
class Writer:
    """Writes lines, each with the `nop` and the `wait` that it needs.

    With ``early_waits``, a line without a `wait` takes that of an MV that has ended: it costs
    nothing there, and no idle step is needed for it later.
    """

    target: Target
    addresses: Addresses
    tracker: Tracker
    clock: Clock
    early_waits: bool = False
    lines: list[str] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)
    wait_steps: int = 0
    wait_lines: list[int] = field(default_factory=list)
    #: When the last MV started and when it ends.
    flight: tuple[int, int] = (0, 0)

    @property
    def cycles(self) -> int:
        """The cycles of all lines so far."""
        return self.clock.now(self.tracker.step)

    def nops(self, count: int) -> None:
        """Write idle steps; the tracker knows of them already."""
        if count > 0:
            self.lines.append("nop" if count == 1 else f"nop/{count}")

    def wait(self, tag: int) -> None:
        """Write an idle step that waits for an MV."""
        self.wait_lines.append(len(self.lines))
        self.wait_steps += 1
        self.lines.append(f"nop; wait {self.target.tag(tag)}")
        self._waited(tag)
        self.tracker.nops(1)

    def line(self, ready: Ready) -> None:
        """Write a line, with the idle steps and the waits that it needs."""
        touched, line = ready.touched, ready.line
        tags = self.tracker.tags_before(touched) if ready.shared else []
        if isinstance(line, Move):
            self._move(line, touched, tags)
            return
        for tag in tags[:-1]:
            self.wait(tag)
        self.nops(self.tracker.issue(touched))
        text = ready.text
        if self.early_waits and not tags:
            tags = self.clock.over(self.tracker.step - 1)
        for tag in tags[-1:]:
            self.wait_lines.append(len(self.lines))
            text += f"; wait {self.target.tag(tag)}"
            # The line itself is one step after the wait.
            self._waited(tag, 1)
        for literal in literals(line):
            self.relocations.append(Relocation(len(self.lines), literal.value or "", 0))
        self.lines.append(text)

    def _waited(self, tag: int, steps: int = 0) -> None:
        self.tracker.waited(tag)
        self.clock.wait(tag, self.tracker.step - steps)

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
        self.flight = self.clock.issue(tag, move, self.tracker.step)
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

    def take_waits(self, writer: Writer) -> None:
        """Count the waits that were written since the last call."""
        self.wait_steps += writer.wait_steps
        self.wait_lines += writer.wait_lines
        writer.wait_steps, writer.wait_lines = 0, []


class Listing:
    """The program of some nodes while it is written: its text, and the counts of each node.

    ``names`` are the nodes with their comments, ``busy`` the steps in which each uses a slot.
    """

    def __init__(
        self,
        names: Sequence[tuple[str, str]],
        busy: Sequence[Mapping[str, int]],
        writer: Writer,
    ):
        self._names, self._writer = names, writer
        self._rows = [_Row(own) for own in busy]
        self._spans: list[list[int]] = []
        self._transfers: list[Transfer] = []

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._rows)

    def begin(self, node: int) -> None:
        """Write the comment before the first line of a node."""
        self._rows[node].first_line = len(self._writer.lines)
        self._rows[node].lines += 1
        self._writer.lines.append(f"# {self._names[node][1]}")

    def put(self, ready: Ready, owner: int) -> None:
        """Write a line after the `nop`s and the `wait` that it needs; all count for ``owner``."""
        writer, row = self._writer, self._rows[owner]
        first, step = len(writer.lines), writer.tracker.step
        writer.line(ready)
        self._spent(owner)
        row.lines += len(writer.lines) - first
        row.steps += writer.tracker.step - step
        if writer.wait_steps or writer.wait_lines:
            row.take_waits(writer)
        if isinstance(ready.line, Move):
            move = ready.line
            what = f"{move.source.memory} to {move.destination.memory}"
            self._transfers.append(Transfer(owner, what, move.words, *writer.flight))
            dram = dram_operand(ready.line)
            if dram is not None and dram.value is not None:
                # What an MV reads by addresses stands anywhere in its operand.
                each = ready.line.words if dram.entries else dram.words
                words = each * writer.target.groups
                if dram is ready.line.source:
                    row.read += words
                else:
                    row.written += words

    def _spent(self, owner: int) -> None:
        """Count for a node the cycles since the last line."""
        now, spans = self._writer.cycles, self._spans
        before = spans[-1][2] if spans else 0
        if now == before:
            return
        if spans and spans[-1][0] == owner:
            spans[-1][2] = now
        else:
            spans.append([owner, before, now])

    def finish(self) -> Code:
        """Wait for all MVs, and return the program."""
        writer = self._writer
        step = writer.tracker.step
        for tag in list(writer.tracker.moves):
            writer.wait(tag)
        if self._rows:
            self._spent(len(self._rows) - 1)
            self._rows[-1].steps += writer.tracker.step - step
            self._rows[-1].take_waits(writer)
        nodes = (
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
            for (node, _), row in zip(self._names, self._rows, strict=True)
        )
        return Code(
            tuple(writer.lines),
            tuple(writer.relocations),
            tuple(nodes),
            writer.cycles,
            tuple(Span(*span) for span in self._spans),
            tuple(self._transfers),
        )
