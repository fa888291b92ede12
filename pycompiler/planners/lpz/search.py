"""Find the cheapest choice of one candidate per variable; variables and pairs of them have costs.

The search itself is the crate `choosing`: variables are eliminated one by one, each by dynamic
programming over the variables that it shares costs with. This is exact while the tables stay small,
as they do on chains and trees. If a table would become too large, a variable keeps its present
choice. A local search then tries the candidates of each variable one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import ne

import numpy as np
from numpy.typing import NDArray

from emu2._core import ChoiceSearch

Costs = NDArray[np.int64]
_Pair = tuple[int, int]

#: Entries of the largest table that an elimination may make.
TABLE = 1 << 16


class Search:
    """Finds choices for variables with ``sizes`` candidates, of which ``pairs`` share costs.

    It is fast if the last costs that it had were nearly the same.
    """

    def __init__(self, sizes: Sequence[int], pairs: Iterable[_Pair]):
        self._pairs = tuple(pairs)
        self._search = ChoiceSearch(sizes, self._pairs, TABLE)
        self._beside: list[list[_Pair]] = [[] for _ in sizes]
        for pair in self._pairs:
            for variable in pair:
                self._beside[variable].append(pair)
        #: The variables that keep their choice in an elimination.
        self.held = self._search.held
        #: Whether the choices are the cheapest there are.
        self.exact = not self.held

    def cheapest(
        self, single: Sequence[Costs], pairs: Mapping[_Pair, Costs], start: Sequence[int]
    ) -> list[int]:
        """Return one choice per variable that costs at most as much as ``start``.

        ``single[v][c]`` is the cost of choice ``c`` of variable ``v``. ``pairs[u, v][b, c]`` is the
        cost of choice ``b`` of ``u`` together with choice ``c`` of ``v``. No cost is negative.
        An array that was given to the last call too must have the same costs as then.
        """
        return self._search.cheapest(single, self._ordered(pairs), start)

    def eliminated(
        self, single: Sequence[Costs], pairs: Mapping[_Pair, Costs], start: Sequence[int]
    ) -> list[int]:
        """Return the cheapest choices if the variables that are held keep those of ``start``.

        The arguments are those of `cheapest`.
        """
        return self._search.eliminated(single, self._ordered(pairs), start)

    def answers(
        self,
        single: Sequence[Costs],
        pairs: Mapping[_Pair, Costs],
        start: Sequence[int],
        variable: int,
    ) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the cost of what `eliminated` returns for each candidate of a held variable.

        The candidate and the choices come with it. The other variables that are held keep theirs.
        """
        ordered, now = self._ordered(pairs), total(single, pairs, start)
        for candidate in range(len(single[variable])):
            asked = [*start]
            asked[variable] = candidate
            found = self._search.eliminated(single, ordered, asked)
            yield now + self._change(single, pairs, start, found), candidate, found

    def _change(
        self,
        single: Sequence[Costs],
        pairs: Mapping[_Pair, Costs],
        before: Sequence[int],
        after: Sequence[int],
    ) -> int:
        """Return how much more a choice costs than the one before; it counts what is different."""
        moved = [v for v, other in enumerate(map(ne, before, after)) if other]
        near = {pair for variable in moved for pair in self._beside[variable]}
        own = sum(int(single[v][after[v]]) - int(single[v][before[v]]) for v in moved)
        return own + sum(
            int(pairs[u, v][after[u], after[v]]) - int(pairs[u, v][before[u], before[v]])
            for u, v in near
        )

    def _ordered(self, pairs: Mapping[_Pair, Costs]) -> list[Costs]:
        return [pairs[pair] for pair in self._pairs]


def total(single: Sequence[Costs], pairs: Mapping[_Pair, Costs], chosen: Sequence[int]) -> int:
    """Return the total cost of the choices."""
    found = sum(int(costs[choice]) for costs, choice in zip(single, chosen, strict=True))
    return found + sum(int(costs[chosen[u], chosen[v]]) for (u, v), costs in pairs.items())
