"""Other layouts of results, for nodes whose operands have their layouts.

They are few, and of no use before the operands agree. In the pools of the first search they would
take the places of other operand layouts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...layers.operators import LAYERS
from .costs import Costs
from .growth import MOST, carry
from .pools import Candidate, Pools


def add_variants(pools: Pools, chosen: Sequence[int], costs: Costs) -> bool:
    """Add the other layouts of the results beside the choice ``chosen``, and carry them on.

    Return whether there were any.
    """
    carried: list[list[Candidate]] = [[] for _ in pools.variables]
    for variable, choice, own in zip(pools.variables, chosen, carried, strict=True):
        if variable.fixed or variable.region is not None or not variable.nodes:
            continue
        node, candidate = variable.nodes[0], variable.pool[choice]
        layouts = pools.all_of(node, candidate)
        for other in LAYERS[node.op].variants(node, pools.graph, pools.target, layouts):
            made = {name: other[name] for name in variable.values}
            if made != candidate and variable.add(made, MOST):
                own.append(made)
    if not any(carried):
        return False
    carry(pools, carried, costs)
    return True
