"""From the bound of a model to the cycles of its program, in named steps that add up.

The program is placed again for machines that lack more and more rules. Then what is left is the
time of the busiest slot, and kinds of nodes are left out one after the other. Whatever is below the
bound counts as the bound. A machine with fewer rules can run what was placed for one with more. So
cycles never rise from one to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any

from emu2._core import CodeMachine

from ..emit.fragment_cache import Fragments
from ..emit.program import Code, Program
from ..emit.segments import MERGED, addresses_of, kind_of
from ..graph.graph import MNGraph, MNNode, Side
from ..machine import Target
from ..report.cycle_shares import kind_of as work_of
from .relaxed import LATENCY, PORTS, RATE, RESULTS, SCRATCH, machines, slower, without_guesses

#: What takes the rest down to the bound, in the order in which kinds of nodes are left out.
_KINDS = ("switches", "transfers", "elementwise")
LINES, SHAPE = "lines", "shape"
#: The steps from the bound to the program, with what each costs.
STEPS = {
    SHAPE: "products, beyond what the bound counts: their shape, padding and matrices",
    "elementwise": "elementwise operators and reductions in the busiest slot",
    "transfers": "downloads, uploads and copies there",
    "switches": "layout switches there",
    LINES: "lines beside which the busiest slot is free: others wait for them, or want their slot",
    PORTS: "lines that want the same port or shared unit",
    SCRATCH: "registers and memories of transfers that are in use",
    RESULTS: "results that may be read some steps later only (dependence chains)",
    RATE: "words that move between DRAM, L2BM and PDM while lines wait",
    LATENCY: "words on their way there while lines wait",
}

#: The cycles of each node.
_Rows = list[Fraction]


@dataclass(frozen=True)
class Gap:
    """The steps of a program: for each its cycles, of each of ``nodes``.

    The sum of all is ``cycles`` less ``bound``. ``rows`` are the cycles of each node. ``sure`` are
    the cycles of the program without what is a guess, ``slow`` those with twice the latency of MVs.
    """

    nodes: Sequence[MNNode]
    bound: int
    rows: _Rows
    steps: Mapping[str, _Rows]
    sure: int
    slow: int

    @property
    def cycles(self) -> int:
        """The cycles of the program."""
        return int(sum(self.rows))

    @property
    def totals(self) -> dict[str, int]:
        """The cycles of each step."""
        return {name: int(sum(rows)) for name, rows in self.steps.items()}

    def json(self) -> dict[str, Any]:
        """Return the figures of the whole program as plain values."""
        figures = {"bound": self.bound, "cycles": self.cycles, "steps": self.totals}
        return {**figures, "guesses": {"without": self.sure, "twice_the_latency": self.slow}}


def gap_of(graph: MNGraph, target: Target, emit: str, bound: int) -> Gap:
    """Return the steps from ``bound`` to the program of a graph with addresses."""
    placing = _Placing(graph, target, emit)
    whole = last = placing.cycles(None)
    levels = [(name, placing.cycles(machine)) for name, machine in machines(target)]
    steps: dict[str, _Rows] = {}
    for name, rows in (*levels, *placing.slots()):
        found = _floored(last, min(rows, last, key=sum), bound)
        steps[name] = [one - other for one, other in zip(last, found, strict=True)]
        last = found
    sure, slow = (
        int(sum(placing.cycles(one))) for one in (without_guesses(target), slower(target))
    )
    known = {name: steps[name] for name in STEPS}
    return Gap(placing.nodes, min(bound, int(sum(whole))), whole, known, sure, slow)


def _floored(last: _Rows, rows: _Rows, bound: int) -> _Rows:
    """Return rows that add up to no less than the bound, on the way from ``last`` to ``rows``."""
    above, below = sum(last), sum(rows)
    if below >= bound or above == below:
        return rows
    part = Fraction(max(above - bound, 0)) / (above - below)
    return [one + part * (other - one) for one, other in zip(last, rows, strict=True)]


class _Placing:
    """Places the nodes of a graph for several machines; their code is made once."""

    def __init__(self, graph: MNGraph, target: Target, emit: str):
        self._graph, self._target, self._merged = graph, target, emit == MERGED
        self._made = Fragments(target)
        groups = groupby(graph.nodes, lambda node: (node.segment, node.side))
        self._parts = [list(nodes) for (_, side), nodes in groups if side is Side.DEVICE]
        self.nodes = [node for part in self._parts for node in part]
        self._busy: list[Mapping[str, int]] = []

    def cycles(self, machine: CodeMachine | None) -> _Rows:
        """Return the cycles of each node; None stands for the machine itself."""
        codes = [self._program(part, machine).finish() for part in self._parts]
        self._busy = [row.busy for code in codes for row in code.nodes]
        return [cycles for code in codes for cycles in _cycles(code)]

    def _program(self, nodes: Sequence[MNNode], machine: CodeMachine | None) -> Program:
        addresses, merged = addresses_of(self._graph), self._merged
        program = Program(addresses, self._target, merged=merged, machine=machine)
        for node in nodes:
            program.add(node.name, "", self._made.of(node, self._graph), kind_of(node))
        return program

    def slots(self) -> Iterator[tuple[str, _Rows]]:
        """Yield what the busiest slot of the last machine takes: with fewer and fewer kinds."""
        gone: set[str] = set()
        for name, kind in zip((LINES, *_KINDS), (*_KINDS, ""), strict=True):
            yield name, self._busiest(gone)
            gone.add(kind)
        yield SHAPE, [Fraction()] * len(self.nodes)

    def _busiest(self, gone: set[str]) -> _Rows:
        kept = [work_of(node.op) not in gone for node in self.nodes]
        total: Counter[str] = Counter()
        for busy, counts in zip(self._busy, kept, strict=True):
            total.update(busy if counts else {})
        slot, each = max(total, key=total.__getitem__, default=""), self._target.cycles
        pairs = zip(self._busy, kept, strict=True)
        return [Fraction(each * busy.get(slot, 0) * counts) for busy, counts in pairs]


def _cycles(code: Code) -> _Rows:
    """Return the cycles of each node; a line counts for the node that was placed there first."""
    found = [Fraction()] * len(code.nodes)
    ends = [*(run.cycle for run in code.runs), code.cycles]
    for run, (begin, end) in zip(code.runs, pairwise(ends), strict=True):
        found[run.nodes[0]] += end - begin
    return found
