"""The elements that a copying operator takes: their inputs and their indices there."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.graph import MNGraph, MNNode


@dataclass(frozen=True)
class Selection:
    """For each index of a result's axis: the input (-1 for none), and the index of its axis."""

    source: tuple[int, ...]
    index: tuple[int, ...]


#: For each input the result's axis of each of its axes (or None), and the selections by axis of the
#: result.
Picked = tuple[tuple[tuple[int | None, ...], ...], dict[int, Selection]]


def _same_axes(node: MNNode, graph: MNGraph) -> tuple[tuple[int | None, ...], ...]:
    rank = len(graph.values[node.outputs[0]].shape)
    return tuple(tuple(range(rank)) for _ in node.inputs)


def _axis(node: MNNode, graph: MNGraph, default: int = 0) -> int:
    rank = len(graph.values[node.outputs[0]].shape)
    found = dict(node.attributes).get("axis", default)
    assert isinstance(found, int)
    return found % rank


def concat(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Take all of each input, one input after the other."""
    axis = _axis(node, graph)
    source: list[int] = []
    index: list[int] = []
    for which, name in enumerate(node.inputs):
        size = graph.values[name].shape[axis]
        source += [which] * size
        index += range(size)
    return _same_axes(node, graph), {axis: Selection(tuple(source), tuple(index))}


def split(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Take a stretch of an axis for each output."""
    axis = _axis(node, graph)
    before = sum(graph.values[name].shape[axis] for name in node.outputs[:number])
    size = graph.values[node.outputs[number]].shape[axis]
    chosen = Selection((0,) * size, tuple(range(before, before + size)))
    return _same_axes(node, graph), {axis: chosen}


def _ints(node: MNNode, name: str) -> tuple[int, ...] | None:
    found = dict(node.attributes).get(name)
    return None if found is None else tuple(int(v) for v in found)  # type: ignore[union-attr]


def pick_slice(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Take the indices of some axes between bounds, a step apart."""
    shape = graph.values[node.inputs[0]].shape
    starts, ends = _ints(node, "starts") or (), _ints(node, "ends") or ()
    axes = _ints(node, "axes") or tuple(range(len(starts)))
    steps = _ints(node, "steps") or (1,) * len(starts)
    picked: dict[int, Selection] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = shape[axis % len(shape)]
        low = -1 if step < 0 else 0
        high = size - 1 if step < 0 else size
        first = min(max(start + size if start < 0 else start, 0), high)
        last = min(max(end + size if end < 0 else end, low), size)
        chosen = tuple(range(first, last, step))
        if chosen != tuple(range(size)):
            picked[axis % len(shape)] = Selection((0,) * len(chosen), chosen)
    return _same_axes(node, graph), picked


def expand(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Take index 0 of an axis of size 1 repeatedly."""
    shape, wide = (graph.values[n].shape for n in (node.inputs[0], node.outputs[0]))
    skipped = len(wide) - len(shape)
    along = (tuple(axis + skipped for axis in range(len(shape))),)
    picked = {
        axis: Selection((0,) * size, (0,) * size)
        for axis, size in enumerate(wide)
        if size > 1 and (axis < skipped or shape[axis - skipped] == 1)
    }
    return along, picked


def pad(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Take the input in the middle, and no element around it."""
    shape = graph.values[node.inputs[0]].shape
    pads = _ints(node, "pads") or ()
    axes = _ints(node, "axes") or tuple(range(len(shape)))
    picked: dict[int, Selection] = {}
    for place, axis in enumerate(axes):
        before, after = pads[place], pads[place + len(axes)]
        if not before and not after:
            continue
        size = shape[axis % len(shape)]
        index = range(-before, size + after)
        picked[axis % len(shape)] = Selection(
            tuple(0 if 0 <= i < size else -1 for i in index),
            tuple(i if 0 <= i < size else 0 for i in index),
        )
    return _same_axes(node, graph), picked
