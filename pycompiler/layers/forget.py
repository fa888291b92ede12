"""MNCoreForget: a value leaves LM although it is read later. It has no code.

A scheduler inserts it where it discards a value that it computes again later. The node exists only
in the dump of the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..graph.graph import Location, MNGraph, MNNode
from ..machine import Target
from .base import Layer, Placement, UntiedAxes

FORGET = "MNCoreForget"


class Forget(UntiedAxes):
    """A node that reads a value and makes none."""

    op = FORGET

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Take the value where it is."""
        return Placement((Location.LM0,), ())

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield a value outside of LM, and results."""
        if graph.values[node.inputs[0]].location not in (Location.LM0, Location.LM1):
            yield f"`{node.inputs[0]}`, which is not in LM"
        if node.outputs:
            yield "results"


def without_forgets(graph: MNGraph) -> MNGraph:
    """Return the graph without these nodes."""
    return replace(graph, nodes=tuple(node for node in graph.nodes if node.op != FORGET))


LAYERS: tuple[Layer, ...] = (Forget(),)
