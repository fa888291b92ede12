"""What becomes of a graph whose node finds no room: the node runs on the host."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..errors import NoRoomError, NoSwitchError
from ..graph.graph import MNGraph, Side

REASON = "its tensors do not fit local memory"


def on_the_host(graph: MNGraph, problem: NoRoomError | NoSwitchError) -> MNGraph | None:
    """Return the imported graph with the node of a diagnostic on the host; None if it has none."""
    free = {node.name for node in graph.nodes if node.reason is None}
    chosen = next((of for name in problem.fields.get("nodes", ()) if (of := _of(name, free))), None)
    if chosen is None:
        return None
    nodes = (
        replace(node, side=Side.HOST, reason=REASON) if node.name == chosen else node
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))


def _of(name: str, free: Collection[str]) -> str | None:
    """Return the imported node that a planned one belongs to: names of planned ones go on."""
    return max(
        (one for one in free if name == one or name.startswith(f"{one}.")), key=len, default=None
    )
