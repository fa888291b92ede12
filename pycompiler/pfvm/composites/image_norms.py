"""Normalisations of images: over groups of channels, over neighbouring channels, over any axes."""

from __future__ import annotations

from math import prod

from ..windows import AxisWindow
from .norms import standardised
from .pooling import WIDE, mean_of_taps
from .writer import Writer


def group_norm(write: Writer) -> str | bool:
    """Normalise each group of channels; scale and shift are per channel."""
    shape, groups = write.type(0).shape, int(write.attribute("num_groups", 0))
    value, scale, shift = write.node.input
    apart = (shape[0], groups, shape[1] // groups, *shape[2:])
    axes = list(range(2, len(apart)))
    value = write.op("Reshape", value, write.ints(apart))
    normal = standardised(write, value, axes, prod(apart[2:]))
    wide = [1, groups, shape[1] // groups] + [1] * len(shape[2:])
    for op, operand in (("Mul", scale), ("Add", shift)):
        normal = write.op(op, normal, write.op("Reshape", operand, write.ints(wide)))
    return write.op("Reshape", normal, write.ints(shape))


def local_response_norm(write: Writer) -> str | bool:
    """Divide by a power of the mean square of neighbouring channels."""
    shape, value = write.type(0).shape, write.node.input[0]
    size = int(write.attribute("size", 1))
    alpha, beta, bias = (
        write.single(name, default)
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    before, inner = (size - 1) // 2, len(shape) - 2
    # The channels become the first spatial axis of a pool.
    if shape[1] > write.rows:
        return False
    squares = write.op("Mul", value, value)
    if size > 1 and write.type(0).elem == WIDE:
        window = AxisWindow(shape[1], shape[1], size, 1, 1, before, size - 1 - before, True)
        squares = mean_of_taps(write, squares, 1, len(shape), window)
    elif size > 1:
        squares = write.op(
            "AveragePool",
            write.op("Unsqueeze", squares, write.ints([1])),
            kernel_shape=[size] + [1] * inner,
            pads=[before] + [0] * inner + [size - 1 - before] + [0] * inner,
            count_include_pad=1,
        )
        squares = write.op("Squeeze", squares, write.ints([1]))
    scaled = write.op("Mul", squares, write.number(alpha))
    base = write.op("Add", scaled, write.number(bias))
    factor = write.op("Pow", base, write.number(-beta))
    return write.op("Mul", value, factor)


def mean_variance_norm(write: Writer) -> str | bool:
    """Subtract the mean over axes, divide by the deviation."""
    shape, value = write.type(0).shape, write.node.input[0]
    axes = [int(axis) % len(shape) for axis in write.attribute("axes", (0, 2, 3))]
    count = prod(shape[axis] for axis in axes)
    moved = write.op("Sub", value, write.mean(value, axes, count))
    deviation = write.op("Sqrt", write.mean(write.op("Mul", moved, moved), axes, count))
    # ONNX adds this number so that it never divides by 0.
    divisor = write.op("Add", deviation, write.number(1e-9))
    return write.op("Mul", moved, write.op("Reciprocal", divisor))
