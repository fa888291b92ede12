"""Windows: what Slices, Pads with zeros, and rolls make of a value, as an offset on each axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..graph.graph import Attribute, MNGraph, MNNode
from ..pfvm.device_functions import TILE_FACTS, TILE_RINGS, TILES

Shape = tuple[int, ...]
#: The operators that make windows.
MOVES = ("Slice", "Pad", "Concat", "Reshape", TILES)


@dataclass(frozen=True)
class Window:
    """A value whose element ``i`` is element ``i + offset`` of ``source``, or 0 outside of it.

    Axes in ``rings`` have no outside: behind the last element comes the first. ``zeros`` says
    whether a window may read outside, ``padded`` whether a Pad made it.
    """

    source: str
    offset: Shape
    padded: bool = False
    zeros: bool = False
    rings: frozenset[int] = frozenset()


def window_of(name: str, windows: Mapping[str, Window], graph: MNGraph) -> Window:
    """Return the window that a value is; one that nothing moved is the whole of itself."""
    return windows.get(name) or Window(name, (0,) * len(graph.values[name].shape))


def windows_of(graph: MNGraph) -> dict[str, Window]:
    """Return the values that Slices, Pads and Concats make, as windows of others."""
    found: dict[str, Window] = {}
    for node in graph.device_nodes():
        if node.op == "Concat":
            ring = _ring(node, found, graph)
            if ring is not None:
                found[node.outputs[0]] = ring
        if node.op == "Reshape" and (moved := _moved(node, found, graph)) is not None:
            found[node.outputs[0]] = moved
        # Facts that are no attributes are values, which are not known.
        if node.op not in _SHIFTS or any(node.inputs[1:]):
            continue
        source = node.inputs[0]
        shape = graph.values[source].shape
        shift = _SHIFTS[node.op](dict(node.attributes), shape)
        if shift is None:
            continue
        before = window_of(source, found, graph)
        padded = node.op == "Pad"
        # Elements beside a slice are no zeros.
        if padded and source in found and not before.padded:
            before = Window(source, (0,) * len(shape))
        offset = tuple(a + b for a, b in zip(before.offset, shift, strict=True))
        zeros = padded or before.zeros
        found[node.outputs[0]] = Window(before.source, offset, padded, zeros, before.rings)
    return found


def _ring(node: MNNode, windows: Mapping[str, Window], graph: MNGraph) -> Window | None:
    """Return the window of a Concat of the end of a value and what is before it; torch rolls so."""
    parts = [windows[name] for name in node.inputs if name in windows]
    if len(node.inputs) != 2 or len(parts) != 2:
        return None
    end, rest = parts
    shape = graph.values[end.source].shape
    axis = int(str(dict(node.attributes)["axis"])) % len(shape)
    size, count = shape[axis], graph.values[node.inputs[0]].shape[axis]
    meet = (end.offset[axis] - rest.offset[axis] + count) % size == 0
    other = (end.source, end.rings, *end.offset[:axis], *end.offset[axis + 1 :])
    same = other == (rest.source, rest.rings, *rest.offset[:axis], *rest.offset[axis + 1 :])
    whole = graph.values[node.outputs[0]].shape == shape
    if not (meet and same and whole) or end.zeros or rest.zeros:
        return None
    near = (end.offset[axis] + size // 2) % size - size // 2
    offset = (*end.offset[:axis], near, *end.offset[axis + 1 :])
    return Window(end.source, offset, rings=end.rings | {axis})


def _moved(node: MNNode, windows: Mapping[str, Window], graph: MNGraph) -> Window | None:
    """Return the window of a Reshape that joins parts of tiles; long axes move so."""
    part = windows.get(node.inputs[0])
    tiles = None if part is None else graph.producers().get(part.source)
    if part is None or tiles is None or tiles.op != TILES or tiles.inputs[0] in windows:
        return None
    facts = dict(tiles.attributes)
    rows, shape = [_ints(facts, name) or () for name in TILE_FACTS], graph.values[part.source].shape
    (axis, count, places, before, _), shift = [row[0] for row in rows], [0] * (len(shape) - 1)
    shift[axis] = part.offset[axis + 1] - before
    apart = (
        len(rows[0]) > 1
        or TILE_RINGS in facts
        or sum(map(abs, part.offset)) > part.offset[axis + 1]
    )
    joined = (*shape[:axis], count * places, *shape[axis + 2 :])
    if apart or graph.values[node.outputs[0]].shape != joined:
        return None
    return Window(tiles.inputs[0], tuple(shift), padded=True, zeros=True)


def _starts(facts: Mapping[str, Attribute], shape: Shape) -> Shape | None:
    """Return where a Slice of step 1 begins on each axis."""
    starts, ends, axes, steps = (_ints(facts, name) for name in ("starts", "ends", "axes", "steps"))
    if starts is None or ends is None or any(step != 1 for step in steps or ()):
        return None
    shift = [0] * len(shape)
    for axis, start, end in zip(axes or range(len(shape)), starts, ends, strict=False):
        shift[axis] = slice(start, end).indices(shape[axis])[0]
    return tuple(shift)


def _pads(facts: Mapping[str, Attribute], shape: Shape) -> Shape | None:
    """Return minus the zeros that a Pad puts in front of each axis."""
    pads, axes = _ints(facts, "pads"), _ints(facts, "axes") or range(len(shape))
    zeros = facts.get("constant_value", 0.0) == 0.0 and facts.get("mode", "constant") == "constant"
    if pads is None or not zeros or any(pad < 0 for pad in pads):
        return None
    shift = [0] * len(shape)
    for axis, pad in zip(axes, pads, strict=False):
        shift[axis] = -pad
    return tuple(shift)


def _ints(facts: Mapping[str, Attribute], name: str) -> tuple[int, ...] | None:
    """Return an attribute of whole numbers; None if it is missing: a value has it then."""
    found = facts.get(name)
    return tuple(map(int, found)) if isinstance(found, tuple) else None


_SHIFTS = {"Slice": _starts, "Pad": _pads}
