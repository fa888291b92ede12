"""Strides of a convolution that become channels.

A kernel as long as its stride, as in the first layer of a vision transformer, reads every pixel
once. The pixels between two strides can be channels of their own. Then the kernel has one tap, and
nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from .tiles import Axis
from .writer import Writer


@dataclass(frozen=True)
class Operands:
    """The values of a convolution and their shapes; ``bias`` may be empty."""

    value: str
    shape: tuple[int, ...]
    factor: str
    weights: tuple[int, ...]
    bias: str
    group: int


def strides_to_fold(operands: Operands, axes: Sequence[Axis]) -> list[int]:
    """Return for every axis the stride that becomes channels, 1 if none does."""
    if operands.group > 1:
        return [1] * len(axes)
    return [
        axis.stride
        if axis.taps == axis.stride > 1 and axis.dilation == 1 and axis.begin < axis.taps
        else 1
        for axis in axes
    ]


def folded(
    write: Writer, operands: Operands, axes: Sequence[Axis], strides: Sequence[int]
) -> tuple[Operands, list[Axis]]:
    """Append what makes channels of strides; return the convolution that is left."""
    shape, weights, rank = operands.shape, operands.weights, len(axes)
    spatial = range(2, rank + 2)
    ends, pads, made = list(shape[2:]), [(0, 0)] * rank, list(axes)
    for index, (axis, stride) in enumerate(zip(axes, strides, strict=True)):
        if stride > 1:
            places = stride * axis.results
            ends[index] = min(axis.size, places - axis.begin)
            pads[index] = (axis.begin, places - axis.begin - ends[index])
            made[index] = Axis(axis.results, 1, 1, 1, 0, 0)
    value = operands.value
    if ends != list(shape[2:]):
        value = write.cut(value, spatial, [0] * rank, ends)
    value = write.padded(value, spatial, pads, shape)
    sizes = [end + sum(pad) for end, pad in zip(ends, pads, strict=True)]
    value, shape = _with_channels(write, value, (*shape[:2], *sizes), strides)
    factor, weights = _with_channels(write, operands.factor, weights, strides)
    return Operands(value, shape, factor, weights, operands.bias, 1), made


def _with_channels(
    write: Writer, value: str, shape: tuple[int, ...], strides: Sequence[int]
) -> tuple[str, tuple[int, ...]]:
    """Append the views that move the places between two strides to the channels."""
    sizes = [size // stride for size, stride in zip(shape[2:], strides, strict=True)]
    apart = [part for pair in zip(sizes, strides, strict=True) for part in pair]
    value = write.reshape(value, (*shape[:2], *apart))
    rank = len(sizes)
    order = [0, 1, *range(3, 2 + 2 * rank, 2), *range(2, 2 + 2 * rank, 2)]
    value = write.op("Transpose", value, perm=order)
    result = (shape[0], shape[1] * prod(strides), *sizes)
    return write.reshape(value, result), result
