"""Loop nests of lines, and two walks over them: one makes all lines, one counts what they take.

A nest is written once for a node's code. It makes its lines as it is walked, so each walk needs a
new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from ..cost.moves import port_cycles, waiting_steps
from ..machine import Target
from .lines import Line, Move

_T = TypeVar("_T")


@dataclass(frozen=True)
class Repeat:
    """``body(i)`` is the nest of turn i of a loop; all turns take the same slots and MVs."""

    times: int
    body: Callable[[int], Nest]


Nest = Iterable[Line | Repeat]


def each(items: Iterable[_T], body: Callable[[_T], Nest]) -> Repeat:
    """Return a loop over ``items``."""
    turns = list(items)
    return Repeat(len(turns), partial(_turn, turns, body))


def alike(items: Iterable[_T], key: Callable[[_T], object], body: Callable[[_T], Nest]) -> Nest:
    """Yield a loop for each run of items of equal ``key``: their code takes the same."""
    return (each(run, body) for _, run in groupby(items, key))


def runs(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Return the items in runs of ``size``; the last may be shorter."""
    return [items[i : i + size] for i in range(0, len(items), size)]


def _turn(turns: Sequence[_T], body: Callable[[_T], Nest], number: int) -> Nest:
    return body(turns[number])


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

    The MVs are counted by mnemonic, memories and size: their addresses are 0. ``stages`` are the
    runs of MVs between the same two memories: each waits for the one before it.
    """

    steps: int
    slots: Counter[str]
    moves: Counter[Move]
    stages: int

    def port_cycles(self, target: Target) -> Counter[str]:
        """Count the cycles for which MVs hold each port."""
        return port_cycles(self.moves, target)

    def waiting_steps(self, target: Target) -> int:
        """Count the PE lines, and the steps that lines wait for MVs."""
        return self.steps + waiting_steps(self.moves, self.stages, target)


def resources(nest: Nest) -> Resources:
    """Count what the lines of a nest take. Of each loop only the first turn is made."""
    steps, slots, moves = 0, Counter[str](), Counter[Move]()
    stages, last = 0, None
    for line, times in _counted(nest):
        if isinstance(line, Move):
            ends = (replace(end, offset=0, value=None) for end in (line.source, line.destination))
            moves[Move(line.mnemonic, line.words, *ends)] += times
            memories = line.source.memory, line.destination.memory
            stages += times * (memories != last)
            last = memories
        else:
            steps += times
            slots.update({one.slot: times for one in line.instructions})
    return Resources(steps, slots, moves, stages)


def _counted(nest: Nest) -> Iterator[tuple[Line, int]]:
    """Yield the lines of the first turns, and how often each occurs.

    Turns with MVs come twice: as the first one, and as all others behind another.
    """
    for node in nest:
        if not isinstance(node, Repeat):
            yield node, 1
        elif node.times:
            turn = list(_counted(node.body(0)))
            again = node.times > 1 and any(isinstance(line, Move) for line, _ in turn)
            for times in (1, node.times - 1) if again else (node.times,):
                yield from ((line, times * own) for line, own in turn)
