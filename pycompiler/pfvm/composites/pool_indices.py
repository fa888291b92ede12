"""MaxPool with the output of indices."""

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
