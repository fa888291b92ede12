"""Changes of a graph's nodes, which one sweep makes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from .graph import MNGraph, MNNode, MNValue


@dataclass(eq=False)
class Edit:
    """What changes in a graph: nodes go, come before and behind others, or read other values.

    The keys are names of nodes. ``inputs`` maps a node and a value that it reads to the value that
    it reads instead. ``values`` are those that are new or other ones.
    """

    graph: MNGraph
    gone: set[str] = field(default_factory=set)
    instead: dict[str, MNNode] = field(default_factory=dict)
    before: dict[str, list[MNNode]] = field(default_factory=lambda: defaultdict(list))
    behind: dict[str, list[MNNode]] = field(default_factory=lambda: defaultdict(list))
    inputs: dict[tuple[str, str], str] = field(default_factory=dict)
    values: dict[str, MNValue] = field(default_factory=dict)

    def done(self) -> MNGraph:
        """Return the changed graph. Values of nodes that go are left out if nothing makes them."""
        nodes: list[MNNode] = []
        for node in self.graph.nodes:
            nodes += self.before.get(node.name, ())
            if node.name not in self.gone:
                own = self.instead.get(node.name, node)
                read = (self.inputs.get((node.name, name), name) for name in own.inputs)
                nodes.append(replace(own, inputs=tuple(read)))
            nodes += self.behind.get(node.name, ())
        made = {name for node in nodes for name in node.outputs}
        gone = {n for one in self.graph.nodes if one.name in self.gone for n in one.outputs} - made
        values = {**self.graph.values, **self.values}.items()
        kept = {name: value for name, value in values if name not in gone}
        return replace(self.graph, nodes=tuple(nodes), values=kept)
