"""Expand a graph of whole values to a graph of time slices, as the time-slice planner decided.

Every node becomes one node per slice. Values from outside are split in DRAM, and values for outside
are concatenated there. If an axis is reduced or contracted, each slice leaves a partial result, and
extra nodes join these. Nodes that depend on a joined result form a new *phase*. All slices of one
phase come before those of the next. Within a phase, one slice goes through all its nodes before the
next slice begins. A part of the batch goes through all phases before the next part begins.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ...graph.disjoint_sets import DisjointSets
from ...graph.graph import MNGraph, MNNode, MNValue, Side, TensorType
from ...layers.split_concat import CONCAT, SPLIT
from ...pfvm.device_functions import RECUT
from ...pfvm.names import reserved
from .cut_classes import Axis
from .sliced_graph import TimeSlices

#: What orders nodes: segment, part of the batch, phase, group, indices of slices, number of the
#: node, and its join.
_Key = tuple[object, ...]


def cut_into_slices(found: TimeSlices) -> MNGraph:
    """Return the graph in which every slice has nodes and values of its own."""
    return _Cutter(found).run() if found.sizes else found.graph


@dataclass
class _Cutter:
    found: TimeSlices
    values: dict[str, MNValue] = field(default_factory=dict)
    made: list[tuple[_Key, MNNode]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = self.found.graph
        self.order = list(self.found.sizes)
        self.names = set(self.graph.values)
        self.node_names = {node.name for node in self.graph.nodes}
        self.slice_names: dict[tuple[str, int], str] = {}
        self.phase: dict[str, int] = {}
        self.producers, self.split = self.graph.producers(), set[str]()

    def run(self) -> MNGraph:
        groups, whole = self._groups(), self.found.annotated()
        outside = {name for _, name in self.graph.outputs}
        outside |= {name for node in self.graph.nodes if _reads_whole(node) for name in node.inputs}
        for number, node in enumerate(self.graph.nodes):
            segment = node.segment or 0
            if node.side is Side.HOST:
                self._add((segment, 0, 0, 0, (), number, 0), node)
                continue
            if node.op == RECUT:
                for name in (*node.inputs, *node.outputs):
                    if self.found.cut_axes(name):
                        self.values[name] = whole.values[name]
                self._add((segment, 0, self.phase[node.name], 0, (), number, 0), node)
                continue
            for name in self._given(node):
                self._cut(SPLIT, name, whole, node, (segment, 0, -1, 0, (), number, 0))
            self._slices_of(number, node, groups[node.name])
            for name in node.outputs:
                if name in outside and self.found.cut_axes(name):
                    last = len(self.made)
                    self._cut(CONCAT, name, whole, node, (segment, last, 0, 0, (), number, 0))
        used = {n for _, node in self.made for n in (*node.inputs, *node.outputs) if n}
        used |= {*self.graph.inputs, *self.graph.constants, *outside}
        everything = {**whole.values, **self.values}
        kept = {name: value for name, value in everything.items() if name in used}
        return replace(self.graph, values=kept, nodes=tuple(self._sorted()))

    # -- names ---------------------------------------------------------------------------------

    def _index(self, name: str, index: Mapping[Axis, int]) -> int:
        """Return the number of a value's slice."""
        flat = 0
        for _, one in self.found.cut_axes(name):
            flat = flat * self.found.count(one) + index[one]
        return flat

    def _slice(self, name: str, index: Mapping[Axis, int]) -> str:
        """Return the name of a slice of ``name``, or ``name`` if it is whole."""
        cut = self.found.cut_axes(name)
        if not cut:
            return name
        key = name, self._index(name, index)
        if key not in self.slice_names:
            self.slice_names[key] = self._new(name, f"{name}.t", key[1], index)
        return self.slice_names[key]

    def _new(self, name: str, origin: str, number: int, index: Mapping[Axis, int]) -> str:
        """Make a value like ``name``, as large as the slice at ``index``, and return its name.

        The name is ``origin`` followed by a number.
        """
        value = self.graph.values[name]
        shape = list(value.shape)
        for axis, one in self.found.cut_axes(name):
            size = self.found.sizes[one]
            if one in self.found.axes.joined:
                # The last slice ends with the axis, because a reduction must not read padding.
                size = min(size, self.found.lengths[one] - index[one] * size)
            shape[axis] = size * self.found.axes.factor((name, axis))
        called = reserved(f"{origin}{number}", self.names)
        type = TensorType(value.type.elem, tuple(shape))
        self.values[called] = replace(value, name=called, type=type, origin=origin)
        return called

    def _given(self, node: MNNode) -> Iterator[str]:
        """Yield what a node reads in slices and finds whole, and that no node before it reads."""
        for name in node.inputs:
            maker = self.producers.get(name)
            given = maker is None or _reads_whole(maker)
            if given and name not in self.split and self.found.cut_axes(name):
                self.split.add(name)
                yield name

    # -- nodes ---------------------------------------------------------------------------------

    def _add(self, key: _Key, node: MNNode) -> None:
        self.made.append((key, node))

    def _all_slices(self, name: str) -> Iterator[str]:
        classes = [one for _, one in self.found.cut_axes(name)]
        for at in product(*(range(self.found.count(one)) for one in classes)):
            yield self._slice(name, dict(zip(classes, at, strict=True)))

    def _cut(self, op: str, name: str, whole: MNGraph, like: MNNode, key: _Key) -> None:
        """Make the slices of a whole value, or the whole value of its slices."""
        self.values[name] = whole.values[name]
        ends = (name,), tuple(self._all_slices(name))
        called = reserved(f"{name}.{'split' if op == SPLIT else 'concat'}", self.node_names)
        self._add(key, MNNode(called, op, *(ends if op == SPLIT else ends[::-1])).near(like))

    def _slices_of(self, number: int, node: MNNode, group: int) -> None:
        cuts = dict(self.found.axes.of_node(node))
        classes = [one for one in self.order if one in cuts]
        joined = {one: cut.joins for one, cut in cuts.items() if cut.joins and one in self.order}
        counts = [self.found.count(one) for one in classes]
        segment, inner = node.segment or 0, (self.phase[node.name], group)
        totals: dict[tuple[int, ...], str] = {}
        for at in product(*map(range, counts)):
            index = dict(zip(classes, at, strict=True))
            flat, sliced, place = _flat(at, counts), node, tuple[int, ...]()
            batch = index.get(self.found.batch, 0) if self.found.batch else 0
            key = segment, batch, *inner
            if classes:
                name = reserved(f"{node.name}.t{flat}", self.node_names)
                sliced = replace(node, name=name, slice=flat, origin=f"{node.name}.t")
                place = tuple(index.get(one, -1) for one in self.order)
            inputs = tuple(self._slice(name, index) for name in node.inputs)
            if not joined:
                outputs = tuple(self._slice(name, index) for name in node.outputs)
                made = replace(sliced, inputs=inputs, outputs=outputs)
                self._add((*key, place, number, 0), made)
                continue
            (out,) = node.outputs
            kept = tuple(index[one] for one in classes if one not in joined)
            last = all(index[one] == self.found.count(one) - 1 for one in joined)
            part = self._new(out, f"{out}.part", flat, index)
            self._add((*key, place, number, 0), replace(sliced, inputs=inputs, outputs=(part,)))
            if kept in totals:
                joins = next(iter(joined.values()))
                new = self._slice(out, index) if last else self._new(out, f"{out}.sum", flat, index)
                name = reserved(f"{node.name}.join{flat}", self.node_names)
                join = MNNode(name, joins, (totals[kept], part), (new,)).near(node)
                join = replace(join, slice=flat, origin=f"{node.name}.join")
                self._add((*key, place, number, 1), join)
                part = new
            totals[kept] = part

    # -- order ---------------------------------------------------------------------------------

    def _groups(self) -> dict[str, int]:
        """Set the phase of every node, and return a group number for every node.

        Nodes of one phase that sliced values connect have the same group number.
        """
        together = DisjointSets[str]()
        for node in self.graph.nodes:
            phase = 0
            for name in node.inputs:
                maker = self.producers.get(name)
                if maker is None or maker.side is Side.HOST or maker.segment != node.segment:
                    continue
                joined = any(
                    cut.joins and one in self.order for one, cut in self.found.axes.of_node(maker)
                )
                joined = joined or RECUT in (node.op, maker.op)
                phase = max(phase, self.phase[maker.name] + joined)
            self.phase[node.name] = phase
            for name in node.inputs:
                maker = self.producers.get(name)
                if maker is None or not self.found.cut_axes(name):
                    continue
                if RECUT in (node.op, maker.op):
                    continue
                if (self.phase[maker.name], maker.segment) == (phase, node.segment):
                    together.join(node.name, maker.name)
        numbers = {node.name: index for index, node in enumerate(self.graph.nodes)}
        return {node.name: numbers[together.root(node.name)] for node in self.graph.nodes}

    def _sorted(self) -> Iterator[MNNode]:
        """Yield the nodes in the order of their keys, but each after the nodes that it needs."""
        maker = {out: at for at, (_, node) in enumerate(self.made) for out in node.outputs if out}
        missing: list[int] = []
        readers: dict[int, list[int]] = {}
        for at, (_, node) in enumerate(self.made):
            needed = {maker[name] for name in node.inputs if name in maker}
            missing.append(len(needed))
            for one in needed:
                readers.setdefault(one, []).append(at)
        ready = [(self.made[at][0], at) for at, count in enumerate(missing) if not count]
        heapq.heapify(ready)
        while ready:
            _, at = heapq.heappop(ready)
            yield self.made[at][1]
            for reader in readers.get(at, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, (self.made[reader][0], reader))


def _reads_whole(node: MNNode) -> bool:
    """Whether a node works on values in DRAM, with all their slices."""
    return node.side is Side.HOST or node.op == RECUT


def _flat(at: Sequence[int], counts: Sequence[int]) -> int:
    flat = 0
    for number, count in zip(at, counts, strict=True):
        flat = flat * count + number
    return flat
