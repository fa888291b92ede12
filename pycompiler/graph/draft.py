"""A graph while it changes: its nodes, who makes and who reads each value, and edits of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .graph import MNGraph, MNNode, MNValue


@dataclass(eq=False)
class Edit:
    """What changes in a graph: nodes go, come before and behind others, or read other values.

    The keys are names of nodes. A node of ``instead`` keeps its name. ``inputs`` and ``outputs``
    map a node and a value that it reads or makes to the value that stands there instead. ``values``
    are those that are new or other ones.
    """

    gone: set[str] = field(default_factory=set)
    instead: dict[str, MNNode] = field(default_factory=dict)
    before: dict[str, list[MNNode]] = field(default_factory=lambda: defaultdict(list))
    behind: dict[str, list[MNNode]] = field(default_factory=lambda: defaultdict(list))
    inputs: dict[tuple[str, str], str] = field(default_factory=dict)
    outputs: dict[tuple[str, str], str] = field(default_factory=dict)
    values: dict[str, MNValue] = field(default_factory=dict)

    def of(self, graph: MNGraph) -> MNGraph:
        """Return the graph with these changes."""
        draft = Draft(graph)
        draft.apply(self)
        return draft.done()


class Draft:
    """A graph that edits change one after the other. An edit costs what it changes.

    ``graph`` has the values as they are now, and the nodes as they were.
    """

    def __init__(self, graph: MNGraph):
        self.values = dict(graph.values)
        self.graph = replace(graph, values=self.values)
        self.nodes: dict[str, MNNode] = {}
        #: By node: its number in the graph as it was. What comes beside a node gets its number.
        self.places: dict[str, int] = {}
        self._slots: list[list[str]] = [[] for _ in graph.nodes]
        self._makers: dict[str, str] = {}
        self._readers: dict[str, dict[str, None]] = {}
        for place, node in enumerate(graph.nodes):
            self._put(node, place, len(self._slots[place]))

    def maker(self, name: str) -> MNNode | None:
        """Return the node that makes a value; None if it comes from outside."""
        maker = self._makers.get(name)
        return None if maker is None else self.nodes[maker]

    def readers(self, name: str) -> list[MNNode]:
        """Return the nodes that read a value."""
        return [self.nodes[one] for one in self._readers.get(name, ())]

    def apply(self, edit: Edit) -> None:
        """Change the graph. Values of nodes that go are left out if nothing makes them."""
        self.values |= edit.values
        # A node that goes may come again elsewhere.
        places = {name: self.places[name] for name in (*edit.before, *edit.behind)}
        lost = [self._take(name) for name in edit.gone]
        for name, nodes in edit.before.items():
            slot = self._slots[places[name]]
            self._insert(nodes, places[name], slot.index(name) if name in slot else 0)
        for name, nodes in edit.behind.items():
            self._insert(nodes, places[name], len(self._slots[places[name]]))
        changed = dict(edit.instead)
        for (name, old), new in edit.inputs.items():
            node = changed.get(name, self.nodes[name])
            read = tuple(new if one == old else one for one in node.inputs)
            changed[name] = replace(node, inputs=read)
        for (name, old), new in edit.outputs.items():
            node = changed.get(name, self.nodes[name])
            outputs = tuple(new if one == old else one for one in node.outputs)
            changed[name] = replace(node, outputs=outputs)
        lost += [self.nodes[name] for name in changed]
        for name in changed:
            self._unlink(self.nodes[name])
        for name, node in changed.items():
            self._link(replace(node, name=name))
        for node in lost:
            for name in node.outputs:
                if name not in self._makers:
                    self.values.pop(name, None)

    def done(self) -> MNGraph:
        """Return the graph as it is now."""
        nodes = tuple(self.nodes[name] for slot in self._slots for name in slot)
        return replace(self.graph, nodes=nodes, values=self.values)

    def _insert(self, nodes: Iterable[MNNode], place: int, at: int) -> None:
        for number, node in enumerate(nodes, at):
            self._put(node, place, number)

    def _put(self, node: MNNode, place: int, at: int) -> None:
        self._slots[place].insert(at, node.name)
        self.places[node.name] = place
        self._link(node)

    def _take(self, name: str) -> MNNode:
        node = self.nodes.pop(name)
        self._slots[self.places[name]].remove(name)
        self._unlink(node)
        return node

    def _link(self, node: MNNode) -> None:
        self.nodes[node.name] = node
        for name in node.inputs:
            self._readers.setdefault(name, {})[node.name] = None
        for name in filter(None, node.outputs):
            self._makers[name] = node.name

    def _unlink(self, node: MNNode) -> None:
        for name in node.inputs:
            self._readers.get(name, {}).pop(node.name, None)
        for name in node.outputs:
            if self._makers.get(name) == node.name:
                del self._makers[name]
