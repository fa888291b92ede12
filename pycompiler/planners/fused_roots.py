"""The reciprocal of a root is one operator on the device: its iteration gives 1/sqrt(x) itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from ..graph.graph import MNGraph, MNNode, Side
from ..layers.functions.roots import RSQRT

#: Element types whose roots the iteration computes.
_FUSED = ("float",)


def fuse_roots(graph: MNGraph, exact: Collection[str]) -> MNGraph:
    """Replace each Sqrt that only one Reciprocal reads, and that Reciprocal, by one node.

    ``exact`` are values that must stay, such as those that overrides name.
    """
    kept = {*exact, *(name for _, name in graph.outputs)}
    read = Counter(name for node in graph.nodes for name in node.inputs)
    roots = {
        node.outputs[0]: node
        for node in graph.device_nodes()
        if node.op == "Sqrt"
        and read[node.outputs[0]] == 1
        and node.outputs[0] not in kept
        and graph.values[node.outputs[0]].type.elem in _FUSED
    }
    fused = {
        node.inputs[0]: replace(node, op=RSQRT, inputs=roots[node.inputs[0]].inputs)
        for node in graph.nodes
        if _joins(node, roots.get(node.inputs[0] if node.inputs else ""))
    }
    made = {node.outputs[0]: node for node in fused.values()}
    nodes = tuple(
        made.get(node.outputs[0], node) for node in graph.nodes if node.outputs[0] not in fused
    )
    values = {name: value for name, value in graph.values.items() if name not in fused}
    return replace(graph, nodes=nodes, values=values)


def _joins(node: MNNode, root: MNNode | None) -> bool:
    if root is None or node.op != "Reciprocal" or node.side is not Side.DEVICE:
        return False
    return node.segment == root.segment
