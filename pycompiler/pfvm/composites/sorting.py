"""TopK, and sorts by it: the best element again and again, or the rank of every element."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import helper

from ...graph.dtypes import onnx_elem_type
from ..held import Array
from .writer import MOST_PLACES, Writer, axis_of

#: The most results that are taken one by one: each takes a pass over the line.
MOST_RESULTS = 32
#: The most comparisons of elements with each other.
MOST_COMPARED = 1 << 24


def top_k(write: Writer) -> bool:
    """Take the largest element and its first place, and leave it out, once for each result.

    Longer results take every element to its rank instead.
    """
    given, shape = write.data.get(write.node.input[1]), write.type(0).shape
    if given is None or not shape:
        return False
    count, axis = int(given.reshape(-1)[0]), axis_of(write, -1)
    size = shape[axis]
    if not 0 < count <= size <= MOST_PLACES:
        return False
    if count > MOST_RESULTS:
        return _ranked(write, axis, count)
    reduce = "ReduceMax" if _largest(write) else "ReduceMin"
    wide = [size if place == axis else 1 for place in range(len(shape))]
    places = write.constant(np.arange(size, dtype=np.float32).reshape(wide), "places")
    nowhere = write.constant(np.asarray(size, np.float32), "nowhere")
    lost, along = write.own(_last(write), "lost"), write.ints([axis])
    value = write.node.input[0]
    values, indices = [], []
    for number in range(count):
        best = write.op(reduce, value, along, keepdims=1)
        where = write.op("Where", write.op("Equal", value, best), places, nowhere)
        place = write.op("ReduceMin", where, along, keepdims=1)
        values.append(best)
        indices.append(place)
        if number + 1 < count:
            taken = write.op("Equal", places, place)
            value = write.op("Where", taken, lost, value)
            places = write.op("Where", taken, nowhere, places)
    goals = (*write.node.output, "")[:2]
    if goals[0]:
        write.op("Concat", *values, result=goals[0], axis=axis)
    if goals[1]:
        found = write.op("Concat", *indices, axis=axis)
        write.op("Cast", found, result=goals[1], to=onnx.TensorProto.INT64)
    return True


def _largest(write: Writer) -> bool:
    return bool(write.attribute("largest", 1))


def _last(write: Writer) -> Array:
    """Return the number that comes behind all others of the element type."""
    kind = helper.tensor_dtype_to_np_dtype(onnx_elem_type(write.type(0).elem))
    if np.issubdtype(kind, np.integer):
        info = np.iinfo(kind)
        return np.asarray(info.min if _largest(write) else info.max, kind)
    return np.asarray(-np.inf if _largest(write) else np.inf)


def _ranked(write: Writer, axis: int, count: int) -> bool:
    """Count for each element how many come before it, and pick the element of each rank."""
    shape, size = write.type(0).shape, write.type(0).shape[axis]
    if prod(shape) * size > MOST_COMPARED:
        return False
    rank = len(shape)
    order = [*(at for at in range(rank) if at != axis), axis]
    value = write.node.input[0]
    if order != list(range(rank)):
        value = write.op("Transpose", value, perm=order)
    lines = prod(shape) // size
    value = write.reshape(value, [lines, size])
    one, other = write.reshape(value, [lines, size, 1]), write.reshape(value, [lines, 1, size])
    before = write.op("Less" if _largest(write) else "Greater", one, other)
    places = np.arange(size)
    ahead = write.constant((places[None, :] < places[:, None])[None], "ahead")
    before = write.op("Or", before, write.op("And", write.op("Equal", one, other), ahead))
    counted = write.op("Cast", before, to=onnx.TensorProto.FLOAT)
    counted = write.op("ReduceSum", counted, write.ints([2]), keepdims=1)
    wanted = write.constant(np.arange(count, dtype=np.float32)[None, None, :], "ranks")
    hit = write.op("Equal", counted, wanted)
    back = [order.index(at) for at in range(rank)]
    whole = [*(shape[at] for at in order[:-1]), count]

    def result(of: str, zero: str, goal: str, to: int) -> None:
        found = write.op("ReduceSum", write.op("Where", hit, of, zero), write.ints([1]), keepdims=0)
        found = write.reshape(found, whole)
        if order != back or order != list(range(rank)):
            found = write.op("Transpose", found, perm=back)
        write.op("Cast", found, result=goal, to=to)

    goals = (*write.node.output, "")[:2]
    if goals[0]:
        result(one, write.number(0), goals[0], onnx_elem_type(write.type(0).elem))
    if goals[1]:
        own = write.constant(places.astype(np.float32)[None, :, None], "places")
        zero = write.constant(np.zeros((), np.float32), "zero")
        result(own, zero, goals[1], onnx.TensorProto.INT64)
    return True
