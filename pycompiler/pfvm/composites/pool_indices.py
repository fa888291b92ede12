"""MaxPool with the output of indices, and MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from ..windows import AxisWindow
from .writer import Writer


def max_with_indices(write: Writer, windows: Sequence[AxisWindow]) -> bool:
    """Append the maximum and its index in the whole input: the first of equal elements.

    Along each axis from the last on, every window takes the best of its taps with the index that
    comes with it. Indices are computed as integers of 32 bits.
    """
    shape = write.type(0).shape
    if int(write.attribute("storage_order", 0)) or prod(shape) >= 1 << 31:
        return False
    value, places = write.node.input[0], ""
    for axis in reversed(range(len(windows))):
        stride = prod(shape[axis + 3 :])
        wide = [-1 if place == axis + 2 else 1 for place in range(len(shape))]
        if places:
            own = np.arange(shape[axis + 2], dtype=np.int32) * stride
            places = write.op("Add", places, write.constant(own.reshape(wide), "places"))
        value, places = _best(write, value, places, axis + 2, windows[axis], wide)
    images = np.arange(prod(shape[:2]), dtype=np.int32) * prod(shape[2:])
    images = images.reshape(*shape[:2], *[1] * len(windows))
    places = write.op("Add", places, write.constant(images, "images"))
    write.op("Identity", value, result=write.node.output[0])
    write.op("Cast", places, result=write.node.output[1], to=onnx.TensorProto.INT64)
    return True


def _best(
    write: Writer, value: str, places: str, axis: int, window: AxisWindow, wide: Sequence[int]
) -> tuple[str, str]:
    """Append the largest tap of each window along ``axis``, and the place that belongs to it.

    ``places`` are the places of the elements; empty if the place is the index along ``axis``.
    """
    # A tap on padding stands for the first tap in the input, which cannot be better.
    first = np.array([row[row >= 0][0] for row in window.taps])
    best, found = "", ""
    for tap in range(window.kernel):
        at = np.where(window.taps[:, tap] < 0, first, window.taps[:, tap])
        own = write.pick(value, axis, at)
        if places:
            place = write.pick(places, axis, at)
        else:
            place = write.constant(at.astype(np.int32).reshape(wide), "places")
        if best:
            better = write.op("Greater", own, best)
            found = write.op("Where", better, place, found)
            best = write.op("Max", own, best)
        else:
            best, found = own, place
    return best, found


#: The most places that elements are compared with.
_MOST_COMPARED = 1 << 24


def unpool(write: Writer) -> str | bool:
    """Compare each index with all places of its picture; places that none names are 0.

    Equal indices name the same maximum, so the largest of them counts.
    """
    batch, channels, *sizes = write.type(0).shape
    kernel = write.attribute("kernel_shape", [])
    strides = write.attribute("strides", [1] * len(sizes))
    pads = write.attribute("pads", [0] * (2 * len(sizes)))
    ends = zip(pads[: len(sizes)], pads[len(sizes) :], strict=True)
    whole = [
        (size - 1) * stride - sum(end) + taps
        for size, stride, taps, end in zip(sizes, strides, kernel, ends, strict=True)
    ]
    pictures, count, places = batch * channels, prod(sizes), prod(whole)
    result = write.types[write.node.output[0]].shape
    small = any(own < made for own, made in zip(result[2:], whole, strict=True))
    if 0 in result or pictures * places >= 1 << 31 or pictures * count * places > _MOST_COMPARED:
        return False
    if small or min(whole) < 1:
        return False
    index = write.op("Cast", write.node.input[1], to=onnx.TensorProto.INT32)
    index = write.reshape(index, [pictures, count, 1])
    first = (np.arange(pictures, dtype=np.int32) * places)[:, None, None]
    index = write.op("Sub", index, write.constant(first, "first"))
    along = write.constant(np.arange(places, dtype=np.int32)[None, None], "places")
    lowest = write.number(-np.inf)
    value = write.reshape(write.node.input[0], [pictures, count, 1])
    found = write.op("Where", write.op("Equal", index, along), value, lowest)
    found = write.op("ReduceMax", found, write.ints([1]), keepdims=0)
    found = write.op("Where", write.op("Equal", found, lowest), write.number(0.0), found)
    found = write.reshape(found, [batch, channels, *whole])
    behind = [(0, own - made) for own, made in zip(result[2:], whole, strict=True)]
    found = write.padded(found, range(2, len(result)), behind)
    return write.op("Identity", found)
