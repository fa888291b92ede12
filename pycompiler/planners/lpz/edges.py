"""The switches of a graph as the planner sees them: costs of pairs of candidates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...graph.graph import MNNode
from .costs import NEVER
from .search import Costs as Table

#: The cost of a switch about which nothing is known, where only known costs count. It is worse than
#: any number of switches that are not possible.
UNKNOWN = NEVER << 12
#: How well a cost is known: it is a guess, a lower bound, or the true cost.
GUESS, DEAR, TRUE = range(3)


@dataclass(eq=False)
class Edge:
    """A switch between two variables.

    ``costs`` has the cost of each pair of candidates, ``looks`` how well that cost is known.
    """

    node: MNNode
    source: int
    result: int
    costs: Table
    looks: Table = field(init=False)
    #: Tables for the search, by ``known``. The search sees that nothing changed if they stay.
    _tables: dict[bool, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.looks = np.full(self.costs.shape, GUESS)

    def table(self, *, known: bool) -> Table:
        """Return the costs; the axis of the variable with the smaller number comes first.

        With ``known``, switches whose true cost is not known count as worse than not possible.
        """
        if known not in self._tables:
            costs = self.costs.copy()
            if known:
                costs[self.looks != TRUE] = UNKNOWN
            self._tables[known] = costs if self.source <= self.result else costs.T
        return self._tables[known]

    def put(self, at: tuple[int, int], cost: int, look: int) -> None:
        """Note the cost of a pair of candidates, and how well it is known."""
        self.costs[at], self.looks[at] = cost, look
        self._tables.clear()

    def take_over(self, before: Edge) -> None:
        """Keep what is known of the candidates that there were ``before``."""
        rows, columns = before.costs.shape
        self.costs[:rows, :columns] = before.costs
        self.looks[:rows, :columns] = before.looks
