"""MNCoreCrop: removes elements at the ends of axes, without code.

The result has the same long words in the same layout. The removed elements become padding of the
layout. So the axis may be on any level, while a Slice needs it in Addr.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..errors import GraphError
from ..graph.digits import agrees, parts
from ..graph.graph import MNGraph, MNNode
from ..graph.layout import Layout, Layouts, Level
from ..graph.verify import layout_ranges
from ..machine import Target
from .base import Cut, Layer, layout_of
from .default_layout import built, dense, fresh_layout
from .reshape import one_run
from .view import View

CROP = "MNCoreCrop"


class Crop(View):
    """The first elements of some axes; all other elements stay where they are, unread."""

    def __init__(self) -> None:
        super().__init__(CROP)

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the layout of the input, or else one that is close to that of the result."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        tries = [hints[source.name]] if source.name in hints else []
        if result.name in hints:
            tries += self._longer(node, graph, target, hints[result.name])
        tries += [fresh_layout(source.shape, source.dtype, target)]
        for layout in tries:
            if self._keeps(node, graph, target, layout):
                return {source.name: layout, result.name: layout}
        run = one_run(source.shape, source.dtype, target)
        return {source.name: run, result.name: run}

    candidates = Layer.candidates

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield layouts under which elements would have to move."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if (source.location, source.addr) != (result.location, result.addr):
            yield "operands that are not the same long words"
        ours, theirs = layout_of(source), layout_of(result)
        kept = self._keeps(node, graph, target, ours)
        if not kept or not agrees(ours, theirs, result.shape, result.dtype, target):
            yield f"`{result.name}` in layout {theirs}"

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes of which nothing is left out."""
        source, result = node.inputs[0], node.outputs[0]
        pairs = zip(graph.values[source].shape, graph.values[result].shape, strict=True)
        for axis, (size, kept) in enumerate(pairs):
            if size == kept > 1:
                yield Cut(((source, axis), (result, axis)))

    def _keeps(self, node: MNNode, graph: MNGraph, target: Target, layout: Layout) -> bool:
        """Whether a layout of the input is one of the result, with all its units in use."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        try:
            for value in (source, result):
                words = target.words("dram")
                layout.check(value.shape, value.dtype, layout_ranges(target), words)
        except GraphError:
            return False
        return all(
            size == kept
            or not subs
            or subs[0].level is Level.ADDR
            or prod(sub.size for sub in subs[1:]) < kept
            for subs, size, kept in zip(layout.axes, source.shape, result.shape, strict=True)
        )

    def _longer(
        self, node: MNNode, graph: MNGraph, target: Target, layout: Layout
    ) -> Iterator[Layout]:
        """Yield a layout of the result, and one with its uppermost digits in Addr made longer."""
        yield layout
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        found = {axis: list(own) for axis, own in enumerate(parts(layout, result.shape))}
        for axis, own in found.items():
            size = source.shape[axis]
            if own and own[-1].level is Level.ADDR:
                own[-1] = own[-1]._replace(size=-(-size // own[-1].lo))
        made = built(source.shape, dense(found), layout, source.dtype, target)
        if made is not None:
            yield made


LAYERS = (Crop(),)
