"""Local search: improve one choice at a time, and recompute only what has changed.

Few costs and few choices change between two calls. If neither the costs of a variable nor the
choices of its neighbours have changed, its choice from the last call is still the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .elimination import Costs

_Pair = tuple[int, int]


class Improvement:
    """Improves choices for variables with ``sizes`` candidates, of which ``pairs`` share costs."""

    def __init__(self, sizes: Sequence[int], pairs: Iterable[_Pair]):
        self._pairs = tuple(pairs)
        #: For each variable its pairs, and whether the other one comes first in them.
        self._beside: list[list[tuple[_Pair, int, bool]]] = [[] for _ in sizes]
        for pair in self._pairs:
            u, v = pair
            self._beside[u].append((pair, v, False))
            self._beside[v].append((pair, u, True))
        self._single = [np.zeros(size, np.int64) for size in sizes]
        self._tables: dict[_Pair, Costs] = {}
        self._chosen: list[int] = []
        #: For each variable the costs of its choices, given the choices of the others.
        self._sums = [np.zeros(size, np.int64) for size in sizes]

    def run(
        self, single: Sequence[Costs], pairs: Mapping[_Pair, Costs], start: Sequence[int]
    ) -> list[int]:
        """Improve ``start`` until no single change makes the total cheaper.

        An array that was given to the last call too must have the same costs as then.
        """
        changed = self._take(single, pairs, start)
        chosen = list(start)
        while any(changed):
            for variable, costs in enumerate(self._sums):
                if not changed[variable]:
                    continue
                changed[variable] = False
                before, choice = chosen[variable], int(costs.argmin())
                if costs[choice] < costs[before]:
                    chosen[variable] = choice
                    for pair, other, turned in self._beside[variable]:
                        table = pairs[pair].T if turned else pairs[pair]
                        self._sums[other] += table[choice] - table[before]
                        changed[other] = True
        self._chosen = list(chosen)
        return chosen

    def _take(
        self, single: Sequence[Costs], pairs: Mapping[_Pair, Costs], start: Sequence[int]
    ) -> list[bool]:
        """Take over costs and choices; return the variables for which anything is new."""
        before = self._chosen or [-1] * len(start)
        changed = [now != then for now, then in zip(start, before, strict=True)]
        moved = list(changed)
        for variable, costs in enumerate(single):
            if costs is not self._single[variable]:
                self._sums[variable] += costs - self._single[variable]
                self._single[variable] = costs
                changed[variable] = True
        for pair in self._pairs:
            u, v = pair
            table, old = pairs[pair], self._tables.get(pair)
            if old is table and not moved[u] and not moved[v]:
                continue
            if old is not table or moved[v]:
                self._sums[u] += table[:, start[v]]
                changed[u] = True
                if old is not None:
                    self._sums[u] -= old[:, before[v]]
            if old is not table or moved[u]:
                self._sums[v] += table[start[u]]
                changed[v] = True
                if old is not None:
                    self._sums[v] -= old[before[u]]
            self._tables[pair] = table
        return changed
