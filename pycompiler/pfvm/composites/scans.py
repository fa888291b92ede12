"""CumSum, CumProd and ReduceProd: products and sums of neighbours, twice as many in each step.

A long axis becomes rows: what a row begins with comes from the ends of the rows before.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from .long_axes import pad
from .writer import Writer

#: Longer axes become rows and columns, up to the square.
_SHORT = 32


def cumulative_sum(write: Writer) -> str | bool:
    """Add the elements before."""
    return _cumulative(write, "Add", 0)


def cumulative_product(write: Writer) -> str | bool:
    """Multiply by the elements before."""
    return _cumulative(write, "Mul", 1)


def _cumulative(write: Writer, join: str, neutral: int) -> str | bool:
    """Join with the elements 1, 2, 4, ... places before."""
    given = write.data.get(write.node.input[1])
    shape = write.type(0).shape
    if given is None or not shape:
        return False
    axis = int(given.reshape(-1)[0]) % len(shape)
    value, size, reverse = write.node.input[0], shape[axis], bool(write.attribute("reverse", 0))
    if size > write.rows:
        return False

    def shifted(value: str, by: int) -> str:
        """Append the elements ``by`` places before (after, in reverse), then neutral ones."""
        start, ends = (by, (0, by)) if reverse else (0, (by, 0))
        kept = write.cut(value, [axis], [start], [start + size - by])
        return write.op("Pad", kept, write.ints(ends), write.number(neutral), write.ints([axis]))

    if int(write.attribute("exclusive", 0)):
        alone = write.op("Expand", write.number(neutral), write.ints(shape))
        value = shifted(value, 1) if size > 1 else alone
    if _SHORT < size <= _SHORT**2:
        return write.op("Identity", _in_rows(write, value, axis, join, neutral))
    for step in range((size - 1).bit_length()):
        value = write.op(join, value, shifted(value, 1 << step))
    return write.op("Identity", value)


def _in_rows(write: Writer, value: str, axis: int, join: str, neutral: int) -> str:
    """Append the same along rows of a long axis, joined with all of the rows before."""
    shape, reverse = write.type(0).shape, int(write.attribute("reverse", 0))
    front, size, rest = shape[:axis], shape[axis], shape[axis + 1 :]
    columns = isqrt(size - 1) + 1
    rows = -(-size // columns)
    value = pad(write, value, shape, axis, (0, rows * columns - size), write.number(neutral))
    value = write.reshape(value, (*front, rows, columns, *rest))
    inner, outer = (write.constant(np.array(n), "axis") for n in (axis + 1, axis))
    value = write.op(write.node.op_type, value, inner, reverse=reverse)
    last = 0 if reverse else columns - 1
    whole = write.cut(value, [axis + 1], [last], [last + 1])
    before = write.op(write.node.op_type, whole, outer, reverse=reverse, exclusive=1)
    value = write.reshape(write.op(join, value, before), (*front, rows * columns, *rest))
    return write.cut(value, [axis], [0], [size])


def product(write: Writer) -> str | bool:
    """Multiply the first half by the second, until one factor is left on each axis."""
    shape, axes = list(write.type(0).shape), write.reduced_axes()
    if axes is None:
        return False
    value = write.node.input[0]
    for axis in axes:
        size = shape[axis]
        while size > 1:
            half, ends = -(-size // 2), write.ints((0, 1))
            if size % 2:
                value = write.op("Pad", value, ends, write.number(1), write.ints([axis]))
            one, other = (write.cut(value, [axis], [start], [start + half]) for start in (0, half))
            value, size = write.op("Mul", one, other), half
        shape[axis] = 1
    if not int(write.attribute("keepdims", 1)):
        shape = [size for axis, size in enumerate(shape) if axis not in axes]
    return write.op("Identity", write.reshape(value, shape))
