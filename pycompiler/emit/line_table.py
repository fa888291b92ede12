"""Which node each line of a program belongs to: what every tool reads that names nodes of lines.

The code generator writes the table, and apps carry it. The text of a program names the same owners
in comments for a reader; no tool reads those.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True)
class Owner:
    """A node of a program. ``source`` is its line of the model, ``file:line``.

    ``origin`` names the node that this one is a time slice of.
    """

    node: str
    op: str
    source: str | None = None
    origin: str | None = None

    @property
    def row(self) -> str:
        """The name under which reports count the node: slices of a node count together."""
        return self.origin or self.node

    @property
    def note(self) -> str:
        """Operator, node and line of the model."""
        return f"{self.op} {self.node}{f', {self.source}' if self.source else ''}"


class Run(NamedTuple):
    """The lines from ``line`` (from 0) to before the next run. They begin in ``cycle``.

    They belong to all of ``nodes`` (numbers of nodes), and their cycles count for the first one.
    """

    line: int
    cycle: int
    nodes: tuple[int, ...]


class Span(NamedTuple):
    """Cycles ``start`` to ``stop`` of a program, which count for the node ``node``."""

    node: int
    start: int
    stop: int


def spans(runs: tuple[Run, ...], cycles: int) -> Iterator[Span]:
    """Yield which node has which cycles of a program of ``cycles`` cycles, in order."""
    node, start = -1, 0
    for run in runs:
        if run.nodes[0] != node:
            if node >= 0 and run.cycle > start:
                yield Span(node, start, run.cycle)
            node, start = run.nodes[0], run.cycle
    if node >= 0 and cycles > start:
        yield Span(node, start, cycles)


@dataclass(frozen=True)
class LineTable:
    """The nodes of a program, and its runs of lines in order. Lines before the first have none."""

    owners: tuple[Owner, ...] = ()
    runs: tuple[Run, ...] = ()

    @classmethod
    def of_numbers(cls, owners: tuple[Owner, ...], numbers: Sequence[int]) -> LineTable:
        """Return the table that :meth:`numbers` describes. ValueError if there is none."""
        runs, at, line, cycle = list[Run](), 0, 0, 0
        while at + 3 < len(numbers):
            more, cycles, count = numbers[at : at + 3]
            line, cycle = line + more, cycle + cycles
            nodes = tuple(numbers[at + 3 : at + 3 + count])
            if not 0 < len(nodes) == count or max(nodes) >= len(owners) or (runs and not more):
                break
            runs.append(Run(line, cycle, nodes))
            at += 3 + count
        if at != len(numbers):
            raise ValueError("its table of lines is damaged")
        return cls(owners, tuple(runs))

    def numbers(self) -> Iterator[int]:
        """Yield the runs as numbers, as ``gpfnapp.fbs`` has them."""
        line = cycle = 0
        for run in self.runs:
            yield from (run.line - line, run.cycle - cycle, len(run.nodes), *run.nodes)
            line, cycle = run.line, run.cycle

    @cached_property
    def _starts(self) -> list[int]:
        return [run.line for run in self.runs]

    def of(self, line: int) -> list[Owner]:
        """Return the owners of a line (from 0), first the one that its cycles count for."""
        number = bisect_right(self._starts, line) - 1
        return [self.owners[node] for node in self.runs[number].nodes] if number >= 0 else []

    def note(self, line: int) -> str:
        """Return what a tool shows beside a line: its first owner, and the names of the others."""
        return "" if not (owners := self.of(line)) else note_of(owners)

    def spans(self, cycles: int) -> Iterator[tuple[Owner, int, int]]:
        """Yield owners with first and last cycle, in a program of ``cycles`` cycles."""
        for node, start, stop in spans(self.runs, cycles):
            yield self.owners[node], start, stop

    def by_node(self, cycles: int) -> list[int]:
        """Return the cycles that count for each node, in a program of ``cycles`` cycles."""
        counts = [0] * len(self.owners)
        for node, start, stop in spans(self.runs, cycles):
            counts[node] += stop - start
        return counts

    def ranges(self, lines: int) -> dict[str, tuple[int, int]]:
        """Return for each node with lines the first one (from 0), and the one behind its last.

        ``lines`` are the lines of the program.
        """
        lines_of: dict[str, tuple[int, int]] = {}
        for run, end in zip(self.runs, [*self._starts[1:], lines], strict=False):
            for node in run.nodes:
                name = self.owners[node].node
                lines_of[name] = lines_of.get(name, (run.line, 0))[0], end
        return lines_of


def note_of(owners: list[Owner]) -> str:
    """Return the note of lines that belong to ``owners``."""
    first, *others = owners
    shared = f" (shared with {', '.join(one.node for one in others)})" if others else ""
    return f"{first.op} {first.node}{shared}{f', {first.source}' if first.source else ''}"
