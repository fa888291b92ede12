"""The layer of MNCoreRecut."""

from __future__ import annotations

from collections.abc import Iterator

from ...code.nest import Nest
from ...graph.graph import Location, MNGraph, MNNode
from ...graph.layout import Layouts
from ...graph.runs import RUNS
from ...machine import Target
from ...pfvm.device_functions import RECUT
from ..base import Placement, UntiedAxes, layout_of
from ..data_movement import MOVED
from .code import recut_code
from .plain import plain_layout, plain_layouts

_MOST_INPUTS = 1 << 10


class Recut(UntiedAxes):
    """Runs of elements of values in DRAM, one behind the other in a value in DRAM.

    Rows of the operands are their last axes. The attribute ``runs`` says which elements follow each
    other. The pieces come to L2BM and leave it again, so the values may be larger than LM.
    """

    op = RECUT
    dtypes = frozenset(dtype for dtype in MOVED if dtype.bits in (32, 64))
    attributes = frozenset({RUNS})
    anchored = True
    in_dram = frozenset(range(_MOST_INPUTS))

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Give every operand its plain layout."""
        values = (graph.values[name] for name in (*node.inputs, *node.outputs))
        return {value.name: plain_layout(value.shape, value.dtype, target) for value in values}

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Leave all operands in DRAM."""
        count = len(dict.fromkeys(node.inputs))
        return Placement((Location.DRAM,) * count, (Location.DRAM,), mirrors=False)

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands outside of DRAM, and layouts that are not plain."""
        for name in (*node.inputs, *node.outputs):
            value = graph.values[name]
            if value.location is not Location.DRAM:
                yield f"`{name}` outside of DRAM"
            layout = layout_of(value).slice
            sizes = zip(layout.padded_shape, value.shape, strict=True)
            shape = tuple(min(padded, size) for padded, size in sizes)
            plain = plain_layouts(shape, value.dtype, target)
            if layout.axes not in [one.axes for one in plain]:
                yield f"`{name}` in layout {value.layout}"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code."""
        return recut_code(node, graph, target)


LAYERS = (Recut(),)
