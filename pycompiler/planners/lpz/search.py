"""Find the cheapest choice of one candidate per variable; variables and pairs of them have costs.

Variables are eliminated one by one, each by dynamic programming over the variables that it shares
costs with. This is exact while the tables stay small, as they do on chains and trees. If a table
would become too large, a variable keeps its present choice. A local search then tries the
candidates of each variable one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .elimination import Costs, Elimination


def cheapest(
    single: Sequence[Costs],
    pairs: Mapping[tuple[int, int], Costs],
    start: Sequence[int],
    elimination: Elimination | None = None,
) -> list[int]:
    """Return one choice per variable that costs at most as much as ``start``.

    ``single[v][c]`` is the cost of choice ``c`` of variable ``v``. ``pairs[u, v][b, c]`` is the
    cost of choice ``b`` of ``u`` together with choice ``c`` of ``v``. No cost is negative.
    ``elimination`` is one for these variables. The search is fast if the last costs that it had
    were nearly the same.
    """
    elimination = elimination or Elimination([len(costs) for costs in single], pairs)
    best, least = list(start), total(single, pairs, start)
    others = [] if elimination.exact else [_improved(single, pairs, best)]
    while True:
        found = elimination.run(single, pairs, best)
        ways = [found if elimination.exact else _improved(single, pairs, found), *others]
        costs = [total(single, pairs, way) for way in ways]
        if min(costs) >= least:
            return best
        least = min(costs)
        best = ways[costs.index(least)]
        if elimination.exact:
            return best
        # No single change makes the best choice cheaper any more.
        others = []


def total(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], chosen: Sequence[int]
) -> int:
    """Return the total cost of the choices."""
    found = sum(int(costs[choice]) for costs, choice in zip(single, chosen, strict=True))
    return found + sum(int(costs[chosen[u], chosen[v]]) for (u, v), costs in pairs.items())


def _improved(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
) -> list[int]:
    """Improve one choice at a time until no single change makes the total cheaper."""
    chosen = list(start)
    # For each variable the others with which it shares costs, and the costs by choices of both.
    beside: list[list[tuple[int, Costs]]] = [[] for _ in single]
    # For each variable the costs of its choices beside the choices of the others.
    sums = [costs.copy() for costs in single]
    for (u, v), table in pairs.items():
        beside[u].append((v, table))
        beside[v].append((u, table.T))
        sums[u] += table[:, chosen[v]]
        sums[v] += table[chosen[u]]
    changed = [True] * len(single)
    while any(changed):
        for variable, costs in enumerate(sums):
            if not changed[variable]:
                continue
            changed[variable] = False
            before, choice = chosen[variable], int(costs.argmin())
            if costs[choice] < costs[before]:
                chosen[variable] = choice
                for other, table in beside[variable]:
                    sums[other] += table[choice] - table[before]
                    changed[other] = True
    return chosen
