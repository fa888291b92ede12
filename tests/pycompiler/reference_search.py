"""The search of the layout planner, computed anew at every call: the reference of ``lpz``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np

from emu2._core import ChoiceSearch
from pycompiler.planners.lpz import tables
from pycompiler.planners.lpz.tables import Table as Costs

_Factor = tuple[tuple[int, ...], Costs]


def total(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], chosen: Sequence[int]
) -> int:
    """Return the total cost of the choices."""
    found = sum(int(costs[choice]) for costs, choice in zip(single, chosen, strict=True))
    return found + sum(int(costs[chosen[u], chosen[v]]) for (u, v), costs in pairs.items())


def new_search(sizes: Sequence[int], pairs: Iterable[tuple[int, int]]) -> ChoiceSearch:
    """Return a search with tables as large as those of the planner."""
    return ChoiceSearch(sizes, list(pairs), tables.ENTRIES)


def all_costs(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs]
) -> dict[tuple[int, int], Costs]:
    """Return the costs as a search takes them."""
    return {**{(number, number): costs for number, costs in enumerate(single)}, **pairs}


def search_of(single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs]) -> ChoiceSearch:
    """Return a new search of the planner with these costs."""
    made = new_search([len(costs) for costs in single], pairs)
    made.take(all_costs(single, pairs))
    return made


def cheapest(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
) -> list[int]:
    """Return what a new search of the planner finds."""
    return search_of(single, pairs).cheapest(start)


def reference_cheapest(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
) -> list[int]:
    """Return one choice per variable that costs at most as much as ``start``."""
    best = list(start)
    while True:
        ways = [
            _improved(single, pairs, way)
            for way in (reference_elimination(single, pairs, best), best)
        ]
        found = min(ways, key=lambda way: total(single, pairs, way))
        if total(single, pairs, found) >= total(single, pairs, best):
            return best
        best = found


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
        held = room[variable] > tables.ENTRIES
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


def _improved(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
) -> list[int]:
    """Improve one choice at a time until no single change makes the total cheaper."""
    chosen = list(start)
    # For each variable the others with which it shares costs, and the costs by choices of both.
    beside: list[list[tuple[int, Costs]]] = [[] for _ in single]
    for (u, v), table in pairs.items():
        beside[u].append((v, table.T))
        beside[v].append((u, table))
    changed = True
    while changed:
        changed = False
        for variable, costs in enumerate(single):
            sums = costs.copy()
            for other, table in beside[variable]:
                sums += table[chosen[other]]
            choice = int(sums.argmin())
            if sums[choice] < sums[chosen[variable]]:
                chosen[variable], changed = choice, True
    return chosen
