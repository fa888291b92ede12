"""Scatters.

A few updates come one after the other: their order decides, so results are exact. Of many, each
place sums what hits it, or takes the last one, where places times updates fit LM.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from .picking import from_the_front
from .writer import MOVED, Writer, axis_of

#: The most updates that come one after the other.
MOST_UPDATES = 64
#: The operator that joins an update with what is there.
_JOINED = {"none": "", "add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
#: uint32 has no choice on the device.
SCATTERED = MOVED - {"uint32"}
_REDUCED = frozenset({"float", "double", "int32", "int64", "uint64"})


def _joining(write: Writer) -> str | None:
    """Return the operator of the reduction, empty for none; None for a form that stays."""
    name = bytes(write.attribute("reduction", b"none")).decode()
    if name != "none" and write.type(0).elem not in _REDUCED:
        return None
    return _JOINED.get(name)


def _updated(write: Writer, value: str, hit: str, update: str, join: str) -> str:
    new = write.op(join, value, update) if join else update
    return write.op("Where", hit, new, value)


def _many_fit(write: Writer, join: str, *sizes: int) -> bool:
    """Whether many updates have a form: a choice for each place and each update."""
    return join in ("", "Add") and write.has_room(sizes)


def _summed(write: Writer, hit: str, updates: str, axis: int) -> str:
    """Append the sums of the updates that hit a place; they lie on an axis, which goes."""
    landed = write.op("Where", hit, updates, write.number(0))
    return write.op("ReduceSum", landed, write.ints([axis]), keepdims=0)


def _last(write: Writer, hit: str, updates: str, value: str, count: int) -> str:
    """Append the last row of updates that hits a row of the value, or the row itself.

    Both have two axes, and ``hit`` has a row for each row of the value.
    """
    numbers = write.constant(np.arange(count, dtype=np.float32)[None], "numbers")
    none = write.constant(np.asarray(-1, np.float32), "none")
    order = write.op("Where", hit, numbers, none)
    last = write.op("ReduceMax", order, write.ints([1]), keepdims=0)
    first = write.constant(np.asarray(0, np.float32), "first")
    place = write.op("Cast", write.op("Max", last, first), to=onnx.TensorProto.INT64)
    new = write.op("Gather", updates, place, axis=0)
    any_hit = write.op("Unsqueeze", write.op("Greater", last, none), write.ints([1]))
    return write.op("Where", any_hit, new, value)


def _small(write: Writer, index: str) -> str:
    """Append the index as 32-bit integers, which lie in long words as singles do."""
    return write.op("Cast", index, to=onnx.TensorProto.INT32)


def _places(write: Writer, size: int, shape: list[int]) -> str:
    return write.constant(np.arange(size, dtype=np.int32).reshape(shape), "places")


def scatter_elements(write: Writer) -> str | bool:
    """Compare each update's place with all places of the axis."""
    data, index = write.type(0), write.type(1)
    rank, join = len(data.shape), _joining(write)
    if join is None or not rank or 0 in (*data.shape, *index.shape):
        return False
    axis = axis_of(write, 0)
    size, count = data.shape[axis], index.shape[axis]
    many = count > MOST_UPDATES
    if many and not (join and _many_fit(write, join, *data.shape, count)):
        return False
    value, places, updates = write.node.input[:3]
    places = _small(write, from_the_front(write, places, index.elem, size))
    ends = [
        0 if at == axis else own - other
        for at, (own, other) in enumerate(zip(data.shape, index.shape, strict=True))
    ]
    if any(ends):  # lines without updates hit no place
        pads = write.ints([*[0] * rank, *ends])
        nowhere = write.constant(np.asarray(size, dtype=np.int32), "nowhere")
        places, updates = write.op("Pad", places, pads, nowhere), write.op("Pad", updates, pads)
    along = _places(write, size, [size if at == axis else 1 for at in range(rank)])
    if many:
        before, behind = write.ints([axis]), write.ints([axis + 1])
        hit = write.op(
            "Equal", write.op("Unsqueeze", along, behind), write.op("Unsqueeze", places, before)
        )
        wide = write.op("Unsqueeze", updates, before)
        return write.op(join, value, _summed(write, hit, wide, axis + 1))
    for number in range(count):
        place, update = (
            write.cut(name, [axis], [number], [number + 1]) for name in (places, updates)
        )
        value = _updated(write, value, write.op("Equal", along, place), update, join)
    return write.op("Identity", value)


def scatter_nd(write: Writer) -> str | bool:
    """Compare the row of each update with all rows."""
    data, index = write.type(0), write.type(1)
    join = _joining(write)
    depth = index.shape[-1] if index.shape else 0
    if join is None or not depth or 0 in (*data.shape, *index.shape):
        return False
    rows, width = prod(data.shape[:depth]), prod(data.shape[depth:])
    count = prod(index.shape[:-1])
    many = count > MOST_UPDATES
    if many and not _many_fit(write, join, rows, count, width if join else 1):
        return False
    value, places, updates = write.node.input[:3]
    flat = write.reshape(places, [count, depth])
    found = ""
    for at, size in enumerate(data.shape[:depth]):
        part = write.cut(flat, [1], [at], [at + 1])
        part = _small(write, from_the_front(write, part, index.elem, size))
        if found:
            found = write.op("Mul", found, write.constant(np.asarray(size, np.int32), "size"))
        found = write.op("Add", found, part) if found else part
    value = write.reshape(value, [rows, width])
    updates = write.reshape(updates, [count, width])
    along = _places(write, rows, [rows, 1])
    if many:
        hit = write.op("Equal", along, write.reshape(found, [1, count]))
        if join:
            hit = write.op("Unsqueeze", hit, write.ints([2]))
            wide = write.op("Unsqueeze", updates, write.ints([0]))
            value = write.op(join, value, _summed(write, hit, wide, 1))
        else:
            value = _last(write, hit, updates, value, count)
        return write.op("Identity", write.reshape(value, data.shape))
    for number in range(count):
        place, update = (write.cut(name, [0], [number], [number + 1]) for name in (found, updates))
        value = _updated(write, value, write.op("Equal", along, place), update, join)
    value = write.reshape(value, data.shape)
    return write.op("Identity", value)
