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


def _groups(
    graph: MNGraph, facts: Facts, kept: set[str], readers: Mapping[str, list[MNNode]]
) -> Iterator[Group]:
    """Yield the groups in which several windows of one value meet."""
    windows, together = windows_of(graph), DisjointSets[str]()
    pointwise: dict[str, MNNode] = {}
    inside: set[str] = set()
    read: dict[str, list[str]] = {}
    for node in graph.device_nodes():
        if not _is_pointwise(node, graph):
            continue
        (out,) = node.outputs
        shape = graph.values[out].shape
        large = [name for name in node.inputs if prod(graph.values[name].shape) > 1]
        whole = [name for name in large if graph.values[name].shape == shape]
        leaves = [name for name in dict.fromkeys(large) if name not in inside]
        if not whole or any(graph.values[name].type.elem not in _CUT for name in leaves):
            continue
        if any(name in inside for name in large if name not in whole):
            continue
        pointwise[node.name], read[node.name] = node, leaves
        inside.add(out)
        for name in whole:
            together.join(out, name if name in inside else _source(name, windows))
    # Equal constants are one value.
    alike = {(graph.values[n].type, data): n for n, data in reversed([*graph.constants.items()])}
    same = {name: alike[graph.values[name].type, graph.constants[name]] for name in graph.constants}
    groups: dict[str, Group] = {}
    for name, node in pointwise.items():
        group = groups.setdefault(
            together.root(node.outputs[0]), Group(len(graph.values[node.outputs[0]].shape))
        )
        group.nodes.append(node)
        for leaf in read[name]:
            if graph.values[leaf].shape == graph.values[node.outputs[0]].shape:
                group.windows[leaf] = window_of(same.get(leaf, leaf), windows, graph)
            else:
                group.spread.add(leaf)
                group.shapes[leaf] = graph.values[leaf].shape
    for name, window in windows.items():
        others = [one for one in readers.get(name, ()) if one.outputs[0] not in windows]
        read_elsewhere = name in kept or any(one.name not in pointwise for one in others)
        if window.source in inside and read_elsewhere:
            group = groups[together.root(window.source)]
            if name not in group.windows:
                group.windows[name] = window
                group.moved.append(name)
    results = {name for _, name in graph.outputs}
    for group in groups.values():
        for name, window in group.windows.items():
            if window.zeros and not window.rings:
                outside = _outside(window, graph.values[name].shape, graph)
                seen = name in group.moved or any(
                    one.name not in pointwise or _is_used(one, name, outside, facts)
                    for one in readers.get(name, ())
                )
                group.windows[name] = replace(window, zeros=bool(outside.any() and seen))
        apart = any(len(set(offsets)) > 1 for offsets in group.sources().values())
        named = {*group.windows, *group.spread, *(node.outputs[0] for node in group.nodes)}
        if apart and named.isdisjoint(kept - results):
            group.outer = {
                name for name in inside & named if not _is_inner(name, group, kept, readers)
            }
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


def _source(name: str, windows: Mapping[str, Window]) -> str:
    return windows[name].source if name in windows else name


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
