"""The search: simulated annealing over plans, from the best of a few orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emu2 import _core

from ...search_budget import SearchBudget
from .orders import first_orders
from .plan import Action, Cost, Plan
from .problem import Problem

#: How many plans are tried for each node, and at least, and at most, if the options do not say.
PER_NODE, LEAST, MOST = 40, 4_000, 60_000
SEED = 1


@dataclass(frozen=True)
class Search:
    """The result of a search: the plan, its cost, the cost of the first order, the plans tried.

    ``interrupted`` is the interrupt that ended the search early, if one did: the plan is then the
    best so far.
    """

    plan: Plan
    cost: Cost
    first: Cost
    tried: int
    interrupted: BaseException | None = None


Progress = Callable[[int, int], None]


def search(
    problem: Problem,
    rooms: Sequence[int],
    steps: int | None,
    seed: int = SEED,
    budget: SearchBudget | None = None,
    progress: Progress = lambda tried, steps: None,
) -> Search:
    """Search for a plan that takes fewer cycles and words of DRAM than the given order.

    ``steps`` is the number of plans to try; None chooses it by the number of nodes. The search ends
    early when the time of ``budget`` is over. Without a limit, the same arguments give the same
    result. An interrupt ends the search too; any other exception of ``progress`` is raised.
    """
    orders = list(first_orders(problem))
    walk = walked(problem, rooms, Plan(orders[0]))
    assert walk is not None
    first, _ = walk
    wanted = min(MOST, max(LEAST, PER_NODE * len(problem.inputs))) if steps is None else steps
    budget = budget or SearchBudget(None, {})

    def go_on(tried: int, cycles: int, words: int) -> bool:
        progress(tried, wanted)
        budget.found(f"plans of seed {seed}", cycles)
        if budget.left != 0:
            return True
        budget.depends(f"the search for a schedule ended after {tried} of {wanted} plans")
        return False

    nodes, values = _rows(problem)
    ((order, bias, remade, picked), cycles, words, tried), stopped = _core.anneal_schedule(
        nodes, values, (rooms[0], rooms[1]), problem.words_per_cycle, orders, wanted, seed, go_on
    )
    if stopped is not None and not isinstance(stopped, KeyboardInterrupt):
        raise stopped
    plan = Plan(tuple(order), dict(bias), frozenset(remade), dict(picked))
    return Search(plan, Cost(cycles, words), first, tried, stopped)


def walked(problem: Problem, rooms: Sequence[int], plan: Plan) -> tuple[Cost, list[Action]] | None:
    """Return what a plan costs and does; None if it computes something again that it cannot.

    ``rooms`` are the long words of LM0 and LM1 that may be used.
    """
    row = plan.order, list(plan.bias.items()), sorted(plan.remade), list(plan.picked.items())
    walk = _core.walk_schedule(*_rows(problem), (rooms[0], rooms[1]), row)
    if walk is None:
        return None
    cycles, words, deeds = walk
    actions = []
    for kind, node, place, number, again in deeds:
        value, bank = place or (-1, -1)
        choice = None if number is None else problem.choices[node][number]
        actions.append(Action(kind, node, value, bank, choice, again))
    return Cost(cycles, words), actions


def _rows(problem: Problem) -> tuple[list[_core._NodeRow], list[_core._ValueRow]]:
    nodes: list[_core._NodeRow] = []
    for at, inputs in enumerate(problem.inputs):
        choices = [
            (one.inputs, one.outputs, one.taken if one.taken >= 0 else None, one.cycles)
            for one in problem.choices[at]
        ]
        segment = problem.segment[at]
        before = sorted(problem.before[at])
        nodes.append((inputs, problem.outputs[at], choices, before, segment or 0))
    values: list[_core._ValueRow] = [
        (
            problem.maker[at] if problem.maker[at] >= 0 else None,
            problem.size[at],
            problem.words[at],
            problem.down[at],
            problem.up[at],
            problem.copy[at],
            problem.given[at],
            problem.stored[at],
            problem.remakable[at],
        )
        for at in range(len(problem.values))
    ]
    return nodes, values
