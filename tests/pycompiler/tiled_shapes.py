"""The shape that cutting axes into tiles gives, for tests."""

from __future__ import annotations

from pycompiler.graph.graph import MNGraph, MNNode
from pycompiler.layers.tiling.axes import other_axes, tiled_axes


def result_shape(node: MNNode, graph: MNGraph) -> tuple[int, ...]:
    """Return the shape of the result: the counts of tiles before the axes that are cut."""
    axes = [(axis.source, axis.reach, axis.count) for axis in tiled_axes(node, graph)]
    axes += [(axis.source, axis.reach, 1) for axis in other_axes(node, graph)]
    sizes: list[int] = []
    for _, reach, count in sorted(axes):
        sizes += [count, reach] if count > 1 else [reach]
    return tuple(sizes)
