"""Strides of a convolution that become channels.

The pixels between two strides can be channels of their own. Then the convolution has no stride and
fewer taps. A kernel as long as its stride, as in the first layer of a vision transformer, has one
tap left, and nothing is copied. Pictures with few channels fill the blocks of a product better.
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


def strides_to_fold(
    shape: tuple[int, ...], group: int, axes: Sequence[Axis], block: int
) -> list[int]:
    """Return for every axis of pixels the stride that becomes channels, 1 if none does.

    ``block`` is the number of channels that a product takes at once.
    """
    if group > 1:
        return [1] * len(axes)
    few = shape[1] * prod(axis.stride for axis in axes) <= block
    return [
        axis.stride
        if axis.dilation == 1
        and axis.stride > 1
        and ((axis.taps == axis.stride and axis.begin < axis.taps) or (few and axis.taps > 1))
        else 1
        for axis in axes
    ]


def folded(
    write: Writer, operands: Operands, axes: Sequence[Axis], strides: Sequence[int]
) -> tuple[Operands, list[Axis]]:
    """Append what makes channels of strides; return the convolution that is left."""
    value, shape, made, zeros = folded_pixels(write, operands.value, operands.shape, axes, strides)
    weights = operands.weights
    factor = write.padded(operands.factor, range(2, len(shape)), zeros)
    taps = [size + sum(zero) for size, zero in zip(weights[2:], zeros, strict=True)]
    factor, weights = _with_channels(write, factor, (*weights[:2], *taps), strides)
    return Operands(value, shape, factor, weights, operands.bias, 1), made


def folded_pixels(
    write: Writer, value: str, shape: tuple[int, ...], axes: Sequence[Axis], strides: Sequence[int]
) -> tuple[str, tuple[int, ...], list[Axis], list[tuple[int, int]]]:
    """Append what makes channels of the strides of pixels; return these and the axes left.

    The last result are the zeros that the kernel gets before and behind its taps.
    """
    rank = len(axes)
    spatial = range(2, rank + 2)
    ends, pads, made = list(shape[2:]), [(0, 0)] * rank, list(axes)
    zeros = [(0, 0)] * rank
    for index, (axis, stride) in enumerate(zip(axes, strides, strict=True)):
        if stride == 1:
            continue
        if axis.taps == stride:
            places = stride * axis.results
            ends[index] = min(axis.size, places - axis.begin)
            pads[index] = (axis.begin, places - axis.begin - ends[index])
            made[index] = Axis(axis.results, 1, 1, 1, 0, 0)
            continue
        # Whole strides before the axis stay padding. The kernel begins with zeros for the rest.
        size, begin = -(-axis.size // stride), -(-axis.begin // stride)
        first = begin * stride - axis.begin
        taps = -(-(first + axis.taps) // stride)
        pads[index] = (0, size * stride - axis.size)
        zeros[index] = (first, taps * stride - first - axis.taps)
        made[index] = Axis(size, taps, 1, 1, begin, axis.results + taps - 1 - size - begin)
    if ends != list(shape[2:]):
        value = write.cut(value, spatial, [0] * rank, ends, shape=shape)
    value = write.padded(value, spatial, pads, shape)
    sizes = [end + sum(pad) for end, pad in zip(ends, pads, strict=True)]
    value, shape = _with_channels(write, value, (*shape[:2], *sizes), strides)
    return value, shape, made, zeros


def unfolded(
    write: Writer,
    gradient: str,
    shape: tuple[int, ...],
    strides: Sequence[int],
    zeros: Sequence[tuple[int, int]],
) -> str:
    """Append what makes strides of channels again, in a gradient of weights; return its name.

    ``shape`` is that of the result with the zeros: channels, columns, taps.
    """
    rank = len(strides)
    sizes = [size // stride for size, stride in zip(shape[2:], strides, strict=True)]
    gradient = write.reshape(gradient, (shape[0], *strides, shape[1], *sizes))
    order = [n for a in range(rank) for n in (rank + 2 + a, 1 + a)]
    gradient = write.reshape(write.op("Transpose", gradient, perm=[0, rank + 1, *order]), shape)
    starts = [first for first, _ in zeros]
    ends = [size - last for size, (_, last) in zip(shape[2:], zeros, strict=True)]
    if any(map(any, zeros)):
        gradient = write.cut(gradient, range(2, rank + 2), starts, ends)
    return gradient


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
