"""More candidates near a choice.

The first candidates of a variable are made before its neighbours have chosen. So a neighbour of a
chosen layout may have no candidate that is cheap together with it. Here the chosen layouts are
propagated through the graph, with the data flow and against it. Every variable adds the few
candidates that are cheapest together with the layout that reached it, and propagates these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...graph.layout import Layout
from .costs import TOO_LARGE, Costs
from .pools import POOL, Candidate, Pools, Variable

#: How many answers to one layout a variable gives at first, and how many at most.
ANSWERS, MANY = 2, 8
#: How many candidates a variable may have in the end.
MOST = 8 * POOL


class Seed(NamedTuple):
    """The candidate of the family ``name`` for variable ``number``, a region."""

    name: str
    number: int
    candidate: Candidate


def carry_seeds(pools: Pools, seeds: Sequence[Seed], costs: Costs) -> None:
    """Carry the candidates of seeds through the graph."""
    carried: list[list[Candidate]] = [[] for _ in pools.variables]
    for seed in seeds:
        carried[seed.number].append(seed.candidate)
    carry(pools, carried, costs)


def grow(pools: Pools, chosen: Sequence[int], costs: Costs, answers: int = ANSWERS) -> bool:
    """Add candidates near the choice ``chosen``; whether there are any new ones.

    Each variable gives at most so many ``answers`` to a layout, and passes on twice as many.
    """
    carried: list[list[Candidate]] = [
        [variable.pool[choice]] for variable, choice in zip(pools.variables, chosen, strict=True)
    ]
    return carry(pools, carried, costs, answers)


def carry(
    pools: Pools, carried: Sequence[list[Candidate]], costs: Costs, answers: int = ANSWERS
) -> bool:
    """Carry candidates through the graph, with the data and against it; whether any were new.

    ``carried`` has the candidates to carry for each variable; new ones are appended. ``answers``
    are those of :func:`grow`.
    """
    before = sum(len(variable.pool) for variable in pools.variables)
    for node in pools.switches:
        _pass_on(pools, carried, costs, node.inputs[0], node.outputs[0], answers)
    for node in reversed(pools.switches):
        _pass_on(pools, carried, costs, node.outputs[0], node.inputs[0], answers)
    return sum(len(variable.pool) for variable in pools.variables) > before


def _pass_on(
    pools: Pools,
    carried: Sequence[list[Candidate]],
    costs: Costs,
    giver: str,
    taker: str,
    answers: int,
) -> None:
    number = pools.of[taker]
    variable = pools.variables[number]
    if variable.fixed:
        return
    for layout in _layouts(carried[pools.of[giver]], giver):
        if len(carried[number]) > 2 * answers:
            return
        for answer in _answers(pools, variable, costs, taker, layout)[:answers]:
            if answer not in carried[number] and variable.add(answer, MOST):
                carried[number].append(answer)


def _layouts(candidates: Iterable[Candidate], name: str) -> list[Layout]:
    return list(dict.fromkeys(candidate[name] for candidate in candidates))


def _answers(
    pools: Pools, variable: Variable, costs: Costs, name: str, layout: Layout
) -> list[Candidate]:
    """Return the candidates of a variable that are cheapest beside ``layout`` of its value."""
    value = pools.graph.values[name]
    if variable.region is not None:
        found = pools.region_candidate(variable, (value, layout, None))
        return [found] if found is not None else []
    if not variable.nodes or (name, layout) in variable.answers:
        return variable.answers.get((name, layout), [{name: layout}])
    node = variable.nodes[0]
    answers = list(pools.anchored_candidates(variable, {name: layout}))
    near = costs.guesses(value).table([layout], [answer[name] for answer in answers])[0]
    ranked = sorted(
        (int(steps) + costs.node(node, pools.all_of(node, answer)), index)
        for index, (answer, steps) in enumerate(zip(answers, near, strict=True))
    )
    best = [answers[index] for steps, index in ranked[:MANY] if steps < TOO_LARGE]
    variable.answers[name, layout] = best
    return best
