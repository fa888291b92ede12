"""Depthwise convolutions: a channel of the result is a weighted sum over its own channel.

The axes with taps lie in Addr, in the input and in the result. So a tap is an address, and nothing
is copied: each long word of the result takes one multiply-add per tap. Taps on padding are left
out, so padding costs nothing. The weights of a channel lie on the units and words of its pixels.
They go to a register file first, because the results use the port of their LM.

In `mixed` the factors are halves like those of other convolutions: a long word has four of them,
all of channels. Their sums are singles, and a result is rounded to half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..code.nest import Nest
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..graph.layout import Broadcast, Layout, Layouts, Level, SubAxis, Ways
from ..machine import Target
from ..pfvm.windows import CONVOLUTION, DEPTHWISE
from ..tolerance import SUM
from .base import Cut, Placement, distinct, layout_of, other_layouts, outside_lm
from .copied_elements import Picked, Selection
from .depthwise_code import CHANNELS, depthwise_code, tapped_axes
from .half_conversions import packed_layout, widened
from .picks import SpreadCopy
from .products.roles import PRECISION


class Depthwise(SpreadCopy):
    """A convolution in as many groups as there are channels, in the input and in the result."""

    dtypes = frozenset({MNDtype.FLOAT})
    error = SUM

    def __init__(self) -> None:
        super().__init__(DEPTHWISE, _first_taps, CONVOLUTION | {PRECISION})

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the digits of axes without taps, or spread these axes over the units."""
        found = super().layouts(_pixels(node), graph, target, hints)
        if not _packs(node, graph, found):
            found = self._spread(_pixels(node), graph, target)
        return {**found, **_weights_beside(node, graph, found[node.outputs[0]])}

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts close to the hints, and those that use the most units."""
        for found in super().candidates(_pixels(node), graph, target, hints):
            if _packs(node, graph, found):
                yield {**found, **_weights_beside(node, graph, found[node.outputs[0]])}

    def spread_layout(
        self, shape: tuple[int, ...], value: MNValue, target: Target, times: int
    ) -> Layout:
        """Return the layout of the pixels that uses the most units; halves lie along channels."""
        if value.dtype is MNDtype.HALF:
            return packed_layout(shape, CHANNELS, target)
        return super().spread_layout(shape, value, target, times)

    def blocks(self, node: MNNode, graph: MNGraph) -> dict[int, int]:
        """Return the axes of the windows; their elements are read one by one."""
        return dict.fromkeys(tapped_axes(node, graph), 1)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes without taps. The weights have the axis of the channels."""
        for cut in super().cuts(_pixels(node), graph):
            more = tuple((name, 0) for name in node.inputs[1:] if name)
            channels = (node.outputs[0], CHANNELS) in cut.axes
            yield replace(cut, axes=(*cut.axes, *more)) if channels else cut

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Read the pixels from one LM; the other has the result and the weights."""
        others = len(distinct([name for name in node.inputs if name])) - 1
        return Placement((Location.LM0, *(Location.LM1,) * others), (Location.LM1,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield axes with taps on units, and weights that do not lie beside their pixels."""
        yield from super().refusals(_pixels(node), graph, target)
        value = graph.values[node.outputs[0]]
        result = layout_of(value)
        if not _packs(node, graph, {value.name: result}):
            yield f"`{value.name}` without the channels in its long words"
            return
        beside = _weights_beside(node, graph, result)
        yield from outside_lm(beside, graph)
        yield from other_layouts(beside, graph, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: a multiply-add per tap for every vector of the result."""
        return depthwise_code(node, graph, target)


def in_halves(node: MNNode) -> bool:
    """Whether a node is a depthwise convolution of halves."""
    return node.op == DEPTHWISE and dict(node.attributes).get(PRECISION) == "half"


def _packs(node: MNNode, graph: MNGraph, layouts: Layouts) -> bool:
    """Whether long words of halves have channels only: their sums become two long words."""
    value = graph.values[node.outputs[0]]
    return value.dtype is not MNDtype.HALF or widened(layouts[value.name], CHANNELS) is not None


def _pixels(node: MNNode) -> MNNode:
    """Return the node as a reader of its pixels only."""
    return replace(node, inputs=node.inputs[:1])


def _first_taps(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Return a tap of every window, which tells the axes that change."""
    rank = len(graph.values[node.outputs[0]].shape)
    picked = {}
    for axis, window in tapped_axes(node, graph).items():
        places = window.taps.max(1)
        source = tuple(np.where(places >= 0, 0, -1).tolist())
        picked[axis] = Selection(source, tuple(np.maximum(places, 0).tolist()))
    return (tuple(range(rank)),), picked


def _weights_beside(node: MNNode, graph: MNGraph, result: Layout) -> Layouts:
    """Return the layouts of weights and bias: channels as in the result, copies elsewhere."""
    others = (sub for axis, subs in enumerate(result.axes) if axis != CHANNELS for sub in subs)
    copies = (
        Broadcast(sub.level, sub.size, sub.stride)
        for sub in others
        if sub.level is not Level.ADDR and sub.size > 1
    )
    broadcast = (*result.broadcast, *copies)
    found = {}
    for name in node.inputs[1:]:
        if not name:
            continue
        stride = 1
        axes: list[tuple[SubAxis, ...]] = []
        for size in reversed(graph.values[name].shape[1:]):
            axes.append((SubAxis(size, Level.ADDR, stride),) if size > 1 else ())
            stride *= size
        channels: list[SubAxis] = []
        for sub in reversed(result.axes[CHANNELS]):
            if sub.level is Level.ADDR:
                sub, stride = sub._replace(stride=stride), stride * sub.size
            channels.append(sub)
        made = Layout((tuple(reversed(channels)), *reversed(axes)), broadcast)
        if graph.values[name].dtype is not graph.values[node.inputs[0]].dtype:
            # The bias of halves is singles.
            made = widened(made, 0) or made
        found[name] = made
    return found


LAYERS = (Depthwise(),)
