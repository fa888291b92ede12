"""Gradients of operators that pick elements by index.

The places are compared with the indices, and what matches is added. So the order of the sum is
fixed, and a second run gives the same bits.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .back import Back, Rule


def _whole(back: Back, index: int, size: int) -> str:
    """Append the indices, counted from the front."""
    name, elem = back.input(index), back.type(index).elem
    zero = back.constant(np.zeros((), dtype=elem), "zero")
    more = back.constant(np.asarray(size, dtype=elem), "size")
    return back.op("Where", back.op("Less", name, zero), back.op("Add", name, more), name)


def _gather(back: Back) -> bool:
    shape, picked = back.shape(0), back.shape(1)
    axis = int(back.attribute("axis", 0)) % len(shape)
    size, count = shape[axis], prod(picked)
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    known = back.known(1)
    if known is not None and len(known) == 1:
        first = known[0] % size
        wide = [*shape[:axis], 1, *shape[axis + 1 :]]
        value = back.reshape(back.grad, wide)
        back.give(0, back.padded(value, [axis], [(first, size - 1 - first)]))
        return True
    indices = back.reshape(_whole(back, 1, size), [1, count])
    places = back.constant(np.arange(size).astype(back.type(1).elem).reshape(-1, 1), "places")
    same = back.op("Equal", places, indices)
    table = back.op("Where", same, back.number(1.0), back.number(0.0))
    flat = [count, behind] if before == 1 else [before, count, behind]
    total = back.op("MatMul", table, back.reshape(back.grad, flat))
    back.give(0, back.reshape(total, shape))
    return True


def _scattered(back: Back, indices: str, picked: tuple[int, ...], axis: int) -> str:
    """Append the gradient of a tensor of which ``indices`` along ``axis`` were picked."""
    shape = back.shape(0)
    rank, size = len(shape), shape[axis]
    apart = [*picked[:axis], 1, *picked[axis:]]
    places = np.arange(size).reshape([-1 if a == axis else 1 for a in range(rank + 1)])
    elem = back.types[indices].elem if indices in back.types else "int64"
    same = back.op(
        "Equal", back.reshape(indices, apart), back.constant(places.astype(elem), "places")
    )
    each = back.where(same, back.reshape(back.grad, apart))
    total = back.op("ReduceSum", each, back.ints([axis + 1]), keepdims=0)
    ends = [(0, whole - part) for whole, part in zip(shape, picked, strict=True)]
    ends[axis] = (0, 0)
    return back.padded(total, list(range(rank)), ends)


def _gather_elements(back: Back) -> bool:
    axis = int(back.attribute("axis", 0)) % len(back.shape(0))
    indices = _whole(back, 1, back.shape(0)[axis])
    back.types[indices] = back.type(1)
    back.give(0, _scattered(back, indices, back.shape(1), axis))
    return True


def _top_k(back: Back) -> bool:
    axis = int(back.attribute("axis", -1)) % len(back.shape(0))
    back.give(0, _scattered(back, back.node.output[1], back.result_shape(), axis))
    return True


def _scatter_elements(back: Back) -> bool:
    reduction = bytes(back.attribute("reduction", b"none"))
    if reduction not in (b"none", b"add"):
        return False
    axis = int(back.attribute("axis", 0))
    if back.wants(2):
        back.give(2, back.op("GatherElements", back.grad, back.input(1), axis=axis))
    if back.wants(0):
        value = back.grad
        if reduction == b"none":
            zeros = back.op("Expand", back.number(0.0), back.ints(back.shape(1)))
            value = back.op("ScatterElements", value, back.input(1), zeros, axis=axis)
        back.give(0, value)
    return True


PICKS: dict[str, Rule] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "ScatterElements": _scatter_elements,
    "TopK": _top_k,
}
