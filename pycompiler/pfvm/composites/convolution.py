"""Convolutions as the device's layer takes them: without padding and groups, cut into tiles.

The layer keeps an axis with taps in Addr, because a tap is an offset of the address. So that all
units have pixels, such an axis ``size`` becomes two: tiles, which may lie on units, and pixels of a
tile. A tile takes the pixels that it shares with its neighbours from them (the halo). Zeros that
come in at the ends of the axis of tiles are the padding of the convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from ..windows import windows_of
from .folding import Operands, folded, strides_to_fold
from .tile_choice import best_tiles, block_of, weights_fit
from .tiles import Axis, split
from .writer import Writer

#: A depthwise convolution with more taps than this runs as a dense product.
_MOST_TAPS = 64


def conv(write: Writer) -> bool:
    """Write padding, groups and tiles as operators around a Conv that has none of them."""
    weights = write.type(1).shape
    value, factor, bias = (*write.node.input, "")[:3]
    group = int(write.attribute("group", 1))
    operands = Operands(value, write.type(0).shape, factor, weights, bias, group)
    axes = spatial_axes(write, weights[2:])
    # The layer takes no automatic padding, even if it pads nothing.
    mode = write.attribute("auto_pad", b"NOTSET").decode()
    return convolve(write, operands, axes, written=mode.startswith("SAME"))


def convolve(write: Writer, operands: Operands, axes: Sequence[Axis], *, written: bool) -> bool:
    """Append a convolution as the device's layer takes it.

    Unless something is ``written`` already, nothing is, and False returned, if the layer takes the
    node as it is.
    """
    target, shape, weights = write.target, operands.shape, operands.weights
    if target is None or len(shape) < 3:
        return False
    group = operands.group
    if group > 1 and weights[1] == 1 and prod(weights[2:]) <= _MOST_TAPS:
        _depthwise(write, operands, axes)
        return True
    block = block_of(target)
    strides = strides_to_fold(operands, axes, block)
    if any(stride > 1 for stride in strides):
        operands, axes = folded(write, operands, axes, strides)
        shape, weights, written = operands.shape, operands.weights, True
    bias, factor, taps = operands.bias, operands.factor, prod(weights[2:])
    if group > 1:
        factor = _dense(write, factor, weights, group)
    chosen = best_tiles(shape, weights[0], axes, target)
    plain = all(axis.plain and tiling.count == 1 for axis, tiling in chosen)
    apart = bool(bias) and not weights_fit(shape[1], taps, target)
    if group == 1 and plain and not apart and not written:
        return False
    channels = shape[1]
    if any(tiling.count > 1 for _, tiling in chosen):
        # A product clears what is missing in the last block of channels for every vector.
        channels = -(-channels // block) * block
        factor = write.padded(factor, [1], [(0, channels - shape[1])])
    value = split(write, operands.value, shape, chosen, channels)
    kernel, steps, dilations = [], [], []
    for axis, tiling in chosen:
        more = tiling.count > 1
        kernel += [1] * more + [axis.taps]
        steps += [1] * more + [tiling.stride]
        dilations += [1] * more + [axis.dilation]
    factor = write.reshape(factor, (weights[0], channels, *kernel))
    reads = [value, factor, *([bias] if bias and not apart else [])]
    found = write.op("Conv", *reads, kernel_shape=kernel, strides=steps, dilations=dilations)
    joined = tuple(tiling.count * tiling.results for _, tiling in chosen)
    found = write.reshape(found, (shape[0], weights[0], *joined))
    ends = [axis.results for axis, _ in chosen]
    if list(joined) != ends:
        found = write.cut(found, range(2, len(shape)), [0] * len(ends), ends)
    if apart:
        found = write.op("Add", found, write.reshape(bias, (weights[0], *(1 for _ in ends))))
    write.op("Identity", found, result=write.node.output[0])
    return True


def spatial_axes(write: Writer, kernel: Sequence[int]) -> list[Axis]:
    """Return the spatial axes of a convolution with this kernel."""
    names = ("strides", "dilations", "pads", "auto_pad")
    given = {name: write.attribute(name, None) for name in names}
    facts = {name: value for name, value in given.items() if value is not None}
    result = write.types[write.node.output[0]].shape[2:]
    found = windows_of({**facts, "kernel_shape": kernel}, write.type(0).shape[2:], result)
    return [Axis(w.size, w.kernel, w.stride, w.dilation, w.before, w.after) for w in found]


def _depthwise(write: Writer, operands: Operands, axes: Sequence[Axis]) -> None:
    """Write a convolution of single channels as a sum of shifted values times numbers."""
    shape, weights, bias = operands.shape, operands.weights, operands.bias
    value, factor = operands.value, operands.factor
    channels, each = shape[1], weights[0] // shape[1]
    places = range(3, 3 + len(axes))
    pads = [(axis.begin, axis.end) for axis in axes]
    value = write.padded(value, range(2, len(shape)), pads, shape)
    inner = (a.size + a.begin + a.end for a in axes)
    value = write.reshape(value, (shape[0], channels, 1, *inner))
    factor = write.reshape(factor, (channels, each, *weights[2:]))
    total = ""
    for tap in product(*(range(axis.taps) for axis in axes)):
        starts = [t * axis.dilation for t, axis in zip(tap, axes, strict=True)]
        ends = [
            start + (axis.results - 1) * axis.stride + 1
            for start, axis in zip(starts, axes, strict=True)
        ]
        part = write.cut(value, places, starts, ends, [axis.stride for axis in axes])
        number = write.cut(factor, range(2, 2 + len(axes)), tap, [t + 1 for t in tap])
        term = write.op("Mul", part, number)
        total = write.op("Add", total, term) if total else term
    if bias:
        wide = write.reshape(bias, (channels, each, *(1 for _ in axes)))
        total = write.op("Add", total, wide)
    results = tuple(axis.results for axis in axes)
    write.op(
        "Identity",
        write.reshape(total, (shape[0], weights[0], *results)),
        result=write.node.output[0],
    )


def _dense(write: Writer, factor: str, weights: tuple[int, ...], group: int) -> str:
    """Return weights over all channels: those of other groups are 0."""
    rows, own = weights[:2]
    mine = np.arange(rows)[:, None] // (rows // group) == np.arange(group * own)[None] // own
    mask = mine.astype(np.float32).reshape(rows, group * own, *(1 for _ in weights[2:]))
    every = write.op("Concat", *[factor] * group, axis=1)
    return write.op("Mul", every, write.constant(mask, "groups"))
