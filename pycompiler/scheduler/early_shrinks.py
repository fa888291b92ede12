"""Move nodes that make a value smaller to where the value is made.

A residual connection often reads a value long after its other readers, and reads only a part of it,
such as every second pixel. Until then the whole value must be kept. If the nodes that extract the
part run at once, only the part must be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.graph import MNGraph, MNNode, Side


def shrink_early(graph: MNGraph) -> MNGraph:
    """Return the graph with such nodes directly after the node that makes their operand.

    A chain of nodes moves if each of them reads only the result of the one before, if the first one
    is the last reader of a value, not the only one, and if the last one makes less than that value
    has. Nodes of time slices stay where they are.
    """
    nodes = list(graph.nodes)
    makers = {name: node for node in nodes for name in node.outputs}
    readers = graph.readers()
    given = {name for _, name in graph.outputs}
    for value, found in readers.items():
        maker = makers.get(value)
        if maker is None or len(found) < 2 or value in given or not _moves(maker):
            continue
        chain = _chain(graph, found[-1], value, readers)
        if not chain or any(node.segment != maker.segment for node in (*chain, *found)):
            continue
        moved = {node.name for node in chain}
        nodes = [node for node in nodes if node.name not in moved]
        behind = 1 + next(at for at, node in enumerate(nodes) if node.name == maker.name)
        nodes[behind:behind] = chain
    return replace(graph, nodes=tuple(nodes))


def _moves(node: MNNode) -> bool:
    return node.side is Side.DEVICE and node.slice is None


def _chain(
    graph: MNGraph, head: MNNode, value: str, readers: dict[str, list[MNNode]]
) -> Sequence[MNNode]:
    """Return the nodes from ``head`` on to the smallest result; empty if none is small enough."""
    chain: list[MNNode] = []
    best, least = 0, graph.values[value].num_lw or 0
    node: MNNode | None = head
    while node is not None and _moves(node) and len(node.inputs) == len(node.outputs) == 1:
        chain.append(node)
        words = graph.values[node.outputs[0]].num_lw or 0
        if words < least:
            best, least = len(chain), words
        following = readers.get(node.outputs[0], [])
        node = following[0] if len(following) == 1 else None
    return chain[:best]
