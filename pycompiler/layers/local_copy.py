"""MNCoreCopy: copies a value from one LM to the other."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode
from ..machine import Target
from ..tolerance import MOVE
from .base import Layer, OtherLm, SameAxes
from .fragment import Fragment, alu_step
from .scratch import vector

COPY = "MNCoreCopy"


class LocalCopy(SameAxes, OtherLm):
    """A copy of all long words, in the other LM."""

    op = COPY
    dtypes = frozenset(MNDtype) - {MNDtype.UNKNOWN}
    error = MOVE

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and changes of layout or dtype."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if {source.location, result.location} != {Location.LM0, Location.LM1}:
            yield "operands that are not one in LM0 and one in LM1"
        if (source.layout, source.dtype) != (result.layout, result.dtype):
            yield "a change of layout or dtype"

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Count a step per vector."""
        return (graph.values[node.inputs[0]].num_lw or 0) // target.cycles

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return a copy per vector."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        steps = []
        for start in range(0, source.num_lw or 0, target.cycles):
            at = tuple(range(start, start + target.cycles))
            steps.append(alu_step("lpassa", (vector(source, at),), vector(result, at)))
        return Fragment(tuple(steps))


LAYERS: tuple[Layer, ...] = (LocalCopy(),)
