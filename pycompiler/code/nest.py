"""Loop nests of lines, and two walks over them: one makes all lines, one counts what they take.

A nest is written once for a node's code. It makes its lines as it is walked, so each walk needs a
new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from ..cost.hazards import one_port
from ..cost.sequence import SHARED, Stage
from ..machine import Target
from .lines import Line, Move, PeOperand, Step
from .move_costs import move_cost

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


def whole_runs(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Return the items in runs of ``size``; the last item fills the last run."""
    return runs([*items, *list(items[-1:]) * (-len(items) % size)], size)


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


#: Loops of lines and MVs are split into at most so many parts, whose stages alternate.
_PARTS = 16


def stages(nest: Nest, target: Target) -> list[Stage]:
    """Return what the lines and MVs of a nest take. Of each loop only the first turn is made."""
    found: list[Stage] = []
    step, ports = target.cycles, one_port(target)
    for node in nest:
        if isinstance(node, Step):
            if not found or found[-1].ends is not None:
                found.append(Stage(None))
            found[-1].least += step
            _use(node, found[-1].uses, step, ports)
        elif isinstance(node, Move):
            cost, ends = move_cost(node, target), (node.source.memory, node.destination.memory)
            _join(found, Stage(ends, 0, dict.fromkeys(cost.ports, cost.holds), 1))
        elif node.times:
            turn = stages(node.body(0), target)
            for one in (*turn, *_again(turn, node.times - 1)):
                _join(found, one)
    for one in found:
        for slots, limit in target.shares if one.ends is None else ():
            used = sum(one.uses.get(slot, 0) for slot in slots)
            one.uses[f"{SHARED} {min(slots)}"] = used // limit
    return found


def _use(line: Step, uses: dict[str, int], step: int, ports: Collection[str]) -> None:
    """Count the slots of a line, and the memories that it touches of those with one port."""
    touched = set()
    for one in line.instructions:
        uses[one.slot] = uses.get(one.slot, 0) + step
        for operand in (*one.sources, *one.destinations):
            if isinstance(operand, PeOperand) and operand.memory in ports:
                touched.add(f"{SHARED} {operand.memory}")
    for name in touched:
        uses[name] = uses.get(name, 0) + step


def _join(found: list[Stage], stage: Stage) -> None:
    """Add a stage behind others; MVs go on where those before them are of the same kind."""
    if found and found[-1].ends == stage.ends:
        found[-1] = found[-1].joined(stage)
    else:
        found.append(stage)


def _again(turn: Sequence[Stage], more: int) -> Iterator[Stage]:
    """Yield the stages of the other turns of a loop, of which the last MVs may go on."""
    moves = [at for at, one in enumerate(turn) if one.ends is not None]
    again = list(turn)
    if moves and turn[moves[0]].ends == turn[moves[-1]].ends:
        first = turn[moves[0]]
        again[moves[0]] = replace(first, count=first.count - 1)
    parts = min(_PARTS, more) if len(turn) > 1 else min(1, more)
    for part in range(parts):
        times = (part + 1) * more // parts - part * more // parts
        yield from (one.repeated(times) for one in again)
