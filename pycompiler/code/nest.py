"""Loop nests of lines, and two walks over them: one makes all lines, one counts what they take.

A nest is written once for a node's code. It makes its lines as it is walked, so each walk needs a
new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..cost.moves import move_cost
from ..machine import Target
from .lines import Line, Move


@dataclass(frozen=True)
class Repeat:
    """``body(i)`` is the nest of turn i of a loop; the turns differ only in their operands."""

    times: int
    body: Callable[[int], Nest]


Nest = Iterable[Line | Repeat]


def expand(nest: Nest) -> Iterator[Line]:
    """Yield all lines in order."""
    for node in nest:
        if isinstance(node, Repeat):
            for turn in range(node.times):
                yield from expand(node.body(turn))
        else:
            yield node


@dataclass(frozen=True)
class Resources:
    """What lines take: PE lines, those that use each issue slot, and MVs.

    The MVs are counted by mnemonic, memories and size: their addresses are 0.
    """

    steps: int
    slots: Counter[str]
    moves: Counter[Move]

    def port_cycles(self, target: Target) -> Counter[str]:
        """Count the cycles for which MVs hold each port."""
        found = Counter[str]()
        for move, times in self.moves.items():
            cost = move_cost(move, target)
            found.update(dict.fromkeys(cost.ports, times * cost.holds))
        return found


def resources(nest: Nest) -> Resources:
    """Count what the lines of a nest take. Of each loop only the first turn is made."""
    steps, slots, moves = 0, Counter[str](), Counter[Move]()
    for line, times in _counted(nest):
        if isinstance(line, Move):
            ends = (replace(end, offset=0, value=None) for end in (line.source, line.destination))
            moves[Move(line.mnemonic, line.words, *ends)] += times
        else:
            steps += times
            slots.update({one.slot: times for one in line.instructions})
    return Resources(steps, slots, moves)


def _counted(nest: Nest, times: int = 1) -> Iterator[tuple[Line, int]]:
    """Yield the lines of the first turns, and how often each occurs."""
    for node in nest:
        if not isinstance(node, Repeat):
            yield node, times
        elif node.times:
            yield from _counted(node.body(0), times * node.times)
