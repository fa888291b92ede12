"""What becomes of a graph whose node finds no room: the node runs on the host."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..errors import NoRoomError, NoSwitchError
from ..graph.graph import MNGraph, Side

REASON = "its tensors do not fit local memory"


def on_the_host(graph: MNGraph, problem: NoRoomError | NoSwitchError) -> MNGraph | None:
    """Return the imported graph with the nodes of a diagnostic on the host; None if it has none.

    Its field ``nodes`` has a row for each place without room; one node of a row moves. Nodes go
    with it that do the same with operands of the same types, between the same operators: networks
    repeat their blocks, and a compile that fails for each of them takes minutes.
    """
    free = {node.name for node in graph.nodes if node.reason is None}
    rows = ([of for name in row if (of := _of(name, free))] for row in problem.fields["nodes"])
    chosen = {row[0] for row in rows if row}
    if not chosen:
        return None
    kinds = _kinds(graph)
    alike = {name for name in free if kinds[name] in {kinds[one] for one in chosen}}
    nodes = (
        replace(node, side=Side.HOST, reason=REASON) if node.name in alike else node
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))


def _kinds(graph: MNGraph) -> dict[str, object]:
    """Return by node what it does, the types of its operands, and the operators around it."""
    makers = {name: node.op for node in graph.nodes for name in node.outputs}
    readers: dict[str, list[str]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node.op)
    types = {name: value.type for name, value in graph.values.items()}
    return {
        node.name: (
            node.op,
            node.attributes,
            tuple(types.get(name) for name in (*node.inputs, *node.outputs)),
            tuple(makers.get(name) for name in node.inputs),
            tuple(tuple(readers.get(name, ())) for name in node.outputs),
        )
        for node in graph.nodes
    }


def _of(name: str, free: Collection[str]) -> str | None:
    """Return the imported node that a planned one belongs to: names of planned ones go on."""
    return max(
        (one for one in free if name == one or name.startswith(f"{one}.")), key=len, default=None
    )
