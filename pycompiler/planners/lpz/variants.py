"""Other layouts of results, for the layouts that operands may have.

They are of little use before the operands agree. In the pools of the first search they would take
the places of other operand layouts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...layers.operators import LAYERS
from .costs import Costs
from .growth import MOST, carry
from .pools import Candidate, Pools


def add_variants(pools: Pools, chosen: Sequence[int], costs: Costs) -> bool:
    """Add other layouts of results, those beside the choice ``chosen`` first, and carry them on.

    Return whether there were any.
    """
    carried: list[list[Candidate]] = [[] for _ in pools.variables]
    for variable, choice, own in zip(pools.variables, chosen, carried, strict=True):
        if variable.fixed or variable.region is not None or not variable.nodes:
            continue
        node, pool = variable.nodes[0], variable.pool
        # What the choice leads to comes first, because neighbours take few answers.
        for candidate in [pool[choice], *pool[:choice], *pool[choice + 1 :]]:
            layouts = pools.all_of(node, candidate)
            for other in LAYERS[node.op].variants(node, pools.graph, pools.target, layouts):
                made = {name: other[name] for name in variable.values}
                before = len(pool)
                if variable.add(made, MOST) and len(pool) > before:
                    own.append(made)
    if not any(carried):
        return False
    carry(pools, carried, costs)
    return True
