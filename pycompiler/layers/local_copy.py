"""MNCoreCopy: copies a value from one LM to the other."""

from __future__ import annotations

from collections.abc import Iterator

from ..code.lines import alu_step
from ..code.nest import Nest, Repeat
from ..graph.graph import MNGraph, MNNode
from ..machine import Target
from .base import Layer, OtherLm, SameAxes, not_apart
from .scratch import vector

COPY = "MNCoreCopy"


class LocalCopy(SameAxes, OtherLm):
    """A copy of all long words, in the other LM."""

    op = COPY

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and changes of layout or dtype."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        yield from not_apart(source, result)
        if (source.layout, source.dtype) != (result.layout, result.dtype):
            yield "a change of layout or dtype"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return a copy per vector."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]

        def copy(turn: int) -> Nest:
            at = tuple(range(turn * target.cycles, (turn + 1) * target.cycles))
            yield alu_step("lpassa", (vector(source, at),), vector(result, at))

        yield Repeat((source.num_lw or 0) // target.cycles, copy)


LAYERS: tuple[Layer, ...] = (LocalCopy(),)
