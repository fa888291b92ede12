"""The costs that a search sees: of the candidates of variables, and of pairs beside switches.

Costs of switches are guesses until a choice needs them: it takes long to plan their passes.

The search itself is the crate `choosing`: variables are eliminated one by one, each by dynamic
programming over the variables that it shares costs with. This is exact while the tables stay small,
as they do on chains and trees. If a table would become too large, a variable keeps its present
choice. A local search then tries the candidates of each variable one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emu2._core import ChoiceSearch

from ...graph.graph import MNNode, Side
from ...layers.operators import stays_in_dram
from .costs import NEVER, TOO_LARGE, Costs
from .growth import Seed
from .pools import Candidate, Pools, Variable

Table = NDArray[np.int64]
#: Entries of the largest table that an elimination may make.
ENTRIES = 1 << 16
#: The search for the passes of a switch stops at about this many times the guessed steps.
DEARER = 2.5
#: The cost of a switch about which nothing is known, where only known costs count. It is worse than
#: any number of switches that are not possible.
UNKNOWN = NEVER << 12
#: How well a cost is known: it is a guess, a lower bound, or the true cost.
GUESS, DEAR, TRUE = range(3)
#: Two variables, the smaller number first; one twice for what belongs to it alone.
_Ends = tuple[int, int]


@dataclass(eq=False)
class Edge:
    """A switch between two variables.

    ``costs`` has the cost of each pair of candidates, ``looks`` how well that cost is known.
    """

    node: MNNode
    source: int
    result: int
    costs: Table
    looks: Table

    @property
    def ends(self) -> _Ends:
        """Its two variables."""
        return min(self.source, self.result), max(self.source, self.result)


@dataclass(frozen=True)
class Estimate:
    """Steps of the nodes, switches and transfers that are possible, and the names of the others."""

    steps: int = 0
    does_not_fit: tuple[str, ...] = ()


class Tables:
    """The costs of the candidates in ``pools``. They must be full when this is made."""

    def __init__(self, pools: Pools, costs: Costs):
        self.graph, self.target = pools.graph, pools.target
        self.pools, self.costs = pools, costs
        #: The only candidates of variables, while others are not looked at.
        self._only: dict[int, int] = {}
        #: The costs of variables alone, without regard to what is the only candidate.
        self._own_costs: dict[int, Table] = {}
        self._readers = self.graph.readers()
        self._given = {name for _, name in self.graph.outputs}
        self._times = {name: self._crossings(name) for name in pools.of}
        self.alone = [self._single(v) for v in range(len(pools.variables))]
        self.edges = [self._edge(node) for node in pools.switches]
        #: The numbers of the switches between variables, and within each of them.
        self._between: dict[_Ends, list[int]] = {(v, v): [] for v in range(len(self.alone))}
        for number, edge in enumerate(self.edges):
            self._between.setdefault(edge.ends, []).append(number)
        #: The searches among guesses and among known costs; which costs are new to them.
        self._searches: dict[bool, ChoiceSearch] = {}
        self._stale: dict[bool, set[_Ends]] = {}

    def take_in(self) -> None:
        """Extend the tables by the candidates that are new; keep the costs that are known."""
        for number, costs in enumerate(self.alone):
            if len(self.pools.variables[number].pool) > len(costs):
                self.alone[number] = self._single(number)
                self._searches.clear()
        for index, edge in enumerate(self.edges):
            sizes = tuple(len(self.pools.variables[v].pool) for v in (edge.source, edge.result))
            if sizes != edge.costs.shape:
                self.edges[index] = self._edge(edge.node, edge)

    def only(self, best: Sequence[int], seeds: Sequence[Seed]) -> list[int]:
        """Return ``best`` with the candidates of ``seeds``, whose variables get no others."""
        start = list(best)
        for seed in seeds:
            at = self.pools.variables[seed.number].place_of(seed.candidate)
            self._only[seed.number] = start[seed.number] = at
            self.alone[seed.number] = self._single(seed.number)
            self._renew((seed.number, seed.number))
        return start

    def free(self, number: int) -> None:
        """Let a variable choose among all its candidates again."""
        del self._only[number]
        self.alone[number] = self._single(number)
        self._renew((number, number))

    def total(self, chosen: Sequence[int]) -> int:
        """Return the cost of a choice, with penalties for what is not possible."""
        return self.search().total(chosen)

    def estimate(self, choices: Sequence[int]) -> Estimate:
        """Return the cost of the candidates ``choices``, without the penalties of the search."""
        costs: list[tuple[str, int]] = []
        for variable, choice in zip(self.pools.variables, choices, strict=True):
            costs += self._parts(variable, variable.pool[choice])
        for edge in self.edges:
            cost = int(edge.costs[choices[edge.source], choices[edge.result]])
            costs.append((edge.node.name, cost))
        return Estimate(
            sum(cost for _, cost in costs if cost < TOO_LARGE),
            tuple(name for name, cost in costs if cost >= TOO_LARGE),
        )

    def _single(self, number: int) -> Table:
        """Return the costs of the candidates of a variable: its nodes and transfers."""
        variable = self.pools.variables[number]
        out = np.zeros(len(variable.pool), dtype=np.int64)
        before = self._own_costs.get(number, out[:0])
        out[: len(before)] = before
        for index in range(len(before), len(out)):
            out[index] = sum(cost for _, cost in self._parts(variable, variable.pool[index]))
        self._own_costs[number] = out
        if number in self._only:
            others = np.arange(len(out)) != self._only[number]
            out = np.where(others, UNKNOWN, out)
        return out

    def _parts(self, variable: Variable, candidate: Candidate) -> Iterator[tuple[str, int]]:
        """Yield the cost of each node of a variable, and of each value that crosses to DRAM."""
        for node in variable.nodes:
            yield node.name, self.costs.node(node, self.pools.all_of(node, candidate))
        for name in variable.values:
            if times := self._times[name]:
                yield name, times * self.costs.transfer(self.graph.values[name], candidate[name])

    def _crossings(self, name: str) -> int:
        """Count the transfers of a value between DRAM and LM.

        An input or a constant is downloaded for every node that reads it. A value that the host or
        the caller reads is uploaded once.
        """
        outside = name in self.graph.inputs or name in self.graph.constants
        readers = self._readers.get(name, ())
        on_host = any(node.side is Side.HOST for node in readers)
        on_device = sum(
            node.side is Side.DEVICE and not stays_in_dram(name, node) for node in readers
        )
        return (on_device if outside else 0) + (name in self._given or on_host)

    def _edge(self, node: MNNode, before: Edge | None = None) -> Edge:
        """Return the costs of a switch; those that were known ``before`` stay."""
        (given, made), of = (node.inputs[0], node.outputs[0]), self.pools.of
        ours = [c[given] for c in self.pools.variables[of[given]].pool]
        theirs = [c[made] for c in self.pools.variables[of[made]].pool]
        costs = np.zeros((len(ours), len(theirs)), dtype=np.int64)
        looks = np.full(costs.shape, GUESS)
        rows, columns = before.costs.shape if before else (0, 0)
        if before:
            costs[:rows, :columns], looks[:rows, :columns] = before.costs, before.looks
        guesses = self.costs.guesses(self.graph.values[given])
        costs[rows:] = guesses.table(ours[rows:], theirs)
        costs[:rows, columns:] = guesses.table(ours[:rows], theirs[columns:])
        return Edge(node, of[given], of[made], costs, looks)

    def search(self, *, known: bool = False) -> ChoiceSearch:
        """Return the search, with the present costs.

        With ``known``, switches whose true cost is not known count as not possible. Switches
        between the same two variables add up. A switch within a variable counts for that variable.
        """
        found = self._searches.get(known)
        if found is None:
            pairs = [ends for ends in self._between if ends[0] != ends[1]]
            found = ChoiceSearch([len(costs) for costs in self.alone], pairs, ENTRIES)
            self._searches[known], self._stale[known] = found, {*self._between}
        stale = self._stale[known]
        found.take({ends: self._now(ends, known) for ends in stale})
        self.costs.known.work += len(stale)
        stale.clear()
        return found

    def _now(self, ends: _Ends, known: bool) -> Table:
        """Return the costs of a variable, or of two; the smaller number has the rows."""
        tables = []
        for edge in (self.edges[number] for number in self._between[ends]):
            costs = np.where(edge.looks == TRUE, edge.costs, UNKNOWN) if known else edge.costs
            tables.append(costs if edge.source <= edge.result else costs.T)
        if ends[0] == ends[1]:
            tables = [self.alone[ends[0]], *(costs.diagonal() for costs in tables)]
        return sum(tables[1:], tables[0])

    def _renew(self, ends: _Ends) -> None:
        """Note that costs are new."""
        for stale in self._stale.values():
            stale.add(ends)

    def look(self, chosen: list[int], *, first: bool = False) -> None:
        """Replace the guessed costs of the switches that ``chosen`` needs by true costs.

        The search for passes stops if they take far more steps than the guess. Then the cost is
        only a lower bound. If the switch is chosen again, or if this is the ``first`` choice, the
        search runs to the end.
        """
        for edge in self.edges:
            at = chosen[edge.source], chosen[edge.result]
            if edge.looks[at] == TRUE:
                continue
            source, result = (
                self.pools.variables[v].pool[choice][name]
                for v, choice, name in (
                    (edge.source, at[0], edge.node.inputs[0]),
                    (edge.result, at[1], edge.node.outputs[0]),
                )
            )
            value = self.graph.values[edge.node.outputs[0]]
            most = None
            if not first and edge.looks[at] == GUESS:
                most = int(DEARER * edge.costs[at]) + 8 * self.target.cycles
            found = self.costs.switch(source, result, value, most)
            known = (most, DEAR) if most is not None and found == NEVER else (found, TRUE)
            edge.costs[at], edge.looks[at] = known
            self._renew(edge.ends)
