"""The elimination of variables, computed as a whole: the reference of the planner's elimination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

from pycompiler.planners.lpz import elimination

Costs = NDArray[np.int64]
_Factor = tuple[tuple[int, ...], Costs]


def reference_elimination(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
) -> list[int]:
    """Return the cheapest choices if variables that are held keep their choice of ``start``."""
    chosen = list(start)
    sizes = [len(costs) for costs in single]
    beside: dict[int, set[int]] = {v: set() for v in range(len(single))}
    factors: dict[int, list[_Factor]] = {v: [((v,), costs)] for v, costs in enumerate(single)}
    for u, v in pairs:
        beside[u].add(v)
        beside[v].add(u)
        # A factor belongs to all variables of its scope.
        factor: _Factor = ((u, v), pairs[u, v])
        factors[u].append(factor)
        factors[v].append(factor)
    order: list[tuple[int, tuple[int, ...], Costs]] = []
    room = {v: prod(sizes[u] for u in (v, *others)) for v, others in beside.items()}
    # Entries that no longer say the room of a variable are dropped when they come up.
    queue = [(size, v) for v, size in room.items()]
    heapify(queue)
    while beside:
        while room.get(queue[0][1]) != queue[0][0]:
            heappop(queue)
        variable = queue[0][1]
        held = room[variable] > elimination.TABLE
        if held:
            variable = max(room, key=lambda v: (len(beside[v]), -v))
        others = beside.pop(variable)
        del room[variable]
        own = factors.pop(variable)
        for u in others:
            beside[u].remove(variable)
            factors[u] = [factor for factor in factors[u] if variable not in factor[0]]
        if held:
            made = [_sliced(factor, variable, chosen[variable]) for factor in own]
        else:
            for u in others:
                beside[u] |= others - {u}
            scope = tuple(sorted(others))
            table = _sum(own, (*scope, variable), sizes)
            order.append((variable, scope, table.argmin(axis=-1)))
            made = [(scope, table.min(axis=-1))]
        for factor in made:
            for u in factor[0]:
                factors[u].append(factor)
        for u in others:
            room[u] = prod(sizes[w] for w in (u, *beside[u]))
            heappush(queue, (room[u], u))
    for variable, scope, choices in reversed(order):
        chosen[variable] = int(choices[tuple(chosen[u] for u in scope)])
    return chosen


def _sliced(factor: _Factor, variable: int, choice: int) -> _Factor:
    scope, costs = factor
    at = scope.index(variable)
    return (*scope[:at], *scope[at + 1 :]), np.take(costs, choice, axis=at)


def _sum(factors: Sequence[_Factor], scope: tuple[int, ...], sizes: Sequence[int]) -> Costs:
    """Add factors up over all choices of the variables in ``scope``."""
    out = np.zeros([sizes[v] for v in scope], dtype=np.int64)
    for own, costs in factors:
        order = sorted(range(len(own)), key=lambda i: scope.index(own[i]))
        shape = [sizes[v] if v in own else 1 for v in scope]
        out += costs.transpose(order).reshape(shape)
    return out
