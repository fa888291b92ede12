"""A pipeline over many rows: the outcome of modulo scheduling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...code.lines import Step
from ...code.nest import Nest, Repeat
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

    @cached_property
    def _phases(self) -> dict[int, list[Issue]]:
        found: dict[int, list[Issue]] = {}
        for issue in self.issues:
            found.setdefault(issue.step % self.interval, []).append(issue)
        return found

    def timeline(self, rows: int, line: Callable[[Sequence[tuple[Issue, int]]], Step]) -> Nest:
        """Return the nest of the steps in which something is issued when ``rows`` go through.

        ``line`` makes a step of its instructions and the number of the row of each.
        """

        def steps(start: int, end: int) -> Iterator[Step]:
            for step in range(start, end):
                found = [
                    (issue, (step - issue.step) // self.interval)
                    for issue in self._phases.get(step % self.interval, ())
                    if 0 <= (step - issue.step) // self.interval < rows
                ]
                if found:
                    yield line(found)

        def turn(number: int) -> Nest:
            return steps((filled + number) * self.interval, (filled + number + 1) * self.interval)

        # The pipeline is filled when the first row's last instruction is issued.
        filled = min(rows, -(-self.length // self.interval))
        yield from steps(0, filled * self.interval)
        yield Repeat(rows - filled, turn)
        yield from steps(rows * self.interval, self.length + (rows - 1) * self.interval)
