"""A pipeline over many rows: the outcome of modulo scheduling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .program import Constant, Operation


@dataclass(frozen=True)
class RotatingRegisters:
    """``copies`` registers of one row each from ``base`` on; a result's rows use them in turn."""

    base: int
    copies: int


@dataclass(frozen=True)
class Issue:
    """One instruction: its step in the flat schedule, the bank of each source, its destinations.

    A source's bank is a memory, or a unit whose forwarding path it is read from.
    """

    step: int
    index: int
    operation: Operation
    banks: tuple[str, ...]
    stores: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A pipeline. Instruction ``final`` makes the result.

    ``places`` are long words of register files and entries of mask registers, ``constants`` long
    words. ``inputs`` has the first long word of each input in registers, by bank and number.
    ``free`` is the first unused long word of each register file.
    """

    interval: int
    issues: tuple[Issue, ...]
    final: int
    places: Mapping[tuple[str, int], RotatingRegisters]
    constants: Mapping[tuple[str, Constant], int]
    inputs: Mapping[tuple[str, int], int]
    free: Mapping[str, int]
    cycles: int

    @property
    def length(self) -> int:
        """Steps from a row's first instruction to its last."""
        return self.issues[-1].step + 1

    def steps(self, rows: int) -> int:
        """Count the steps in which something is issued when ``rows`` go through."""
        issued = {issue.step for issue in self.issues}
        if rows <= self.length // self.interval + 1:
            return len({s + row * self.interval for s in issued for row in range(rows)})
        # Further rows do not change which steps at the start and the end are unused.
        filled = self.length // self.interval + 1
        return self.steps(filled) + (rows - filled) * len({s % self.interval for s in issued})

    def timeline(self, rows: int) -> Iterator[list[tuple[Issue, int]]]:
        """Yield the instructions that each step issues, with the number of the row of each."""
        by_phase: dict[int, list[Issue]] = {}
        for issue in self.issues:
            by_phase.setdefault(issue.step % self.interval, []).append(issue)
        for step in range(self.length + (rows - 1) * self.interval):
            line = []
            for issue in by_phase.get(step % self.interval, ()):
                row = (step - issue.step) // self.interval
                if 0 <= row < rows:
                    line.append((issue, row))
            if line:
                yield line
