"""CumSum, CumProd and ReduceProd: products and sums of neighbours, twice as many in each step."""

from __future__ import annotations

from .writer import Writer


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
    return write.op("Identity", value)


def product(write: Writer) -> str | bool:
    """Multiply the first half by the second, until one factor is left on each axis."""
    shape, axes = list(write.type(0).shape), write.reduced_axes()
    if axes is None:
        return False
    value = write.node.input[0]
    for axis in axes:
        size = shape[axis]
        while size > 1:
            half = size // 2
            one, other = (write.cut(value, [axis], [start], [start + half]) for start in (0, half))
            found = write.op("Mul", one, other)
            if size % 2:
                rest = write.cut(value, [axis], [size - 1], [size])
                found = write.op("Concat", found, rest, axis=axis)
            value, size = found, half + size % 2
        shape[axis] = 1
    if not int(write.attribute("keepdims", 1)):
        shape = [size for axis, size in enumerate(shape) if axis not in axes]
    return write.op("Identity", write.reshape(value, shape))
