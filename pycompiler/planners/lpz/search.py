"""Find the cheapest choice of one candidate per variable; variables and pairs of them have costs.

Variables are eliminated one by one, each by dynamic programming over the variables that it shares
costs with. This is exact while the tables stay small, as they do on chains and trees. If a table
would become too large, a variable keeps its present choice. A local search then tries the
candidates of each variable one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .elimination import Costs, Elimination
from .improvement import Improvement


class Search:
    """Finds choices for variables with ``sizes`` candidates, of which ``pairs`` share costs.

    It is fast if the last costs that it had were nearly the same.
    """

    def __init__(self, sizes: Sequence[int], pairs: Iterable[tuple[int, int]]):
        known = tuple(pairs)
        self._elimination = Elimination(sizes, known)
        #: Whether the choices are the cheapest there are.
        self.exact = self._elimination.exact
        # The choices of the two ways differ, and each remembers its own.
        self._improvements = [Improvement(sizes, known) for _ in range(2)]

    def cheapest(
        self,
        single: Sequence[Costs],
        pairs: Mapping[tuple[int, int], Costs],
        start: Sequence[int],
    ) -> list[int]:
        """Return one choice per variable that costs at most as much as ``start``.

        ``single[v][c]`` is the cost of choice ``c`` of variable ``v``. ``pairs[u, v][b, c]`` is the
        cost of choice ``b`` of ``u`` together with choice ``c`` of ``v``. No cost is negative.
        An array that was given to the last call too must have the same costs as then.
        """
        best, least = list(start), total(single, pairs, start)
        own, others = self._improvements
        more = [] if self.exact else [others.run(single, pairs, best)]
        while True:
            found = self._elimination.run(single, pairs, best)
            ways = [found if self.exact else own.run(single, pairs, found), *more]
            costs = [total(single, pairs, way) for way in ways]
            if min(costs) >= least:
                return best
            least = min(costs)
            best = ways[costs.index(least)]
            if self.exact:
                return best
            # No single change makes the best choice cheaper any more.
            more = []


def cheapest(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
) -> list[int]:
    """Return what a new :class:`Search` finds."""
    return Search([len(costs) for costs in single], pairs).cheapest(single, pairs, start)


def total(
    single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], chosen: Sequence[int]
) -> int:
    """Return the total cost of the choices."""
    found = sum(int(costs[choice]) for costs, choice in zip(single, chosen, strict=True))
    return found + sum(int(costs[chosen[u], chosen[v]]) for (u, v), costs in pairs.items())
