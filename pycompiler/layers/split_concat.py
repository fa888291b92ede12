"""MNCoreInputSplit and MNCoreOutputConcat: a value in DRAM and its time slices.

Both have no code: the slices lie one after the other in the value's long words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.graph import Location, MNGraph, MNNode
from ..machine import Target
from ..pfvm.device_functions import RECUT
from .base import Layer, Placement, UntiedAxes, layout_of
from .dram_transfer_plan import plan_transfer

SPLIT, CONCAT = "MNCoreInputSplit", "MNCoreOutputConcat"
#: Operators whose operands all are values in DRAM.
IN_DRAM = frozenset({SPLIT, CONCAT, RECUT})


def slices_of(node: MNNode) -> tuple[str, tuple[str, ...]]:
    """Return the whole value of a split or concat node, and its slices in order."""
    if node.op == SPLIT:
        return node.inputs[0], node.outputs
    return node.outputs[0], node.inputs


class _Slices(UntiedAxes):
    def __init__(self, op: str):
        self.op = op

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        inputs, outputs = (len(names) for names in (node.inputs, node.outputs))
        return Placement((Location.DRAM,) * inputs, (Location.DRAM,) * outputs)

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        name, parts = slices_of(node)
        whole = graph.values[name]
        if len(parts) != layout_of(whole).slices:
            yield f"{len(parts)} slices of `{name}`, whose layout has {layout_of(whole).slices}"
        words = plan_transfer(layout_of(whole), target).dram_words
        for number, part in enumerate(parts):
            value = graph.values[part]
            if (value.location, whole.location) != (Location.DRAM, Location.DRAM):
                yield f"`{part}` outside of DRAM"
            if (value.layout, value.dtype) != (layout_of(whole).slice, whole.dtype):
                yield f"`{part}` in another layout or dtype than `{name}`"
            there = (whole.addr or 0) + number * words
            if None not in (whole.addr, value.addr) and value.addr != there:
                yield f"`{part}` at {value.addr}, not slice {number} of `{name}`"


LAYERS: tuple[Layer, ...] = (_Slices(SPLIT), _Slices(CONCAT))
