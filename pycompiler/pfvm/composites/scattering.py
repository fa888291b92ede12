"""Scatters, one update after the other: the order of the updates decides, so results are exact."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from .picking import from_the_front
from .writer import MOVED, Writer, axis_of

#: The most updates of one place that a compile writes out.
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
    if count > MOST_UPDATES:
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
    if count > MOST_UPDATES:
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
    for number in range(count):
        place, update = (write.cut(name, [0], [number], [number + 1]) for name in (found, updates))
        value = _updated(write, value, write.op("Equal", along, place), update, join)
    value = write.reshape(value, data.shape)
    return write.op("Identity", value)
