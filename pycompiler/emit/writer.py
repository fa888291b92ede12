"""Writes the lines of a program in the order of issue, and counts them for each node.

A `nop` is inserted where a hazard demands distance, and a `wait` where a line needs the result of
an MV. The text is made for given addresses. The program lists the lines that name a DRAM address,
so that :func:`.relocation.relocate` can move the whole program to another DRAM base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from emu2._core import Ready

from ..code.lines import Move
from ..machine import Target
from .addressed_lines import literals
from .clock import STALLS, Clock
from .hazards import Tracker
from .line_table import Run
from .ready import joined_line
from .relocation import Relocation
from .text import dram_operand, move_text, step_text


@dataclass(frozen=True)
class NodeCode:
    """Counts of the code of one node.

    ``dram_read`` and ``dram_written`` count long words over all groups. ``busy`` counts the steps
    that use each issue slot. ``wait_steps`` counts the `nop`s that are there only for an MV.
    """

    node: str
    steps: int
    dram_read: int
    dram_written: int
    busy: Mapping[str, int] = field(default_factory=dict)
    wait_steps: int = 0


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

    ``cycles`` are those of the cycle model. ``runs`` tell which nodes each line belongs to;
    ``transfers`` are the MVs in order of issue. Both name nodes by their number in ``nodes``.
    ``last`` are the lines of the last steps, newest first; at its end no MV runs. ``stalls`` are
    the cycles of stalls at waits, by reason.
    """

    lines: tuple[str, ...]
    relocations: tuple[Relocation, ...]
    nodes: tuple[NodeCode, ...]
    cycles: int
    runs: tuple[Run, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    last: Sequence[Ready | None] = field(default=(), compare=False)
    stalls: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """The program text."""
        return "".join(line + "\n" for line in self.lines)


@dataclass(frozen=True, eq=False)
class Behind:
    """What stands before a program: so many nodes, and the lines of the last steps."""

    nodes: int
    steps: Sequence[Ready | None]


#: Nothing stands before the program.
START = Behind(0, ())


@dataclass
class Writer:
    """Writes lines, each with the `nop` and the `wait` that it needs.

    With ``early_waits``, a line without a `wait` takes that of an MV that has ended: it costs
    nothing there, and no idle step is needed for it later.
    """

    target: Target
    tracker: Tracker
    clock: Clock
    early_waits: bool = False
    lines: list[str] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)
    wait_steps: int = 0
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
        self.wait_steps += 1
        self.lines.append(f"nop; wait {self.target.tag(tag)}")
        self._waited(tag)
        self.tracker.nops(1)

    def line(self, parts: Sequence[Ready]) -> None:
        """Write a line of all instructions of ``parts``, with the idle steps and waits it needs."""
        ready = joined_line(parts, self.target)
        line = ready.line
        tags = self.tracker.tags_before(ready) if ready.shared else []
        if isinstance(line, Move):
            self._move(ready, tags)
            return
        for tag in tags[:-1]:
            self.wait(tag)
        self.nops(self.tracker.issue(ready))
        text = "; ".join(step_text(one.line, one.addresses, self.target) for one in parts)
        if self.early_waits and not tags:
            tags = self.clock.over(self.tracker.step - 1)
        for tag in tags[-1:]:
            text += f"; wait {self.target.tag(tag)}"
            # The line itself is one step after the wait.
            self._waited(tag, 1)
        for literal in literals(line):
            self.relocations.append(Relocation(len(self.lines), literal.value or "", 0))
        self.lines.append(text)

    def _waited(self, tag: int, steps: int = 0) -> None:
        self.tracker.waited(tag)
        self.clock.wait(tag, self.tracker.step - steps)

    def _move(self, ready: Ready, tags: list[int]) -> None:
        move: Move = ready.line
        for tag in tags:
            self.wait(tag)
        tag = self.tracker.next_tag()
        if tag in self.tracker.moves:
            self.wait(tag)
        distance = self.tracker.distance(ready)
        self.nops(distance)
        self.wait_steps += distance
        self.tracker.nops(distance)
        self.tracker.issue_move(tag, ready)
        self.flight = self.clock.issue(tag, move, self.tracker.step)
        dram = dram_operand(move)
        if dram is not None and dram.value is not None and dram.entries is None:
            self.relocations.append(Relocation(len(self.lines), dram.value, dram.offset))
        self.lines.append(move_text(move, tag, ready.addresses, self.target))


@dataclass
class _Row:
    """The counts of a node while the program is written."""

    busy: Mapping[str, int]
    steps: int = 0
    read: int = 0
    written: int = 0
    wait_steps: int = 0


class Listing:
    """The program of some nodes while it is written: its text, its runs, the counts of each node.

    ``names`` are the nodes with their comments, ``busy`` the steps in which each uses a slot. A
    comment introduces a node with its number before its first line. A comment with numbers stands
    wherever lines of other nodes begin. The first node has number ``first`` in the text.
    """

    def __init__(
        self,
        names: Sequence[tuple[str, str]],
        busy: Sequence[Mapping[str, int]],
        writer: Writer,
        first: int,
    ):
        self._names, self._writer, self.target = names, writer, writer.target
        self._first = first
        self._rows = [_Row(own) for own in busy]
        self._runs: list[Run] = []
        self._named: set[int] = set()
        self._transfers: list[Transfer] = []
        self._steps = writer.tracker.step

    def put(self, parts: Sequence[Ready], owners: tuple[int, ...]) -> None:
        """Write a line of all instructions of ``parts``, which counts for the first owner."""
        self._belongs_to(owners)
        writer, move = self._writer, parts[0].line
        writer.line(parts)
        row = self._counted(owners[0])
        if isinstance(move, Move):
            what = f"{move.source.memory} to {move.destination.memory}"
            self._transfers.append(Transfer(owners[0], what, move.words, *writer.flight))
            dram = dram_operand(move)
            if dram is not None and dram.value is not None:
                # What an MV reads by addresses stands anywhere in its operand.
                each = move.words if dram.entries else dram.words
                words = each * self.target.groups
                if dram is move.source:
                    row.read += words
                else:
                    row.written += words

    def _belongs_to(self, owners: tuple[int, ...]) -> None:
        """Begin a run if the next line belongs to other nodes, and say so in the text."""
        if self._runs and self._runs[-1].nodes == owners:
            return
        writer = self._writer
        self._runs.append(Run(len(writer.lines), writer.cycles, owners))
        new = [node for node in owners if node not in self._named]
        self._introduce(new)
        if new != list(owners) or len(new) > 1:
            writer.lines.append(f"# {' + '.join(str(self._first + node) for node in owners)}")

    def _introduce(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            self._named.add(node)
            self._writer.lines.append(f"# {self._first + node}: {self._names[node][1]}")

    def _counted(self, owner: int) -> _Row:
        """Count the steps and waits since the last call for a node."""
        writer, row = self._writer, self._rows[owner]
        row.steps += writer.tracker.step - self._steps
        self._steps = writer.tracker.step
        row.wait_steps += writer.wait_steps
        writer.wait_steps = 0
        return row

    def finish(self) -> Code:
        """Wait for all MVs, and return the program."""
        writer, last = self._writer, len(self._rows) - 1
        if last >= 0 and writer.tracker.moves:
            self._belongs_to((last,))
        for tag in list(writer.tracker.moves):
            writer.wait(tag)
        if last >= 0:
            self._counted(last)
        self._introduce(node for node in range(len(self._rows)) if node not in self._named)
        nodes = (
            NodeCode(node, row.steps, row.read, row.written, dict(row.busy), row.wait_steps)
            for (node, _), row in zip(self._names, self._rows, strict=True)
        )
        return Code(
            tuple(writer.lines),
            tuple(writer.relocations),
            tuple(nodes),
            writer.cycles,
            tuple(self._runs),
            tuple(self._transfers),
            writer.tracker.last,
            writer.clock.stalls,
        )


def joined(codes: Sequence[Code]) -> Code:
    """Return one program of programs that follow each other, each with nodes of its own."""
    lines, relocations = list[str](), list[Relocation]()
    nodes, runs, transfers = list[NodeCode](), list[Run](), list[Transfer]()
    cycles = 0
    for code in codes:
        line, node = len(lines), len(nodes)
        lines += code.lines
        relocations += (replace(one, line=line + one.line) for one in code.relocations)
        runs += (
            Run(line + one.line, cycles + one.cycle, tuple(node + n for n in one.nodes))
            for one in code.runs
        )
        transfers += (
            replace(m, node=node + m.node, start=cycles + m.start, end=cycles + m.end)
            for m in code.transfers
        )
        nodes += code.nodes
        cycles += code.cycles
    last = codes[-1].last if codes else ()
    parts = tuple(lines), tuple(relocations), tuple(nodes), cycles, tuple(runs), tuple(transfers)
    stalls = {kind: sum(code.stalls.get(kind, 0) for code in codes) for kind in STALLS}
    return Code(*parts, last, stalls)
