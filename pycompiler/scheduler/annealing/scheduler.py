"""The scheduler ``auto_recompute_sa`` itself: from a graph with layouts to one with moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from ...errors import NoRoomError
from ...graph.graph import MNGraph
from ...machine import Target
from ...planners.overrides import Overrides, wanted_addresses, wanted_keeping, wanted_locations
from ...search_budget import SearchBudget
from ...simulation.graph_costs import Simulation
from ..address_planner import plan_addresses
from ..schedule_in_lm import SHARES, schedule_in_lm
from .problem import BANKS, Problem, problem_of
from .rebuild import rebuilt
from .search import Progress, Search, search, walked

NAME = "auto_recompute_sa"


@dataclass(eq=False)
class Annealing:
    """One run of the scheduler.

    ``costs`` has the costs of nodes and moves. ``renewed`` maps the key of an output to
    the registered value whose new value it is. ``steps`` and ``budget`` limit the search, see
    :func:`.search.search`. With a limit of time and none of steps, the search begins anew with
    other seeds until half of the time is used: the rest is for a search with less room in LM, or
    for one that computes nothing twice.

    ``plain`` is the graph as ``spill_opt`` schedules it. The result never moves more words of DRAM.
    Only emitted code shows which of both takes fewer cycles.
    """

    costs: Simulation
    renewed: Mapping[str, str]
    steps: int | None
    seed: int
    budget: SearchBudget
    progress: Progress
    plain: MNGraph | None = None
    #: What the search did, for the report.
    facts: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    _second: Callable[[], MNGraph | None] = lambda: None

    def schedule(
        self, graph: MNGraph, target: Target, fraction: float, overrides: Overrides
    ) -> MNGraph:
        """Return the graph with its moves. P0301, P0304 and P0306 as ``spill_opt``.

        Overrides that say where values lie, or that they are kept, leave nothing to search.
        """
        self.plain = schedule_in_lm(
            graph, target, fraction, overrides, self.renewed, consecutive=False
        )
        fixed = (wanted_addresses, wanted_keeping, wanted_locations)
        if any(wanted(overrides) for wanted in fixed):
            self.remarks.append(f"{NAME}: overrides say what stays in LM, so nothing is searched")
            return self.plain
        problem = problem_of(graph, target, self.costs, self.renewed)
        placed = self._placed(problem, target, fraction, overrides)
        if placed is None:
            self.remarks.append(f"{NAME}: no plan has addresses in LM: spill_opt takes its place")
            return self.plain
        if self.facts.get("remade"):
            once = replace(problem, remakable=[False] * len(problem.values))
            self._second = lambda: self._placed(once, target, fraction, overrides)
        return placed

    def second(self) -> MNGraph | None:
        """Return the result of a search that computes nothing twice; None if that is no other."""
        return self._second()

    def _placed(
        self, problem: Problem, target: Target, fraction: float, overrides: Overrides
    ) -> MNGraph | None:
        """Return the graph of the best plan that has addresses in LM; None if none has."""
        for part in SHARES:
            rooms = [int(target.words(bank.memory) * part * fraction) for bank in BANKS]
            graph = self._searched(problem, rooms, target)
            try:
                plan_addresses(graph, target, overrides, self.renewed)
            except NoRoomError:
                continue
            return graph
        return None

    def _searched(self, problem: Problem, rooms: list[int], target: Target) -> MNGraph:
        searches: list[Search] = []
        for seed in count(self.seed):
            searches.append(search(problem, rooms, self.steps, seed, self.budget, self.progress))
            if searches[-1].interrupted is not None or not self._goes_on():
                break
        tried = sum(one.tried for one in searches)
        if searches[-1].interrupted is not None:
            self.remarks.append(f"{NAME}: interrupted; the best of {tried} plans is taken")
            self.budget.depends(self.remarks[-1])
        best = min(searches, key=lambda one: (one.cost.cycles, one.cost.words))
        done = walked(problem, rooms, best.plan)
        assert done is not None
        _, actions = done
        self.facts = {
            "plans": tried,
            "seed": self.seed + searches.index(best),
            "remade": sum(action.again for action in actions),
            "estimated_cycles": [best.first.cycles, best.cost.cycles],
            "dram_words": [best.first.words, best.cost.words],
        }
        return rebuilt(problem, actions, target)

    def _goes_on(self) -> bool:
        """Whether there is time for one more search, with another seed."""
        if self.steps is not None or self.budget.seconds is None:
            return False
        going = self.budget.used < self.budget.seconds / 2
        if going:
            self.budget.depends("searches for a schedule went on as long as there was time")
        return going
