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
    best = list(start)
    while True:
        found = elimination.run(single, pairs, best)
        if not elimination.exact:
            ways = [_improved(single, pairs, way) for way in (found, best)]
            found = min(ways, key=lambda way: total(single, pairs, way))
        if total(single, pairs, found) >= total(single, pairs, best):
            return best
        best = found
        if elimination.exact:
            return best


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
