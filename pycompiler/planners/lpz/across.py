"""Pairs of products across groups: the columns of the first one lie where the second has its terms.

Each group then works on its own part of what is between, and only the sums of the second product
cross groups. Either product alone gains little by that, so no search begins to move there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...graph.graph import MNNode
from ...layers.matmul import PRODUCTS
from ...layers.products.choose import across_groups
from .costs import TOO_LARGE, Costs
from .growth import MOST, Seed
from .pools import Candidate, Pools, Variable

#: The name of what comes of it, beside those of families.
NAME = "across_groups"


def add_across(pools: Pools, chosen: Sequence[int], costs: Costs) -> list[Seed]:
    """Add the candidates of all pairs, those with the most between them first; return them."""
    seeds: dict[int, Seed] = {}
    for makers, second in _pairs(pools):
        if seeds.keys() & {*makers, second}:
            continue
        found: dict[int, Candidate] = {}
        behind = pools.variables[second]
        between = behind.nodes[0].inputs[0]
        for first in makers:
            before = pools.variables[first]
            own = pools.all_of(before.nodes[0], before.pool[chosen[first]])
            # The rows stay where they are, and where those of other makers are.
            made = _cheapest(pools, before, own, costs, terms=False)
            if made is not None:
                found[first] = made
        if len(found) < len(makers):
            continue
        rows = {between: found[makers[0]][pools.variables[makers[0]].nodes[0].outputs[0]]}
        last = _cheapest(pools, behind, rows, costs, terms=True)
        if last is not None:
            found[second] = last
            ready = [pools.variables[number].add(one, MOST) for number, one in found.items()]
            if all(ready):
                seeds |= {number: Seed(NAME, number, one) for number, one in found.items()}
    return list(seeds.values())


def _cheapest(
    pools: Pools, variable: Variable, hints: Candidate, costs: Costs, *, terms: bool
) -> Candidate | None:
    """Return the candidate of a product that takes the fewest steps; None if there is none."""
    node = variable.nodes[0]
    made = across_groups(node, pools.graph, pools.target, hints, terms=terms)
    found = [(costs.node(node, layouts), layouts) for layouts in made]
    steps, best = min(found, key=lambda one: one[0], default=(TOO_LARGE, None))
    return variable.part_of(best) if best is not None and steps < TOO_LARGE else None


def _pairs(pools: Pools) -> list[tuple[list[int], int]]:
    """Return the variables of products, and that of the one that reads what they make.

    Between them are sums and functions of elements only: no sum along the columns, which lie on all
    groups. Those with the most elements between them come first.
    """
    values, found = pools.graph.values, list[tuple[int, list[int], int]]()
    makers = {name: node for node in pools.graph.nodes for name in node.outputs}
    for number, variable in enumerate(pools.variables):
        node = _product(variable)
        if node is None:
            continue
        shape = values[node.inputs[0]].shape
        first, left, seen = list[int](), [node.inputs[0]], set[str]()
        while left:
            name = left.pop()
            maker = makers.get(name)
            if name in seen:
                continue
            seen.add(name)
            if maker is not None and maker.op in PRODUCTS:
                if _product(pools.variables[pools.of[name]]) is not maker:
                    break
                first.append(pools.of[name])
                continue
            read = [] if maker is None else [one for one in maker.inputs if one in makers]
            if not read or any(values[one].shape != shape for one in read):
                break
            left += read
        else:
            found.append((-prod(shape), first, number))
    return [one[1:] for one in sorted(found)]


def _product(variable: Variable) -> MNNode | None:
    """Return the product of a variable that may choose; None if it is none."""
    if variable.fixed or not variable.nodes or variable.nodes[0].op not in PRODUCTS:
        return None
    return variable.nodes[0]
