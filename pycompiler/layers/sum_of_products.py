"""Sums of products of two values: the products are added up as they are made.

A reduction of a product would write all products to LM and read them again. Here one instruction
multiplies and adds. The planners make the operator of a Mul and the ReduceSum that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..graph.graph import Location, MNGraph, MNNode
from ..machine import Target
from ..tolerance import SUM
from .base import Frame, Layer, Placement, layout_of, misfits, operand_addresses
from .padding import no_bits
from .reduce import Factor, Reduce
from .reduce_kinds import SUMS_OF_PRODUCTS

#: The operator, which the compiler makes of others; its attributes are those of the ReduceSum.
SUM_OF_PRODUCTS = "MNCoreSumOfProducts"


class SumOfProducts(Reduce):
    """``sum(a * b)`` of two values with the same shape, over any axes."""

    operands = 2

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Work over the first factor; the second one has the same digits."""
        found = super().frame(node, graph)
        if node.inputs[1] == node.inputs[0]:
            return found
        return replace(found, values=(*found.values, (node.inputs[1], found.values[0][1])))

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Read the factors from both LMs: every step needs a long word of each."""
        if node.inputs[1] == node.inputs[0]:
            return super().place(node, graph)
        return Placement((Location.LM0, Location.LM1), (Location.LM0,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield what a reduction refuses, and factors that do not lie beside each other."""
        yield from super().refusals(node, graph, target)
        one, other = (graph.values[name] for name in node.inputs)
        if one.name == other.name:
            return
        if {one.location, other.location} != {Location.LM0, Location.LM1}:
            yield "factors that are not in different LMs"
        if no_bits(other, self.reduced(node, graph)):
            yield f"padding of `{other.name}` on units whose distance is no power of two"
        problem = misfits(layout_of(one), layout_of(other), range(len(one.shape)), target)
        if problem is not None:
            yield f"`{other.name}`: {problem}"

    def factors(self, node: MNNode, graph: MNGraph) -> tuple[Factor, ...]:
        """Return both factors, with the long words of the second for those of the first."""
        one, other = (graph.values[name] for name in node.inputs)
        words = operand_addresses(
            layout_of(one),
            layout_of(other),
            range(len(one.shape)),
            one.num_lw or 0,
            other.num_lw or 0,
        )
        return Factor(one), Factor(other, tuple(words.tolist()))


LAYERS: Sequence[Layer] = (SumOfProducts(SUM_OF_PRODUCTS, SUMS_OF_PRODUCTS, SUM),)
