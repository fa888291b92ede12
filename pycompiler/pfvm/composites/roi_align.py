"""RoiAlign: products with the weights that the rows and columns of each region give to all places.

The mean over samples of bilinear values is one such product along each axis. Of mode `max`, ONNX
takes the largest of all places near the samples, each times its weight. The weights are not
negative, so the largest along one axis, and then along the other, is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..held import Array
from .writer import Writer


@dataclass(frozen=True)
class _Way:
    """The regions along one axis of ``size`` places, cut into ``count`` bins each.

    With ``largest``, each place near a sample has weights of its own.
    """

    axis: int
    size: int
    count: int
    ratio: int
    scale: float
    centred: bool
    largest: bool


def roi_align(write: Writer) -> str | bool:
    """Take the pictures of the regions, then multiply along both axes."""
    value, regions, index = write.node.input
    shape = write.type(0).shape
    mode = write.attribute("mode", b"avg")
    if mode not in (b"avg", b"max") or 0 in (*shape, *write.type(1).shape):
        return False
    ratio, known = int(write.attribute("sampling_ratio", 0)), write.data.get(regions)
    if (ratio < 1 and known is None) or write.type(0).elem != write.type(1).elem:
        return False
    centred = write.attribute("coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
    scale = write.single("spatial_scale", 1.0)
    counts = (int(write.attribute(name, 1)) for name in ("output_height", "output_width"))
    rows, columns = (
        _Way(axis, shape[axis + 2], count, ratio, scale, centred, mode == b"max")
        for axis, count in enumerate(counts)
    )
    factors = [
        _weights(write, way) if known is None else write.own(_known(known, way), "weights")
        for way in (rows, columns)
    ]
    down, across = (write.op("Unsqueeze", name, write.ints([1])) for name in factors)
    value = write.op("Gather", value, index, axis=0) if shape[0] > 1 else value
    across = write.op("Transpose", across, perm=[0, 1, 3, 2])
    value = write.op("MatMul", value, across)
    if mode == b"avg":
        return write.op("MatMul", down, value)
    most, first = write.ints([3]), (write.type(1).shape[0], shape[1])
    value = write.op("Transpose", value, perm=[0, 1, 3, 2])
    value = write.reshape(value, (*first, columns.count, -1, shape[2]))
    value = write.op("ReduceMax", value, most, keepdims=0)
    value = write.op("MatMul", down, write.op("Transpose", value, perm=[0, 1, 3, 2]))
    value = write.reshape(value, (*first, rows.count, -1, columns.count))
    return write.op("ReduceMax", value, most, keepdims=0)


def _known(regions: Array, way: _Way) -> Array:
    """Return the weights of known regions, of shape (regions, bins, places).

    For the largest, there are several for each bin, in all regions the same number. Those of a
    region with fewer samples stand there again.
    """
    offset = 0.5 if way.centred else 0.0
    ends = (regions[:, column].astype(np.float64) for column in (1 - way.axis, 3 - way.axis))
    start, end = (each * way.scale - offset for each in ends)
    length = end - start if way.centred else np.maximum(end - start, 1.0)
    ratios = [way.ratio if way.ratio > 0 else int(np.ceil(each / way.count)) for each in length]
    several = 2 * max(1, *ratios) if way.largest else 1
    found = np.zeros((len(regions), way.count, several, way.size))
    for number, (first, whole, ratio) in enumerate(zip(start, length, ratios, strict=True)):
        if ratio < 1:  # a region without samples
            continue
        at = first + whole * _samples(way.count, ratio)
        near, places = np.clip(at, 0, way.size - 1)[:, None], np.arange(way.size)
        weight = np.maximum(0, 1 - np.abs(near - places))
        weight[(at < -1) | (at > way.size)] = 0
        if way.largest:
            lower = weight * (places == np.floor(near))
            pairs = np.stack([lower, weight - lower], 1).reshape(way.count, -1, way.size)
            found[number] = pairs[:, np.arange(several) % (2 * ratio)]
        else:
            found[number, :, 0] = weight.reshape(way.count, ratio, way.size).mean(1)
    return found.reshape(len(regions), -1, way.size)


def _samples(count: int, ratio: int) -> Array:
    """Return the places of all samples, as fractions of the region."""
    return (np.arange(count * ratio) + 0.5) / (count * ratio)


def _weights(write: Writer, way: _Way) -> str:
    """Append the same weights of regions that the model computes."""

    def wide(array: Array, shape: Sequence[int]) -> str:
        return write.own(array.reshape(shape), "places")

    op, regions = write.op, write.type(1).shape[0]
    start, end = (
        op("Mul", write.cut(write.node.input[1], [1], [column], [column + 1]), way.scale)
        for column in (1 - way.axis, 3 - way.axis)
    )
    length = op("Sub", end, start)
    if way.centred:
        start = op("Sub", start, 0.5)
    else:
        length = op("Max", length, 1.0)
    start, length = (write.reshape(name, (regions, 1, 1)) for name in (start, length))
    fractions = wide(_samples(way.count, way.ratio), (1, -1, 1))
    at = op("Add", start, op("Mul", length, fractions))
    near, places = op("Clip", at, 0.0, way.size - 1.0), wide(np.arange(way.size), (1, 1, -1))
    weight = op("Max", op("Sub", 1.0, op("Abs", op("Sub", near, places))), 0.0)
    inside = write.op("And", op("GreaterOrEqual", at, -1.0), op("LessOrEqual", at, float(way.size)))
    weight = op("Where", inside, weight, 0.0)
    if way.largest:
        lower = op("Where", op("Equal", op("Floor", near), places), weight, 0.0)
        pair = (
            write.op("Unsqueeze", name, write.ints([2]))
            for name in (lower, op("Sub", weight, lower))
        )
        return write.reshape(write.op("Concat", *pair, axis=2), (regions, -1, way.size))
    apart = write.reshape(weight, (regions, way.count, way.ratio, way.size))
    total = write.op("ReduceSum", apart, write.ints([2]), keepdims=0)
    return op("Mul", total, 1.0 / way.ratio)
