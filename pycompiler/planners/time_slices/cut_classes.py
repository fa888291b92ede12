"""Classes of axes that time slices cut together.

If a node works slice by slice along some axes of its values, these axes belong to one class
(:meth:`Layer.cuts`): a cut of one of them cuts them all. So a value has the same slices for all
nodes that make or read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from ...graph.disjoint_sets import DisjointSets
from ...graph.graph import MNGraph, MNNode
from ...layers.base import Cut
from ...layers.operators import LAYERS
from ...layers.split_concat import IN_DRAM

Axis = tuple[str, int]


class Axes:
    """The classes of the axes of a graph's device values; a class is named by one of its axes."""

    def __init__(self, graph: MNGraph):
        self.graph = graph
        self._classes = DisjointSets[Axis]()
        #: Classes that must stay whole, and the reason.
        self.rigid: dict[Axis, str] = {}
        #: Classes that some node reduces or contracts, so that the results of slices are joined.
        self.joined: set[Axis] = set()
        #: The axes along which products and reductions add up.
        self.added: set[Axis] = set()
        self._lengths: dict[Axis, int] = {}
        #: Operators that work along each class.
        self.ops: dict[Axis, set[str]] = {}
        self.cuts: dict[str, tuple[Cut, ...]] = {}
        rigid: list[tuple[Axis, str]] = []
        nodes = [n for n in graph.device_nodes() if n.op not in IN_DRAM]
        for node in nodes:
            cuts = tuple(LAYERS[node.op].cuts(node, graph))
            self.cuts[node.name] = cuts
            covered = {axis for cut in cuts for axis in cut.axes}
            for cut in cuts:
                for axis in cut.axes:
                    self._classes.join(axis, cut.axes[0])
            for name in filter(None, (*node.inputs, *node.outputs)):
                for number, size in enumerate(graph.values[name].shape):
                    if size > 1 and (name, number) not in covered:
                        rigid.append(((name, number), f"{node.op} `{node.name}` needs it whole"))
        for node in nodes:
            found = [self.of(cut.axes[0]) for cut in self.cuts[node.name]]
            for one, cut in zip(found, self.cuts[node.name], strict=True):
                self.ops.setdefault(one, set()).add(node.op)
                if found.count(one) > 1:
                    rigid.append((one, f"two axes of {node.op} `{node.name}` are cut alike"))
                if cut.joins:
                    self.joined.add(one)
                    self.added.update(cut.axes)
        for axis, reason in rigid:
            self.rigid.setdefault(self.of(axis), reason)

    def of(self, axis: Axis) -> Axis:
        """Return the class of an axis."""
        return self._classes.root(axis)

    def size(self, one: Axis) -> int:
        """Return the length of a class: that of its axes, without their factors."""
        if not self._lengths:
            for cuts in self.cuts.values():
                for name, number in (axis for cut in cuts for axis in cut.axes):
                    root, length = self.of((name, number)), self.graph.values[name].shape[number]
                    self._lengths[root] = gcd(length, self._lengths.get(root, 0))
        return self._lengths.get(one) or self.graph.values[one[0]].shape[one[1]]

    def factor(self, axis: Axis) -> int:
        """Return how many elements of an axis belong to one of its class."""
        return self.graph.values[axis[0]].shape[axis[1]] // self.size(self.of(axis))

    def of_value(self, name: str) -> Iterator[tuple[int, Axis]]:
        """Yield the axes of a value that are longer than 1, with their classes."""
        for number, size in enumerate(self.graph.values[name].shape):
            if size > 1:
                yield number, self.of((name, number))

    def of_node(self, node: MNNode) -> tuple[tuple[Axis, Cut], ...]:
        """Return the classes along which a node works slice by slice."""
        return tuple((self.of(cut.axes[0]), cut) for cut in self.cuts.get(node.name, ()))
