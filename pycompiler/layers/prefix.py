"""MNCorePrefix: the first elements of some axes, without a move.

The result is the long words of its input. The digits stay, and those of the elements that are left
out become padding. So an axis may lie on units, which a Slice that copies does not allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ..graph.digits import agrees
from ..graph.graph import MNGraph, MNNode
from ..graph.layout import Layout, Level, SubAxis
from ..machine import Target
from .base import Cut, layout_of
from .default_layout import fresh_layout
from .view import View

PREFIX = "MNCorePrefix"


class Prefix(View):
    """The elements of a Slice that starts at 0 and has no steps, where they lie."""

    def __init__(self) -> None:
        super().__init__(PREFIX)

    def layouts(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> dict[str, Layout]:
        """Keep the layout of the input, or of the result."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if source.name in hints:
            return dict.fromkeys((source.name, result.name), hints[source.name])
        if result.name in hints:
            wanted = hints[result.name]
            return {source.name: extended(wanted, source.shape), result.name: wanted}
        fresh = fresh_layout(source.shape, source.dtype, target)
        return dict.fromkeys((source.name, result.name), fresh)

    def candidates(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> Iterator[dict[str, Layout]]:
        """Yield the layouts for each hint."""
        yield self.layouts(node, graph, target, hints)
        result = node.outputs[0]
        if result in hints and node.inputs[0] in hints:
            yield self.layouts(node, graph, target, {result: hints[result]})

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not the same long words, and digits that differ."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if (source.location, source.addr) != (result.location, result.addr):
            yield "operands that are not the same long words"
        ours, theirs = layout_of(source), layout_of(result)
        if not agrees(ours, theirs, result.shape, result.dtype, target):
            yield f"`{result.name}` in layout {theirs}"

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that do not change."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        for axis, size in enumerate(result.shape):
            if size == source.shape[axis] > 1:
                yield Cut(((source.name, axis), (result.name, axis)))


def extended(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """Return ``layout`` with digits in Addr for the elements that its axes do not reach."""
    stride = 1 + sum(
        (sub.size - 1) * sub.stride
        for subs in layout.axes
        for sub in subs
        if sub.level is Level.ADDR
    )
    axes: list[tuple[SubAxis, ...]] = []
    for subs, size in zip(layout.axes, shape, strict=True):
        missing = -(-size // prod(sub.size for sub in subs))
        if missing > 1:
            subs = (SubAxis(missing, Level.ADDR, stride), *subs)
            stride *= missing
        axes.append(subs)
    return Layout(tuple(axes), layout.broadcast)


LAYERS = (Prefix(),)
