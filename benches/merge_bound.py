"""The cycles that any order of the same lines takes at least.

Each line and each MV gets the first step that its data allow, as if every slot, port and memory
were free. Only the MVs of one node wait for each other, in their order. From any step on, a slot
must still serve all lines that cannot come earlier, one in each step, and a memory all MVs.
Conflicting accesses keep their order, and parts of downloads have the addresses in L2BM at which
they could start first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pycompiler.code.lines import Move
from pycompiler.cost.moves import move_cost
from pycompiler.emit.merge import place
from pycompiler.emit.timeline import Placed
from pycompiler.emit.units import Prepared
from pycompiler.machine import Target


@dataclass(frozen=True)
class Bound:
    """``cycles`` that every order takes, because of ``what``; ``path``: the longest chain."""

    cycles: int
    what: str
    path: int


def bound_of(prepared: Prepared, target: Target) -> Bound:
    """Return the bound of all orders of the prepared lines."""
    placed = place(prepared, target, unlimited=True)
    path = max((max(one.end, (one.step + 1) * target.cycles) for one in placed), default=0)
    ends = [(_last(jobs), what) for what, jobs in _jobs(prepared, placed, target)]
    cycles, what = max([*ends, (path, "the longest chain of lines that need each other")])
    return Bound(cycles, what, path)


def _jobs(
    prepared: Prepared, placed: Sequence[Placed], target: Target
) -> Sequence[tuple[str, Sequence[tuple[int, int]]]]:
    """Return for each slot and memory the first cycles of its lines or MVs, and their cycles."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in placed:
        start, line = one.step * target.cycles, one.ready.line
        if isinstance(line, Move):
            cost = move_cost(line, target)
            for name in cost.ports:
                found[name].append((start, cost.holds))
        else:
            for op in one.ready.ops:
                found[op.slot].append((start, target.cycles))
    return list(found.items())


def _last(jobs: Sequence[tuple[int, int]]) -> int:
    """Return when jobs end at the earliest, which start not before a cycle, one at a time."""
    end = 0
    for start, cycles in sorted(jobs):
        end = max(end, start) + cycles
    return end
