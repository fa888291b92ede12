"""Elementwise operators on shifted slices of one value work on tiles with a halo.

A Slice that is shifted by an element is a layout switch of the whole value. Here each value is cut
into tiles once, with the elements that the neighbours' shifted slices need. The slices of a tile
then lie in the PE that has it, and what the operators make of them is cut in the same way. Zeros of
a Pad are places outside of the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..graph.disjoint_sets import DisjointSets
from ..graph.draft import Edit
from ..graph.dtypes import device_dtype
from ..graph.graph import MNGraph, MNNode
from ..graph.rewrite import Facts, FlowRewrite
from ..layers.elementwise import Elementwise
from ..layers.operators import LAYERS
from .stencil_cut import StencilCut
from .stencil_places import Group, tiles_of
from .stencil_windows import MOVES, Shape, Window, window_of, windows_of

_Mask = NDArray[np.bool_]
#: The element types of values that are cut.
_CUT = ("float", "double", "bool")


def _tiled(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Cut x with a halo: x[1:] + x[:-1] adds slices of each tile of x."""
    kept = {*facts.exact, *(name for _, name in graph.outputs)}
    taken = {*graph.values, *(node.name for node in graph.nodes)}
    readers, unread, gone = graph.readers(), set[tuple[str, str]](), set[str]()
    whole = set(kept)
    for group in _groups(graph, facts, kept, readers):
        group.find_origins()
        found = tiles_of(group, graph, facts.target)
        if found is not None:
            edit = StencilCut(group, *found, graph, taken).edit()
            unread |= set(edit.inputs)
            gone |= edit.gone
            # These are read whole: no Slice, Pad or Concat that makes one may go.
            whole |= found[1].cut.keys()
            yield edit
    last = Edit()
    for node in reversed(graph.nodes):
        out = node.outputs[0]
        own = readers.get(out, ()) if node.op in MOVES and out not in whole else ()
        if own and all((one.name, out) in unread or one.name in gone for one in own):
            gone.add(node.name)
            last.gone.add(node.name)
    if last.gone:
        yield last


# -- what is cut -----------------------------------------------------------------------------


class _Pointwise:
    """The pointwise operators that may be cut; those are together whose values meet.

    ``inside`` has what they make, ``reads`` what each of them reads that none before it makes.
    """

    def __init__(self, graph: MNGraph):
        self.graph, self.windows = graph, windows_of(graph)
        self.nodes: dict[str, MNNode] = {}
        self.reads: dict[str, list[str]] = {}
        self.inside: set[str] = set()
        self.together = DisjointSets[str]()
        for node in graph.device_nodes():
            if _is_pointwise(node, graph):
                self._add(node, graph.values[node.outputs[0]].shape)

    def _add(self, node: MNNode, shape: Shape) -> None:
        """Add an operator if what it reads can be cut."""
        values, inside = self.graph.values, self.inside
        large = [name for name in node.inputs if prod(values[name].shape) > 1]
        whole = [name for name in large if values[name].shape == shape]
        leaves = [name for name in dict.fromkeys(large) if name not in inside]
        if not whole or any(values[name].type.elem not in _CUT for name in leaves):
            return
        if any(name in inside for name in large if name not in whole):
            return
        self.nodes[node.name], self.reads[node.name] = node, leaves
        inside.add(node.outputs[0])
        for name in whole:
            source = self.windows[name].source if name in self.windows else name
            self.together.join(node.outputs[0], source)

    def groups(self, kept: set[str], readers: Mapping[str, list[MNNode]]) -> dict[str, Group]:
        """Return the operators that are together, with their windows.

        These are the windows that they read, and those of what they make that others read.
        """
        graph, values = self.graph, self.graph.values
        # Equal constants are one value.
        alike = {(values[n].type, data): n for n, data in reversed([*graph.constants.items()])}
        same = {n: alike[values[n].type, data] for n, data in graph.constants.items()}
        groups: dict[str, Group] = {}
        for name, node in self.nodes.items():
            shape = values[node.outputs[0]].shape
            group = groups.setdefault(self.together.root(node.outputs[0]), Group(len(shape)))
            group.nodes.append(node)
            for leaf in self.reads[name]:
                if values[leaf].shape == shape:
                    group.windows[leaf] = window_of(same.get(leaf, leaf), self.windows, graph)
                else:
                    group.spread.add(leaf)
                    group.shapes[leaf] = values[leaf].shape
        for name, window in self.windows.items():
            others = [one for one in readers.get(name, ()) if one.outputs[0] not in self.windows]
            read_elsewhere = name in kept or any(one.name not in self.nodes for one in others)
            if window.source in self.inside and read_elsewhere:
                group = groups[self.together.root(window.source)]
                if name not in group.windows:
                    group.windows[name] = window
                    group.moved.append(name)
        return groups


def _groups(
    graph: MNGraph, facts: Facts, kept: set[str], readers: Mapping[str, list[MNNode]]
) -> Iterator[Group]:
    """Yield the groups in which several windows of one value meet."""
    found = _Pointwise(graph)
    results = {name for _, name in graph.outputs}
    for group in found.groups(kept, readers).values():
        for name, window in group.windows.items():
            if window.zeros and not window.rings:
                outside = _outside(window, graph.values[name].shape, graph)
                seen = name in group.moved or any(
                    one.name not in found.nodes or _is_used(one, name, outside, facts)
                    for one in readers.get(name, ())
                )
                group.windows[name] = replace(window, zeros=bool(outside.any() and seen))
        apart = any(len(set(offsets)) > 1 for offsets in group.sources().values())
        own = {node.outputs[0] for node in group.nodes}
        if apart and own.union(group.windows, group.spread).isdisjoint(kept - results):
            group.outer = {name for name in own if not _is_inner(name, group, kept, readers)}
            yield group


def _outside(window: Window, shape: Shape, graph: MNGraph) -> _Mask:
    """Return which elements of a window of a shape lie outside of what it reads."""
    outside = np.zeros(shape, bool)
    sizes = graph.values[window.source].shape
    for axis, (by, own, size) in enumerate(zip(window.offset, shape, sizes, strict=True)):
        place = (np.arange(own) + by).reshape(-1, *(1,) * (len(shape) - 1 - axis))
        outside |= (place < 0) | (place >= size)
    return outside


def _is_used(node: MNNode, name: str, outside: _Mask, facts: Facts) -> bool:
    """Whether a node uses such elements of a value; a choice by a constant may leave them."""
    choice = facts.data.get(node.inputs[0]) if node.op == "Where" else None
    if choice is None or node.inputs[2] == name:
        return True
    return bool((outside & np.asarray(choice, bool)).any())


def _is_inner(name: str, group: Group, kept: set[str], readers: Mapping[str, list[MNNode]]) -> bool:
    """Whether a value is read in tiles only, perhaps as windows."""
    names, sources = {node.name for node in group.nodes}, group.sources()
    return name not in kept and all(
        one.name in names
        or one.outputs[0] in group.moved
        or (
            one.op in MOVES
            and one.outputs[0] not in sources
            and _is_inner(one.outputs[0], group, kept, readers)
        )
        for one in readers.get(name, ())
    )


def _is_pointwise(node: MNNode, graph: MNGraph) -> bool:
    """Whether each element of the only result is made of those of operands at the same index."""
    layer = LAYERS.get(node.op)
    if not isinstance(layer, Elementwise) or len(node.outputs) != 1 or "" in node.inputs:
        return False
    values = [graph.values[name] for name in (*node.inputs, *node.outputs)]
    shape = values[-1].shape
    if prod(shape) <= 1:
        return False
    return layer.unsupported(node, graph, [device_dtype(one.type.elem) for one in values]) is None


TILE_STENCILS = FlowRewrite("tile_stencils", "", _tiled)
