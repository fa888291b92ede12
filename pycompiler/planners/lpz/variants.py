"""Candidates that are of little use before the neighbours agree: they come at the end.

They are other layouts of results, for the layouts that operands may have, and layouts close to
those that neighbours have chosen. In the pools of the first search they would take the places of
other candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.graph import MNNode
from ...graph.layout import Layouts
from ...layers.operators import LAYERS
from .costs import Costs
from .growth import MOST, carry
from .pools import Candidate, Pools, Variable

#: How many candidates a variable may have with them: results have many layouts.
_MOST = 3 * MOST


def add_variants(pools: Pools, chosen: Sequence[int], costs: Costs) -> bool:
    """Add such candidates, those beside the choice ``chosen`` first, and carry them on.

    Return whether there were any.
    """
    carried: list[list[Candidate]] = [[] for _ in pools.variables]

    def add(number: int, layouts: Layouts) -> None:
        variable = pools.variables[number]
        made = variable.part_of(layouts)
        before = len(variable.pool)
        if variable.add(made, _MOST) and len(variable.pool) > before:
            carried[number].append(made)

    for number, (variable, choice) in enumerate(zip(pools.variables, chosen, strict=True)):
        node = _free_node(variable)
        if node is None:
            continue
        pool = variable.pool
        # What the choice leads to comes first, because neighbours take few answers.
        for candidate in [pool[choice], *pool[:choice], *pool[choice + 1 :]]:
            layouts = pools.all_of(node, candidate)
            for found in LAYERS[node.op].variants(node, pools.graph, pools.target, layouts):
                add(number, found)
    for giver, taker in _neighbours(pools):
        number, source = pools.of[taker], pools.of[giver]
        node = _free_node(pools.variables[number])
        if node is None:
            continue
        hints = {taker: pools.variables[source].pool[chosen[source]][giver]}
        for found in LAYERS[node.op].late_candidates(node, pools.graph, pools.target, hints):
            add(number, found)
    if not any(carried):
        return False
    carry(pools, carried, costs)
    return True


def _free_node(variable: Variable) -> MNNode | None:
    """Return the anchored node of a variable; None if it has none, or no choice."""
    if variable.fixed or variable.region is not None or not variable.nodes:
        return None
    return variable.nodes[0]


def _neighbours(pools: Pools) -> Iterator[tuple[str, str]]:
    """Yield both values of each switch, with the data and against it."""
    for switch in pools.switches:
        yield switch.inputs[0], switch.outputs[0]
        yield switch.outputs[0], switch.inputs[0]
