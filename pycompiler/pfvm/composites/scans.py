"""CumSum, CumProd and TopK: results depend on the elements before, or on the largest."""

from __future__ import annotations

import numpy as np
import onnx

from .writer import Writer, axis_of

#: The most results of a TopK, which takes one pass for each.
_MOST_RESULTS = 32


def cumulative_sum(write: Writer) -> bool:
    """Add the elements before."""
    return _cumulative(write, "Add", 0)


def cumulative_product(write: Writer) -> bool:
    """Multiply by the elements before."""
    return _cumulative(write, "Mul", 1)


def _cumulative(write: Writer, join: str, neutral: int) -> bool:
    """Join with the elements 1, 2, 4, ... places before."""
    given = write.data.get(write.node.input[1])
    shape = write.type(0).shape
    if given is None or not shape:
        return False
    axis = int(given.reshape(-1)[0]) % len(shape)
    size, reverse = shape[axis], bool(write.attribute("reverse", 0))
    if size > write.rows:
        return False
    value = write.node.input[0]

    def shifted(value: str, by: int) -> str:
        """Append the elements ``by`` places before (after, in reverse), then neutral ones."""
        start, end = (by, size) if reverse else (0, size - by)
        kept = write.op("Slice", value, *(write.ints([n]) for n in (start, end, axis)))
        pads = [0] * (2 * len(shape))
        pads[axis + reverse * len(shape)] = by
        return write.op("Pad", kept, write.ints(pads), write.number(neutral))

    if int(write.attribute("exclusive", 0)):
        alone = write.op("Expand", write.number(neutral), write.ints(shape))
        value = shifted(value, 1) if size > 1 else alone
    by = 1
    while by < size:
        value = write.op(join, value, shifted(value, by))
        by *= 2
    write.op("Identity", value, result=write.node.output[0])
    return True


def top_k(write: Writer) -> bool:
    """Take the largest element and its first place, and leave it out, once for each result."""
    given, shape = write.data.get(write.node.input[1]), write.type(0).shape
    if given is None or not shape:
        return False
    count, axis = int(given.reshape(-1)[0]), axis_of(write, -1)
    if not 0 < count <= _MOST_RESULTS:
        return False
    size, largest = shape[axis], bool(write.attribute("largest", 1))
    reduce, lost = ("ReduceMax", -np.inf) if largest else ("ReduceMin", np.inf)
    wide = [size if place == axis else 1 for place in range(len(shape))]
    places = write.constant(np.arange(size, dtype=np.float32).reshape(wide), "places")
    value, nowhere, along = write.node.input[0], write.number(float(size)), write.ints([axis])
    values, indices = [], []
    for number in range(count):
        best = write.op(reduce, value, along, keepdims=1)
        where = write.op("Where", write.op("Equal", value, best), places, nowhere)
        place = write.op("ReduceMin", where, along, keepdims=1)
        values.append(best)
        indices.append(place)
        if number + 1 < count:
            taken = write.op("Equal", places, place)
            value = write.op("Where", taken, write.number(lost), value)
            places = write.op("Where", taken, nowhere, places)
    goals = (*write.node.output, "")[:2]
    if goals[0]:
        write.op("Concat", *values, result=goals[0], axis=axis)
    if goals[1]:
        found = write.op("Concat", *indices, axis=axis)
        write.op("Cast", found, result=goals[1], to=onnx.TensorProto.INT64)
    return True
