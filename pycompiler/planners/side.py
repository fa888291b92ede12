"""The pass ``side``: it decides whether a node runs on the device or on the host.

An operator runs on the host if it has no layer, if its layer does not support it in this form, or
if the front end gave it a reason. Nodes are grouped into segments; all nodes of a segment run on
the same side. The segments alternate between device and host, and there are as few as the data flow
allows. Segment numbers follow the order of execution.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import error
from ..graph.dtypes import device_dtype
from ..graph.graph import MNGraph, MNNode, Side
from ..graph.stages import stages
from ..layers.operators import LAYERS
from ..pfvm.random import RANDOM


def plan_sides(graph: MNGraph, *, strict: bool) -> MNGraph:
    """Set side, reason and segment of every node; sort them by segment (see :func:`stages`).

    ``strict`` raises P0303 for the first node that would run on the host.
    """
    nodes = [_decide(node, graph) for node in graph.nodes]
    for node in nodes:
        if strict and node.reason is not None:
            raise error("P0303", place=node.place, op=node.op, node=node.name, reason=node.reason)
    maker = {name: at for at, node in enumerate(nodes) for name in node.outputs if name}
    found = stages(
        [node.side is Side.DEVICE for node in nodes],
        [[maker[name] for name in node.inputs if name in maker] for node in nodes],
    )
    placed = [replace(node, segment=own) for node, own in zip(nodes, found, strict=True)]
    return replace(graph, nodes=tuple(sorted(placed, key=lambda node: node.segment or 0)))


def _decide(node: MNNode, graph: MNGraph) -> MNNode:
    reason = _reason(node, graph)
    return node if reason is None else replace(node, side=Side.HOST, reason=reason)


def _reason(node: MNNode, graph: MNGraph) -> str | None:
    if node.reason is not None:
        return node.reason
    layer = LAYERS.get(node.op)
    # Dropout makes random numbers only if it has the input `training_mode`.
    if node.op in RANDOM or (node.op == "Dropout" and len(node.inputs) > 2):
        return "the device makes no random numbers"
    if layer is None:
        return f"no layer for {node.op}"
    names = [name for name in (*node.inputs, *node.outputs) if name]
    if any(0 in graph.values[name].shape for name in names):
        return "a tensor without elements"
    dtypes = [device_dtype(graph.values[name].type.elem) for name in names]
    return layer.unsupported(node, graph, dtypes)
