"""The planner "lpz": it chooses the layouts with the fewest steps.

The steps of switches, nodes and transfers count. It takes long to plan the passes of a switch, so
the search begins with guesses of the costs of switches. It plans passes only for the switches that
the cheapest choice needs. If their true costs make another choice cheaper, that choice is looked
at next. The result never costs more than the first-arrival layouts, with which the search starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...graph.graph import MNGraph, MNNode, Side
from ...graph.layout import Layout
from ...graph.plan import Laid
from ...layers.operators import stays_in_dram
from ...machine import Target
from ..first_arrival import FirstArrival
from .costs import NEVER, TOO_LARGE, Costs
from .edges import DEAR, GUESS, TRUE, UNKNOWN, Edge
from .families import Seed, add_families, input_families
from .growth import MOST, grow
from .held import move_held
from .in_order import add_in_order
from .known import Known
from .pools import Pools
from .search import Costs as Table
from .search import Search, total
from .variants import add_variants

#: The search ends after PATIENCE rounds without a better choice, or when at most the fraction WORTH
#: of the steps could be saved.
PATIENCE, WORTH = 40, 1 / 64
#: The same number of rounds while a candidate is forced.
SOON = 4
#: A choice with one candidate forced is looked into if it costs less than this many times the best.
NEAR = 1.125
#: How many families of an input are tried, and how much more than the best they may cost.
STARTS, START_NEAR = 2, 1.5
#: No further trial begins after this much work (see `Known`). The first choice, and what grows near
#: it, are no trials.
BUDGET = 8_000_000
#: How often the pools grow near the choice, at most.
GROWTHS = 4
#: The search for the passes of a switch stops at about this many times the guessed steps.
DEARER = 2.5


def _worth(now: int) -> float:
    """Return the least saving that is worth a look; penalties are no steps."""
    return now % TOO_LARGE * WORTH


T = TypeVar("T")


@dataclass(frozen=True)
class Estimate:
    """Steps of the nodes, switches and transfers that are possible, and the names of the others."""

    steps: int = 0
    does_not_fit: tuple[str, ...] = ()


class LayoutPlannerZ:
    """The planner of one graph; its anchored nodes must have switches around them.

    ``family`` names the family that the largest region gets if that is possible; None is any.
    """

    def __init__(
        self,
        graph: MNGraph,
        target: Target,
        wanted: Mapping[str, Layout],
        known: Known | None = None,
        family: str | None = None,
    ):
        self.graph, self.target, self.wanted = graph, target, wanted
        self.family = family
        #: The family that gave the choice, and the values of its region.
        self.taken: tuple[str, tuple[str, ...]] | None = None
        #: Whether the last search ended because nothing cheaper was left to look at.
        self.exhausted = False
        #: The only candidates of variables, while others are not looked at.
        self._only: dict[int, int] = {}
        known = known or Known()
        self.costs = Costs(graph, target, known)
        first = FirstArrival(graph, target, wanted).run()
        self.pools = Pools(graph, target, wanted, first, known)
        #: The costs of variables alone, without regard to what is the only candidate.
        self._own_costs: dict[int, Table] = {}
        self._readers: dict[str, list[MNNode]] = {}
        for node in graph.nodes:
            for name in set(node.inputs):
                self._readers.setdefault(name, []).append(node)
        #: Estimates for the first-arrival layouts (before) and for the chosen ones (after).
        self.before = self.after = Estimate()

    def run(self) -> Laid:
        """Return the layout of every value on the device, and the plans of nodes."""
        self.pools.fill()
        variables = self.pools.variables
        self.alone = [self._single(v) for v in range(len(variables))]
        self.edges, best = [self._edge(node) for node in self.pools.switches], [0] * len(variables)
        self._look(best, first=True)
        self.before = self._estimate(best)
        if self.family is None:
            best = self._from_inputs(self._grown(self._search(self._again(best))))
            for seed in self._affordable(add_families(self.pools, self.costs)):
                best = self._beside(best, [seed])
            best = self._varied(self._turned(best))
            for seeds in self._affordable(add_in_order(self.pools, best, self.costs)):
                best = self._beside(best, seeds, far=True)
        else:
            best = self._within(self._search(best, SOON), self.family)
        self.after = self._estimate(best)
        out = Laid({})
        for one, choice in zip(variables, best, strict=True):
            out.add(one.pool[choice])
            self.costs.known.choice[self.pools.key_of(one)] = one.pool[choice]
        return out

    def _again(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice: that of earlier searches, where values are alike."""
        start = self.pools.again(best)
        self._take_in()
        self._look(start, first=True)
        return min(best, start, key=self._total)

    def _affordable(self, trials: Iterable[T]) -> Iterator[T]:
        """Yield what is tried next, with its candidates in the tables, while there is work left."""
        if self._spent:
            return
        for trial in trials:
            self._take_in()
            yield trial
            if self._spent:
                return

    @property
    def _spent(self) -> bool:
        return self.costs.known.work >= BUDGET

    def _from_inputs(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice, found from the input's families on."""
        starts: list[list[int]] = []
        for layouts in input_families(self.graph, self.target, self.wanted):
            start = []
            for variable in self.pools.variables:
                one = variable.part_of(layouts)
                added = not variable.fixed and variable.add(one, MOST)
                start.append(variable.place_of(one) if added else 0)
            starts.append(start)
        self._take_in()
        for start in sorted(starts, key=self._total)[:STARTS]:
            self._look(start)
            now = self._total(best)
            if self._total(start) < START_NEAR * now:
                found = self._search(start, SOON)
                if self._total(found) < now:
                    best = self._grown(found)
        return best

    def _beside(self, best: list[int], seeds: Sequence[Seed], *, far: bool = False) -> list[int]:
        """Return ``best`` or a cheaper choice, found where regions have the layouts of seeds only.

        Where all others have moved to stand beside them, these regions may choose again. With
        ``far``, candidates near such a choice are added before that, and held variables move.
        """
        now = self._total(best)
        found = self._forced(best, seeds)
        if far and self._total(found) < NEAR * now:
            found = self._turned(self._grown(found))
        for seed in seeds:
            self._free(seed.number)
        if self._total(found) < NEAR * now:
            found = self._search(found)
        if self._total(found) >= now:
            return best
        self.taken = seeds[0].name, self.pools.variables[seeds[0].number].values
        return self._grown(found)

    def _turned(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice, found by moves of the variables that are held."""
        for _ in range(GROWTHS):
            if self._spent:
                break
            now = self._total(best)
            found = move_held(best, self._tables, self._look, _worth(now))
            if found == best:
                break
            best = self._grown(self._search(found, SOON))
            if now - self._total(best) <= _worth(now):
                break
        return best

    def _varied(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice, in which results have other layouts as well."""
        if self._spent or not add_variants(self.pools, best, self.costs):
            return best
        self._take_in()
        return self._turned(self._grown(self._search(best)))

    def _within(self, best: list[int], family: str) -> list[int]:
        """Return the cheapest choice where a region has the layouts of ``family``.

        The largest region that may have them gets them. If no region may, all choose freely.
        """
        possible = self._total(best) // TOO_LARGE
        for seed in add_families(self.pools, self.costs, (family,), None):
            self._take_in()
            found = self._forced(best, [seed])
            if self._total(found) // TOO_LARGE <= possible:
                self.taken = seed.name, self.pools.variables[seed.number].values
                return self._grown(self._search(found))
            self._free(seed.number)
        return self._grown(self._search(best))

    def _forced(self, best: Sequence[int], seeds: Sequence[Seed]) -> list[int]:
        """Return a choice that is cheap where regions have the layouts of ``seeds`` only."""
        start, now = list(best), self._total(best)
        for seed in seeds:
            at = self.pools.variables[seed.number].place_of(seed.candidate)
            self._only[seed.number] = start[seed.number] = at
            self.alone[seed.number] = self._single(seed.number)
        self._look(start)
        found, bound = self._search(start, SOON), self._total(start)
        if self._total(found) >= UNKNOWN and bound + _worth(now) < now:
            # Only bounds of some switches are known, and what is forced has no other candidate.
            self._look(start, first=True)
            found = self._search(start, SOON)
        return found

    def _free(self, number: int) -> None:
        """Let a variable choose among all its candidates again."""
        del self._only[number]
        self.alone[number] = self._single(number)

    def _total(self, chosen: Sequence[int]) -> int:
        """Return the cost of a choice, with penalties for what is not possible."""
        return total(*self._tables(), chosen)

    def _grown(self, best: list[int]) -> list[int]:
        """Return a choice at least as cheap as ``best``, found among candidates near it."""
        for _ in range(GROWTHS):
            now = self._total(best)
            if not grow(self.pools, best, self.costs):
                break
            self._take_in()
            best = self._search(best)
            if now - self._total(best) <= _worth(now):
                break
        return best

    def _search(self, best: list[int], patience: int = PATIENCE) -> list[int]:
        """Return the cheapest choice whose costs are known, ``best`` or a better one."""
        single, pairs = self._tables()
        # Each of them sees only few costs change from round to round.
        guessing, knowing = (Search([len(one) for one in single], pairs) for _ in range(2))
        idle, self.exhausted = 0, False
        while idle < patience:
            tables = self._tables()
            found = guessing.cheapest(*tables, best)
            now = total(*tables, best)
            if now - total(*tables, found) <= _worth(now):
                self.exhausted = True
                break
            self._look(found)
            # Switches that were looked at for different choices may combine to a better one.
            best = knowing.cheapest(*self._tables(known=True), best)
            idle = 0 if self._total(best) < now else idle + 1
        return best

    def _take_in(self) -> None:
        """Extend the tables by the candidates that are new; keep the costs that are known."""
        for number, costs in enumerate(self.alone):
            if len(self.pools.variables[number].pool) > len(costs):
                self.alone[number] = self._single(number)
        for index, edge in enumerate(self.edges):
            sizes = tuple(len(self.pools.variables[v].pool) for v in (edge.source, edge.result))
            if sizes != edge.costs.shape:
                self.edges[index] = self._edge(edge.node)
                self.edges[index].take_over(edge)

    def _estimate(self, choices: Sequence[int]) -> Estimate:
        """Return the cost of the candidates ``choices``, without the penalties of the search."""
        costs: list[tuple[str, int]] = []
        for variable, choice in zip(self.pools.variables, choices, strict=True):
            candidate = variable.pool[choice]
            for node in variable.nodes:
                costs.append((node.name, self.costs.node(node, self.pools.all_of(node, candidate))))
            for name in variable.values:
                times = self._crossings(name)
                if times:
                    cost = self.costs.transfer(self.graph.values[name], candidate[name])
                    costs.append((name, times * cost))
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
        crossing = [(n, times) for n in variable.values if (times := self._crossings(n))]
        for index in range(len(before), len(out)):
            candidate = variable.pool[index]
            for node in variable.nodes:
                out[index] += self.costs.node(node, self.pools.all_of(node, candidate))
            for name, times in crossing:
                out[index] += times * self.costs.transfer(self.graph.values[name], candidate[name])
        self._own_costs[number] = out
        if number in self._only:
            others = np.arange(len(out)) != self._only[number]
            out = np.where(others, UNKNOWN, out)
        return out

    def _crossings(self, name: str) -> int:
        """Count the transfers of a value between DRAM and LM.

        An input or a constant is downloaded for every node that reads it. A value that the host or
        the caller reads is uploaded once.
        """
        graph = self.graph
        outside = name in graph.inputs or name in graph.constants
        given = any(name == out for _, out in graph.outputs)
        readers = self._readers.get(name, ())
        on_host = any(node.side is Side.HOST for node in readers)
        on_device = sum(
            node.side is Side.DEVICE and not stays_in_dram(name, node) for node in readers
        )
        return (on_device if outside else 0) + (given or on_host)

    def _edge(self, node: MNNode) -> Edge:
        source, result = (self.pools.of[name] for name in (node.inputs[0], node.outputs[0]))
        value = self.graph.values[node.inputs[0]]
        ours = [c[node.inputs[0]] for c in self.pools.variables[source].pool]
        theirs = [c[node.outputs[0]] for c in self.pools.variables[result].pool]
        return Edge(node, source, result, self.costs.guesses(ours, theirs, value))

    def _tables(self, *, known: bool = False) -> tuple[list[Table], dict[tuple[int, int], Table]]:
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

    def _look(self, chosen: list[int], *, first: bool = False) -> None:
        """Replace the guessed costs of the switches that ``chosen`` needs by true costs.

        The search for passes stops if they take far more steps than the guess. Then the cost is
        only a lower bound. If the switch is chosen again, or if this is the ``first`` choice, the
        search runs to the end.
        """
        for edge in self.edges:
            self._learn(edge, chosen, first=first)

    def _learn(self, edge: Edge, chosen: Sequence[int], *, first: bool = False) -> None:
        """Replace the guessed cost of one switch."""
        at = chosen[edge.source], chosen[edge.result]
        if edge.looks[at] == TRUE:
            return
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
