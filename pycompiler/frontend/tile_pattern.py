"""Finds Pads and Gathers that together cut axes into overlapping tiles (MNCoreTiles).

A Gather whose index has two axes and whose rows are evenly spaced ranges cuts one axis. Such
Gathers may follow each other, and a Pad with zeros may stand in front of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from ..graph.graph import MNNode, TensorType
from ..pfvm.composites.writer import MOVED
from ..pfvm.session import Array
from ..pfvm.source import source_of

#: The graph's own operator; its layer explains the attributes.
TILES = "MNCoreTiles"
_NAMES = ("axes", "counts", "places", "before", "reach")


@dataclass(frozen=True)
class _Cut:
    """A Gather along ``axis``: ``count`` tiles with ``reach`` places, ``places`` apart."""

    axis: int
    count: int
    places: int
    reach: int


def tiles(
    protos: Mapping[str, onnx.NodeProto],
    types: Mapping[str, TensorType],
    data: Mapping[str, Array],
    outputs: Iterable[str],
) -> tuple[dict[str, MNNode], set[str]]:
    """Return the nodes that cut axes, by the name of the ONNX node whose result they make.

    Also return the names of the ONNX nodes before it, which are no longer needed.
    """
    readers = Counter([*outputs, *(name for proto in protos.values() for name in proto.input)])
    makers = {out: name for name, proto in protos.items() for out in proto.output}
    found: dict[str, MNNode] = {}
    joined: set[str] = set()
    for name in reversed(list(protos)):
        if name in joined or _cut(protos[name], types, data) is None:
            continue
        chain = [name]
        while True:
            given = protos[chain[0]].input[0]
            before = makers.get(given)
            if before is None or readers[given] > 1 or _cut(protos[before], types, data) is None:
                break
            chain.insert(0, before)
        pads: Sequence[tuple[int, int]] | None = None
        if before is not None and readers[given] == 1:
            pads = _pads(protos[before], types, data)
            if pads is not None:
                chain.insert(0, before)
        node = _node(name, [protos[one] for one in chain], pads, types, data)
        if node is not None:
            found[name] = node
            joined.update(chain[:-1])
    return found, joined


def _cut(
    proto: onnx.NodeProto, types: Mapping[str, TensorType], data: Mapping[str, Array]
) -> _Cut | None:
    """Return how a Gather cuts its axis; None if it does not, or if tiles reach too far."""
    if proto.op_type != "Gather" or proto.domain not in ("", "ai.onnx"):
        return None
    index, given = data.get(proto.input[1]), types[proto.input[0]]
    if index is None or index.ndim != 2 or given.elem not in MOVED:
        return None
    count, reach = index.shape
    if count < 2 or not reach or 0 in given.shape:
        return None
    places = int(index[1, 0]) - int(index[0, 0])
    if places < 1 or (index != np.arange(count)[:, None] * places + np.arange(reach)).any():
        return None
    axis = next((a.i for a in proto.attribute if a.name == "axis"), 0) % len(given.shape)
    return _Cut(axis, count, places, reach)


def _pads(
    proto: onnx.NodeProto, types: Mapping[str, TensorType], data: Mapping[str, Array]
) -> Sequence[tuple[int, int]] | None:
    """Return the zeros that a Pad adds to each axis; None if it does anything else."""
    if proto.op_type != "Pad" or proto.domain not in ("", "ai.onnx"):
        return None
    for attribute in proto.attribute:
        if attribute.name == "mode" and attribute.s != b"constant":
            return None
    inputs = [*proto.input, "", "", ""][:4]
    pads, value, axes = (data.get(name) for name in inputs[1:])
    lacking = (value is None and inputs[2]) or (axes is None and inputs[3])
    if pads is None or lacking or (value is not None and value.any()):
        return None
    rank = len(types[proto.input[0]].shape)
    order = range(rank) if axes is None else [int(axis) % rank for axis in axes]
    out = [(0, 0)] * rank
    for place, axis in enumerate(order):
        out[axis] = int(pads[place]), int(pads[place + len(order)])
    return None if any(min(pair) < 0 for pair in out) else out


def _node(
    name: str,
    chain: Sequence[onnx.NodeProto],
    pads: Sequence[tuple[int, int]] | None,
    types: Mapping[str, TensorType],
    data: Mapping[str, Array],
) -> MNNode | None:
    """Return the node in place of a chain; None if the layer of MNCoreTiles does not suit it."""
    source = chain[0].input[0]
    shape = types[source].shape
    zeros = pads if pads is not None else [(0, 0)] * len(shape)
    # For every axis so far the axis of the source, or None if it is an axis of tiles or places.
    origin: list[int | None] = list(range(len(shape)))
    rows: dict[int, tuple[int, ...]] = {
        axis: (1, size, zeros[axis][0], size + sum(zeros[axis]))
        for axis, size in enumerate(shape)
        if any(zeros[axis])
    }
    for proto in chain[0 if pads is None else 1 :]:
        cut = _cut(proto, types, data)
        assert cut is not None
        axis = origin[cut.axis]
        if axis is None:
            return None
        before = zeros[axis][0]
        behind = cut.reach - before - cut.places
        few = cut.count * cut.places < shape[axis]
        if few or max(before, behind) > cut.places or (before and behind < 0):
            return None
        rows[axis] = cut.count, cut.places, before, cut.reach
        origin[cut.axis : cut.axis + 1] = [None, None]
    columns = zip(*((axis, *rows[axis]) for axis in sorted(rows)), strict=True)
    attributes = tuple(zip(_NAMES, map(tuple, columns), strict=True))
    last = chain[-1]
    return MNNode(name, TILES, (source,), tuple(last.output), attributes, source=source_of(last))
