"""Nodes that differ only in the names of their values share one fragment.

Networks repeat their layers, and time slices repeat nodes. It takes long to make the code of a
node, so it is made once for all nodes that are alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ..code.lines import Fragment
from ..graph.graph import MNGraph, MNNode, MNValue
from ..layers.base import distinct
from ..layers.operators import LAYERS
from ..machine import Target


def renamed(node: MNNode, graph: MNGraph) -> tuple[MNNode, dict[str, MNValue], dict[str, str]]:
    """Return a node by itself, its values, and the new names of its values by their old ones.

    Values are named by their index among the operands, and nothing else of the graph is kept. So
    nodes that differ only in names become equal.
    """
    names = {
        name: f"v{number}"
        for number, name in enumerate(distinct((*node.inputs, *node.outputs)))
        if name
    }
    values = {
        ours: replace(graph.values[name], name=ours, addr=None, gene=("", ""))
        for name, ours in names.items()
    }
    alone = replace(
        node,
        name=node.op,
        inputs=tuple(names.get(name, "") for name in node.inputs),
        outputs=tuple(names.get(name, "") for name in node.outputs),
        source=None,
        segment=None,
        slice=None,
    )
    return alone, values, names


class Fragments:
    """The fragments of a compilation for a machine, made once for all nodes that are alike."""

    def __init__(self, target: Target):
        self.target = target
        self._made: dict[Hashable, Fragment] = {}

    def of(self, node: MNNode, graph: MNGraph) -> Fragment:
        """Return the code of ``node``.

        The layer sees only this node, with values that are named by their index among its operands.
        So the code cannot depend on anything else, and other nodes can share it.
        """
        alone, values, names = renamed(node, graph)
        key = alone, tuple(values.values())
        fragment = self._made.get(key)
        if fragment is None:
            only = MNGraph(graph.name, graph.target, graph.stage, nodes=(alone,), values=values)
            fragment = self._made[key] = LAYERS[node.op].emit(alone, only, self.target)
        return replace(fragment, names={ours: name for name, ours in names.items()})
