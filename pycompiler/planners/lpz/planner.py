"""The planner "lpz": it chooses the layouts with the fewest steps.

The steps of switches, nodes and transfers count. It takes long to plan the passes of a switch, so
the search begins with guesses of the costs of switches. It plans passes only for the switches that
the cheapest choice needs. If their true costs make another choice cheaper, that choice is looked
at next. The result never costs more than the first-arrival layouts, with which the search starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ...graph.graph import MNGraph
from ...graph.layout import Layouts
from ...graph.plan import Laid
from ...machine import Target
from ..first_arrival import FirstArrival
from .across import add_across
from .costs import TOO_LARGE, Costs
from .families import add_everywhere, add_families, input_families
from .growth import ANSWERS, MANY, MOST, Seed, carry_seeds, grow
from .held import move_held
from .in_order import add_in_order
from .known import Known
from .pools import Pools
from .tables import UNKNOWN, Estimate, Tables
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
BUDGET = 200_000
#: After this much work, a graph of which most was planned before is planned near that plan only:
#: what trials find was found then.
CHEAP = 20_000
#: How often the pools grow near the choice, at most.
GROWTHS = 4


def _worth(now: int) -> float:
    """Return the least saving that is worth a look; penalties are no steps."""
    return now % TOO_LARGE * WORTH


class LayoutPlannerZ:
    """The planner of one graph; its anchored nodes must have switches around them.

    ``family`` names the family that the largest region gets if that is possible; None is any.
    ``stands`` maps values to those of a graph that was planned before, near which this is planned.
    """

    def __init__(
        self,
        graph: MNGraph,
        target: Target,
        wanted: Layouts,
        known: Known | None = None,
        family: str | None = None,
        stands: Mapping[str, str] | None = None,
    ):
        self.graph, self.target, self.wanted = graph, target, wanted
        self.family, self.near = family, stands is not None
        #: The family that gave the choice, and the values of its region.
        self.taken: tuple[str, tuple[str, ...]] | None = None
        #: Whether the last search ended because nothing cheaper was left to look at.
        self.exhausted = False
        self.costs = Costs(graph, target, known)
        first = FirstArrival(graph, target, wanted).run()
        self.pools = Pools(graph, target, wanted, first, self.costs, stands or {})
        #: Estimates for the first-arrival layouts (before) and for the chosen ones (after).
        self.before = self.after = Estimate()

    def run(self) -> Laid:
        """Return the layout of every value on the device, and the plans of nodes."""
        self.pools.fill()
        variables = self.pools.variables
        self.tables, best = Tables(self.pools, self.costs), [0] * len(variables)
        self.tables.look(best, first=True)
        self.before = self.tables.estimate(best)
        if self.family is not None:
            best = self._within(self._search(best, SOON), self.family)
        else:
            # An earlier search may have chosen something cheaper where values are alike.
            start, alike = self.pools.again(best)
            self.tables.take_in()
            self.tables.look(start, first=True)
            best = min(best, start, key=self.tables.total)
            near = alike and (self.near or self.costs.known.work > CHEAP)
            best = self._turned(self._grown(self._search(best))) if near else self._anew(best)
            best = self._turned(self._grown(best, MANY))
        self.after = self.tables.estimate(best)
        out = Laid({})
        for one, choice in zip(variables, best, strict=True):
            out.add(one.pool[choice])
            self.pools.keep(one, one.pool[choice])
        return out

    def _anew(self, best: list[int]) -> list[int]:
        """Return the cheapest choice that all trials find."""
        best = best if self.costs.known.apart else self._everywhere(best)
        best = self._turned(self._from_inputs(self._grown(self._search(best))))
        if self.pools.cross_groups:
            pairs = add_across(self.pools, best, self.costs)
            for seeds in self._affordable([pairs] if pairs else []):
                best = self._beside(best, seeds, far=True)
        for seeds in self._affordable(add_families(self.pools)):
            best = self._beside(best, seeds)
        best = self._varied(self._turned(best))
        together = add_everywhere(self.pools) if self.costs.known.apart else ()
        for seeds in self._affordable(chain(add_in_order(self.pools, best), together)):
            best = self._beside(best, seeds, far=True)
        return best

    def _everywhere(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice, in which all regions have layouts of one family.

        A family is looked into if the guesses of switches say that it may be cheaper.
        """
        for seeds in self._affordable(add_everywhere(self.pools)):
            now, start = self.tables.total(best), self.tables.only(best, seeds)
            search, found = self.tables.search(), best
            if search.total(search.cheapest(start)) < now:
                found = self._forced(best, seeds, now)
            for seed in seeds:
                self.tables.free(seed.number)
            best = min(best, found, key=self.tables.total)
        return best

    def _affordable(self, trials: Iterable[list[Seed]]) -> Iterator[list[Seed]]:
        """Yield what is tried next, with its candidates in the tables, while there is work left."""
        left = iter(trials)
        while not self._spent and (seeds := next(left, None)) is not None:
            self._take_in(seeds)
            yield seeds

    def _take_in(self, seeds: Sequence[Seed]) -> None:
        carry_seeds(self.pools, seeds, self.costs)
        self.tables.take_in()

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
        self.tables.take_in()
        for start in sorted(starts, key=self.tables.total)[:STARTS]:
            self.tables.look(start)
            now = self.tables.total(best)
            if self.tables.total(start) < START_NEAR * now:
                found = self._search(start, SOON)
                if self.tables.total(found) < now:
                    best = self._grown(found)
        return best

    def _beside(self, best: list[int], seeds: Sequence[Seed], *, far: bool = False) -> list[int]:
        """Return ``best`` or a cheaper choice, found where regions have the layouts of seeds only.

        Where all others have moved to stand beside them, these regions may choose again. With
        ``far``, candidates near such a choice are added before that, and held variables move.
        """
        now = self.tables.total(best)
        found = self._forced(best, seeds, now)
        if far and self.tables.total(found) < NEAR * now:
            found = self._turned(self._grown(found))
        for seed in seeds:
            self.tables.free(seed.number)
        if self.tables.total(found) < NEAR * now:
            found = self._search(found, SOON)
        if self.tables.total(found) >= now:
            return best
        self.taken = seeds[0].name, self.pools.variables[seeds[0].number].values
        return self._grown(found)

    def _turned(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice, found by moves of the variables that are held."""
        for _ in range(GROWTHS):
            if self._spent:
                break
            now = self.tables.total(best)
            found = move_held(best, self.tables.search, self.tables.look, _worth(now))
            if found == best:
                break
            best = self._grown(self._search(found, SOON))
            if now - self.tables.total(best) <= _worth(now):
                break
        return best

    def _varied(self, best: list[int]) -> list[int]:
        """Return ``best`` or a cheaper choice, in which results have other layouts as well."""
        if self._spent or not add_variants(self.pools, best, self.costs):
            return best
        self.tables.take_in()
        return self._turned(self._grown(self._search(best)))

    def _within(self, best: list[int], family: str) -> list[int]:
        """Return the cheapest choice where a region has the layouts of ``family``.

        The largest region that may have them gets them. If no region may, all choose freely.
        """
        possible = self.tables.total(best) // TOO_LARGE
        for [seed] in add_families(self.pools, (family,), None):
            self._take_in([seed])
            found = self._forced(best, [seed], self.tables.total(best))
            if self.tables.total(found) // TOO_LARGE <= possible:
                self.taken = seed.name, self.pools.variables[seed.number].values
                return self._grown(self._search(found))
            self.tables.free(seed.number)
        return self._grown(self._search(best))

    def _forced(self, best: Sequence[int], seeds: Sequence[Seed], now: int) -> list[int]:
        """Return a choice that is cheap where regions have the layouts of ``seeds`` only.

        ``now`` is the cost of ``best``.
        """
        start = self.tables.only(best, seeds)
        self.tables.look(start)
        found, bound = self._search(start, SOON), self.tables.total(start)
        if self.tables.total(found) >= UNKNOWN and bound + _worth(now) < now:
            # Only bounds of some switches are known, and what is forced has no other candidate.
            self.tables.look(start, first=True)
            found = self._search(start, SOON)
        return found

    def _grown(self, best: list[int], answers: int = ANSWERS) -> list[int]:
        """Return a choice at least as cheap as ``best``, found among candidates near it."""
        for _ in range(GROWTHS):
            now = self.tables.total(best)
            if not grow(self.pools, best, self.costs, answers):
                break
            self.tables.take_in()
            best = self._search(best)
            if now - self.tables.total(best) <= _worth(now):
                break
        return best

    def _search(self, best: list[int], patience: int = PATIENCE) -> list[int]:
        """Return the cheapest choice whose costs are known, ``best`` or a better one."""
        idle, self.exhausted = 0, False
        while idle < patience:
            search = self.tables.search()
            found, now = search.cheapest(best), search.total(best)
            if now - search.total(found) <= _worth(now):
                self.exhausted = True
                break
            self.tables.look(found)
            # Switches that were looked at for different choices may combine to a better one.
            best = self.tables.search(known=True).cheapest(best)
            idle = 0 if self.tables.total(best) < now else idle + 1
        return best
