"""Programs: the lines of nodes in the order of issue, with the counts of each node.

The crate `placing` gives each line its step and its words of registers and transfer memories, adds
the `nop` that a hazard demands and the `wait` for an MV, and writes the text. See
docs/compiler/merging.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from emu2._core import CodeLines, CodeMachine, CodeProgram

from ..code.lines import Fragment, Line
from ..machine import Target
from .line_table import Run
from .ports import machine_of
from .relocation import Relocation
from .short_moves import short_moves

Addresses = Mapping[str, int]

#: At most how many lines of nodes a part has that is made by itself, unless it has one node. No
#: download runs ahead of its part, so parts of half as many lines may take a few percent more
#: cycles. With this length, BERT-base takes 0.5 % more than as one part, and GPT-2 small 0.9 %.
WINDOW = 1 << 15

#: Why a `wait` stalls: the MV waits for a port, its words move, or they are on their way.
STALLS = ("queue", "transfer", "latency")


class Kind(Enum):
    """What merging makes of the lines of a node."""

    #: a download: it gets other addresses, and its lines are placed one by one
    DOWNLOAD = "download"
    #: another transfer: its lines are placed one by one
    TRANSFER = "transfer"
    OTHER = "other"
    #: as the last, but other nodes read what it leaves in registers and in memories of transfers
    FIXED = "fixed"


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
    ``stalls`` are the cycles of stalls at waits, by reason. Nodes share lines in so many
    ``merged`` parts.
    """

    lines: tuple[str, ...]
    relocations: tuple[Relocation, ...]
    nodes: tuple[NodeCode, ...]
    cycles: int
    runs: tuple[Run, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    stalls: Mapping[str, int] = field(default_factory=dict, compare=False)
    merged: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """The program text."""
        return "".join(line + "\n" for line in self.lines)


class Program:
    """Makes the program of nodes that come one after the other; if ``merged``, they share lines.

    At its end every MV has finished. Without merging, a transfer from DRAM is issued as soon as its
    buffer in L2BM is free, so it runs while earlier nodes still compute. A part in which lines that
    belong together cannot be kept together is not merged. A part has ``window`` lines of nodes.
    ``machine`` is one with other rules than ``target`` has.
    """

    def __init__(
        self,
        addresses: Addresses,
        target: Target,
        *,
        merged: bool,
        window: int | None = None,
        machine: CodeMachine | None = None,
    ):
        self._addresses, self._target, self._merged = addresses, target, merged
        self._machine = machine or machine_of(target)
        self._program = CodeProgram(self._machine, merged, window or WINDOW)
        self._nodes: list[str] = []
        # Keys are identities. The lines are kept so that no other ones get the same.
        self._lines: dict[int, tuple[Sequence[Line], CodeLines]] = {}

    def add(self, name: str, comment: str, fragment: Fragment, kind: Kind = Kind.OTHER) -> None:
        """Add a node. ``comment`` stands before its first line."""
        known = self._lines.get(id(fragment.lines))
        if known is None:
            short = short_moves(fragment.lines, self._target) if self._merged else fragment.lines
            code = CodeLines(self._machine, fragment.lines, short)
            known = self._lines[id(fragment.lines)] = fragment.lines, code
        self._nodes.append(name)
        packed, loose, names = fragment.packed, fragment.loose, dict(fragment.names)
        self._program.add(comment, known[1], kind.value, packed, loose, names, self._addresses)

    def unlimited(self) -> list[tuple[int, int, list[tuple[str, int]]]] | None:
        """Return when each line and MV of the last part begins and ends at the earliest, in cycles.

        That is as if every slot, port and memory were free. With them come those that it holds, and
        for how many cycles. None if lines that belong together cannot be kept together.
        """
        return self._program.unlimited()

    def finish(self) -> Code:
        """Return the program of all nodes."""
        lines, relocations, rows, cycles, runs, moves, stalls, merged = self._program.finish()
        return Code(
            tuple(lines),
            tuple(Relocation(*one) for one in relocations),
            tuple(NodeCode(node, *row) for node, row in zip(self._nodes, rows, strict=True)),
            cycles,
            tuple(Run(line, cycle, tuple(nodes)) for line, cycle, nodes in runs),
            tuple(
                Transfer(node, f"{source} to {goal}", words, start, end)
                for node, source, goal, words, start, end in moves
            ),
            dict(zip(STALLS, stalls, strict=True)),
            merged,
        )


def concatenate(
    fragments: Sequence[tuple[str, str, Fragment]], addresses: Addresses, target: Target
) -> Code:
    """Make one program of ``(node, comment, fragment)``, one after the other."""
    program = Program(addresses, target, merged=False)
    for name, comment, fragment in fragments:
        program.add(name, comment, fragment)
    return program.finish()
