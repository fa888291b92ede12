"""The costs that a search sees: of the candidates of variables, and of pairs beside switches.

Costs of switches are guesses until a choice needs them: it takes long to plan their passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...graph.graph import MNNode, Side
from ...layers.operators import stays_in_dram
from .costs import NEVER, TOO_LARGE, Costs
from .edges import DEAR, GUESS, TRUE, UNKNOWN, Edge
from .growth import Seed
from .pools import Candidate, Pools, Variable
from .search import Costs as Table
from .search import total

#: The search for the passes of a switch stops at about this many times the guessed steps.
DEARER = 2.5


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
        self._readers: dict[str, list[MNNode]] = {}
        for node in self.graph.nodes:
            for name in set(node.inputs):
                self._readers.setdefault(name, []).append(node)
        self._given = {name for _, name in self.graph.outputs}
        self._times = {name: self._crossings(name) for name in pools.of}
        self.alone = [self._single(v) for v in range(len(pools.variables))]
        self.edges = [self._edge(node) for node in pools.switches]

    def take_in(self) -> None:
        """Extend the tables by the candidates that are new; keep the costs that are known."""
        for number, costs in enumerate(self.alone):
            if len(self.pools.variables[number].pool) > len(costs):
                self.alone[number] = self._single(number)
        for index, edge in enumerate(self.edges):
            sizes = tuple(len(self.pools.variables[v].pool) for v in (edge.source, edge.result))
            if sizes != edge.costs.shape:
                self.edges[index] = self._edge(edge.node)
                self.edges[index].take_over(edge)

    def only(self, best: Sequence[int], seeds: Sequence[Seed]) -> list[int]:
        """Return ``best`` with the candidates of ``seeds``, whose variables get no others."""
        start = list(best)
        for seed in seeds:
            at = self.pools.variables[seed.number].place_of(seed.candidate)
            self._only[seed.number] = start[seed.number] = at
            self.alone[seed.number] = self._single(seed.number)
        return start

    def free(self, number: int) -> None:
        """Let a variable choose among all its candidates again."""
        del self._only[number]
        self.alone[number] = self._single(number)

    def total(self, chosen: Sequence[int]) -> int:
        """Return the cost of a choice, with penalties for what is not possible."""
        return total(*self.now(), chosen)

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

    def _edge(self, node: MNNode) -> Edge:
        (given, made), of = (node.inputs[0], node.outputs[0]), self.pools.of
        ours = [c[given] for c in self.pools.variables[of[given]].pool]
        theirs = [c[made] for c in self.pools.variables[of[made]].pool]
        guesses = self.costs.guesses(ours, theirs, self.graph.values[given])
        return Edge(node, of[given], of[made], guesses)

    def now(self, *, known: bool = False) -> tuple[list[Table], dict[tuple[int, int], Table]]:
        """Return the costs of single variables and of pairs of variables.

        With ``known``, switches whose true cost is not known count as not possible. Switches
        between the same two variables add up. A switch within a variable counts for that variable.
        """
        self.costs.known.work += len(self.edges)
        single, pairs = list(self.alone), dict[tuple[int, int], Table]()
        for edge in self.edges:
            low, high = sorted((edge.source, edge.result))
            costs = edge.table(known=known)
            if low == high:
                single[low] = single[low] + costs.diagonal()
                continue
            pairs[low, high] = pairs[low, high] + costs if (low, high) in pairs else costs
        return single, pairs

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
            if most is not None and found == NEVER:
                edge.put(at, most, DEAR)
            else:
                edge.put(at, found, TRUE)
