"""Dynamic programming: eliminate variables one by one, and recompute only what has changed.

The order of the variables depends only on how many choices each has, so it stays the same while
costs change. Each variable is replaced by a table over the variables with which it shares costs:
the cost of its best choice. Few costs change between two calls. Then only the table entries that
depend on them are computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.int64]
_Numbers = NDArray[np.intp]
#: For each axis of a table the entries along it that may have changed; None if no entry has.
_Changes = tuple[_Numbers, ...] | None

#: Entries of the largest table that an elimination may make.
TABLE = 1 << 16


@dataclass(eq=False)
class _Table:
    """Costs of the choices of the variables in ``scope``."""

    scope: tuple[int, ...]
    costs: Costs
    changed: _Changes = None
    #: The array that the costs were taken from.
    given: Costs | None = None

    def take(self, costs: Costs) -> None:
        """Take over new costs, and note what has changed."""
        if costs is self.given:
            self.changed = None
            return
        self.given = costs
        different = self.costs != costs
        self.changed = None
        if different.any():
            self.changed = _along(different)
            np.copyto(self.costs, costs)


@dataclass(eq=False)
class _Step:
    """The elimination of ``variable``: ``own`` are the tables that it is part of.

    The variable leaves one table, and ``choices`` has its best choice for each entry. A variable
    that is ``held`` keeps the choice that it has: each of its tables leaves the part for that.
    """

    variable: int
    own: list[_Table]
    made: list[_Table]
    held: bool
    choices: _Numbers
    #: The choice for which a variable that is held left its tables.
    choice: int = -1

    def run(self, chosen: Sequence[int]) -> None:
        """Compute what the variable leaves."""
        if self.held:
            same = self.choice == chosen[self.variable]
            self.choice = chosen[self.variable]
            for before, after in zip(self.own, self.made, strict=True):
                if same and before.changed is None:
                    after.changed = None
                    continue
                at = before.scope.index(self.variable)
                after.take(np.take(before.costs, self.choice, axis=at))
            return
        out = self.made[0]
        out.changed = None
        changed = [table for table in self.own if table.changed is not None]
        if not changed:
            return
        block = [
            _union([_entries(table, u) for table in changed], size)
            for u, size in zip(out.scope, out.costs.shape, strict=True)
        ]
        part = _Part((*out.scope, self.variable), block, out.costs.shape)
        costs = part.total(self.own)
        least = costs.min(axis=-1)
        different = out.costs[part.at] != least
        self.choices[part.at] = costs.argmin(axis=-1)
        if different.any():
            out.costs[part.at] = least
            out.changed = tuple(
                numbers[found] for numbers, found in zip(block, _along(different), strict=True)
            )


class _Part:
    """The part of a table over ``scope`` with the entries ``block`` along all axes but the last."""

    def __init__(self, scope: tuple[int, ...], block: Sequence[_Numbers], shape: tuple[int, ...]):
        self.scope = scope
        self.block = dict(zip(scope, block, strict=False))
        self.whole = all(len(one) == size for one, size in zip(block, shape, strict=True))
        #: The index of the part in the table without the last axis.
        self.at: tuple[_Numbers, ...] = () if self.whole else np.ix_(*block)

    def total(self, tables: Iterable[_Table]) -> Costs:
        """Add up the parts of tables that lie over variables of the scope."""
        return reduce(np.add, (self._of(table) for table in tables))

    def _of(self, table: _Table) -> Costs:
        places = {u: place for place, u in enumerate(self.scope)}
        order = sorted(range(len(table.scope)), key=lambda i: places.get(table.scope[i], -1))
        costs = table.costs.transpose(order)
        if not self.whole:
            for axis, at in enumerate(order):
                entries = self.block.get(table.scope[at])
                if entries is not None and len(entries) < costs.shape[axis]:
                    costs = costs.take(entries, axis=axis)
        lengths = {table.scope[at]: length for at, length in zip(order, costs.shape, strict=True)}
        return costs.reshape([lengths.get(u, 1) for u in self.scope])


class Elimination:
    """The elimination of variables with ``sizes`` choices, of which ``pairs`` share costs."""

    def __init__(self, sizes: Sequence[int], pairs: Iterable[tuple[int, int]]):
        self.sizes, self.pairs = tuple(sizes), tuple(pairs)
        self._single = [self._table((v,)) for v in range(len(sizes))]
        self._shared = {pair: self._table(pair) for pair in self.pairs}
        self._steps = self._ordered()
        #: The variables that keep their choice, in the order in which they leave their tables.
        self.held = [step.variable for step in self._steps if step.held]
        #: Whether the choices are the cheapest there are, because no variable is held.
        self.exact = not self.held

    def run(
        self, single: Sequence[Costs], pairs: Mapping[tuple[int, int], Costs], start: Sequence[int]
    ) -> list[int]:
        """Return the cheapest choices if variables that are held keep their choice of ``start``.

        An array that was given to the last call too must have the same costs as then.
        """
        for table, costs in zip(self._single, single, strict=True):
            table.take(costs)
        for pair, table in self._shared.items():
            table.take(pairs[pair])
        for step in self._steps:
            step.run(start)
        chosen = list(start)
        for step in reversed(self._steps):
            if not step.held:
                at = tuple(chosen[u] for u in step.made[0].scope)
                chosen[step.variable] = int(step.choices[at])
        return chosen

    def _table(self, scope: tuple[int, ...]) -> _Table:
        # No cost is negative, so every entry of a new table counts as changed.
        return _Table(scope, np.full([self.sizes[v] for v in scope], -1, dtype=np.int64))

    def _ordered(self) -> list[_Step]:
        """Return the steps; the variable with the smallest table comes next."""
        sizes = self.sizes
        beside: dict[int, set[int]] = {v: set() for v in range(len(sizes))}
        tables = {v: [table] for v, table in enumerate(self._single)}
        for (u, v), table in self._shared.items():
            beside[u].add(v)
            beside[v].add(u)
            # A table belongs to all variables of its scope.
            tables[u].append(table)
            tables[v].append(table)
        room = {v: prod(sizes[u] for u in (v, *others)) for v, others in beside.items()}
        # Entries that no longer say the room of a variable are dropped when they come up.
        queue = [(size, v) for v, size in room.items()]
        heapify(queue)
        steps: list[_Step] = []
        while beside:
            while room.get(queue[0][1]) != queue[0][0]:
                heappop(queue)
            variable = queue[0][1]
            held = room[variable] > TABLE
            if held:
                variable = max(room, key=lambda v: (len(beside[v]), -v))
            others = beside.pop(variable)
            del room[variable]
            own = tables.pop(variable)
            if held:
                rest = [tuple(u for u in table.scope if u != variable) for table in own]
            else:
                # A variable with one choice needs no axis. A graph may have hundreds of them, and
                # NumPy knows 64 axes.
                rest = [tuple(sorted(u for u in others if sizes[u] > 1))]
            made = [self._table(scope) for scope in rest]
            for u in others:
                beside[u].remove(variable)
                if not held:
                    beside[u] |= others - {u}
                tables[u] = [table for table in tables[u] if variable not in table.scope]
                tables[u] += [table for table in made if u in table.scope]
                room[u] = prod(sizes[w] for w in (u, *beside[u]))
                heappush(queue, (room[u], u))
            choices = np.zeros(() if held else made[0].costs.shape, dtype=np.intp)
            steps.append(_Step(variable, own, made, held, choices))
        return steps


def _along(different: NDArray[np.bool_]) -> tuple[_Numbers, ...]:
    """Return the numbers of the entries along each axis in which anything is different."""
    axes = range(different.ndim)
    return tuple(
        np.flatnonzero(different.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    )


def _entries(table: _Table, variable: int) -> _Numbers | None:
    """Return the entries of a changed table along ``variable`` that may have changed; None: all."""
    assert table.changed is not None
    if variable not in table.scope:
        return None
    return table.changed[table.scope.index(variable)]


def _union(found: Sequence[_Numbers | None], size: int) -> _Numbers:
    numbers = [one for one in found if one is not None]
    if len(numbers) < len(found):
        return np.arange(size)
    return numbers[0] if len(numbers) == 1 else reduce(np.union1d, numbers)
