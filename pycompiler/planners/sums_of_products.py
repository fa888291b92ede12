"""A product that only a sum reads becomes part of it: the products need no room in LM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ..graph.draft import Edit
from ..graph.graph import MNNode
from ..graph.layout import UNIT_LEVELS, Level
from ..graph.rewrite import Part, Pattern, Rewrite
from ..layers.operators import LAYERS
from ..layers.sum_of_products import SUM_OF_PRODUCTS
from ..machine import Target


def _few(count: int, target: Target) -> bool:
    """Whether so many products take a step: less than the padding of a second factor.

    guess: a vector for each PE of a MAB may lie in one PE, where nothing has padding.
    """
    ranges = [target.level_range[level.value] for level in UNIT_LEVELS]
    return target.cycles * target.level_range[Level.PE.value] < count <= prod(ranges)


def _joined(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Add up products as they are made: sum(x * y) of two values of one shape is one node."""
    total, product = nodes
    if len(total.inputs) > 1:
        return None
    made = replace(total, op=SUM_OF_PRODUCTS, inputs=product.inputs)
    values = [part.values[name] for name in product.inputs]
    dtypes = [value.dtype for value in (*values, part.values[total.outputs[0]])]
    shape, target = part.values[product.outputs[0]].shape, part.facts.target
    # Only a dot product of two values has more factors than results.
    joins = {value.shape for value in values} == {shape} and not (
        len({*made.inputs}) > prod(part.values[total.outputs[0]].shape)
        and _few(prod(shape), target)
    )
    if not joins or LAYERS[SUM_OF_PRODUCTS].unsupported(made, part.graph, dtypes) is not None:
        return None
    return Edit(gone={product.name}, instead={total.name: made})


SUM_PRODUCTS = Rewrite(
    "sum_products",
    "a product is not rounded before it is added",
    Pattern(frozenset({"ReduceSum"}), (Pattern(frozenset({"Mul"})),)),
    _joined,
)
