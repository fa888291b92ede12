"""Picks by constant indices along one axis, and the layouts of layers that read an axis in Addr.

Every element of the result is a copy of an element at a known address, so no index is kept on the
device. :mod:`.gather` picks by indices that are data.
"""

from __future__ import annotations

from math import prod

from ..graph.graph import MNGraph, MNNode, MNValue
from ..graph.layout import Layout, Layouts, Ways
from ..machine import Target
from ..pfvm.device_functions import PICK
from .copied_elements import Picked, Selection
from .copy_operators import Copy
from .default_layout import most_words, small, whole_layout


class SpreadCopy(Copy):
    """A copy that also proposes layouts with the unchanged axes on as many units as possible."""

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the digits of the other axes; if that is too much for a PE, spread these axes."""
        near = super().layouts(node, graph, target, hints)
        if small(near.values(), target):
            return near
        wide = self._spread(node, graph, target)
        return min((near, wide), key=lambda one: most_words(one.values(), target))

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts close to the hints, and those that use the most units."""
        yield self.layouts(node, graph, target, hints)
        yield self._spread(node, graph, target)

    def spread_layout(
        self, shape: tuple[int, ...], value: MNValue, target: Target, times: int
    ) -> Layout:
        """Return a layout of ``shape``, in which an axis is as long as it has blocks."""
        return whole_layout(shape, value.dtype, target, padded=True, times=times)

    def _spread(self, node: MNNode, graph: MNGraph, target: Target) -> Layouts:
        """Return layouts that spread the axes that stay over as many units as possible."""
        blocks, value = self.blocks(node, graph), graph.values[node.inputs[0]]
        rest = tuple(blocks.get(axis, size) for axis, size in enumerate(value.shape))
        times = prod(value.shape) // prod(rest)
        wide = self.spread_layout(rest, value, target, times)
        return super().layouts(node, graph, target, {node.inputs[0]: wide})


def _pick(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Take the elements at the indices of the picked axis."""
    facts = dict(node.attributes)
    shape, index = graph.values[node.inputs[0]].shape, facts["index"]
    axis = int(str(facts.get("axis", 0))) % len(shape)
    assert isinstance(index, tuple)
    places = tuple(int(place) % shape[axis] for place in index)
    chosen = Selection((0,) * len(places), places)
    return (tuple(range(len(shape))),), {axis: chosen}


LAYERS = (SpreadCopy(PICK, _pick, frozenset({"axis", "index"})),)
