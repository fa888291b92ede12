"""Convolutions as the device's layer takes them: without padding and groups, cut into tiles.

The layer keeps an axis with taps in Addr, because a tap is an offset of the address. So that all
units have pixels, such an axis ``size`` becomes two: tiles, which may lie on units, and pixels of a
tile. A tile takes the pixels that it shares with its neighbours from them (the halo). Zeros that
come in at the ends of the axis of tiles are the padding of the convolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...machine import Target
from ..windows import GROUPED, windows_of
from .depthwise import depthwise
from .folding import Operands, folded, strides_to_fold
from .tile_choice import best_tiles, block_of, rows_of, weights_are_large, weights_fit
from .tiles import Axis, Tiling, split
from .weight_gradient import weight_gradient
from .writer import Writer


def conv(write: Writer) -> str | bool:
    """Write padding, groups and tiles as operators around a Conv that has none of them."""
    if found := weight_gradient(write):
        return found
    weights = write.type(1).shape
    value, factor, bias = (*write.node.input, "")[:3]
    group = int(write.attribute("group", 1))
    operands = Operands(value, write.type(0).shape, factor, weights, bias, group)
    axes = spatial_axes(write, weights[2:])
    # The layer takes no automatic padding, even if it pads nothing.
    mode = write.attribute("auto_pad", b"NOTSET").decode()
    return convolve(write, operands, axes, written=mode.startswith("SAME"))


def convolve(
    write: Writer, operands: Operands, axes: Sequence[Axis], *, written: bool
) -> str | bool:
    """Append a convolution as the device's layer takes it.

    Unless something is ``written`` already, nothing is, and False returned, if the layer takes the
    node as it is.
    """
    target, shape, weights = write.target, operands.shape, operands.weights
    if target is None or len(shape) < 3:
        return False
    group = operands.group
    if group > 1 and weights[1] == 1:
        return depthwise(write, operands, axes, written=written)
    block = block_of(target)
    strides = strides_to_fold(shape, group, axes, block)
    if any(stride > 1 for stride in strides):
        operands, axes = folded(write, operands, axes, strides)
        shape, weights, written = operands.shape, operands.weights, True
    bias, factor, taps = operands.bias, operands.factor, prod(weights[2:])
    joined = _joined_groups(weights, group, target)
    if joined > 1:
        factor = _dense(write, factor, weights, group, joined)
    # For a MAB, groups are more pictures of fewer channels.
    groups, channels = group // joined, weights[1] * joined
    pictures = (shape[0] * groups, channels, *shape[2:])
    large = groups == 1 and weights_are_large(channels, taps, target)
    results = weights[0] // groups
    chosen = best_tiles(
        write.part(pictures), results, axes, target, passes=write.passes, contracted=large
    )
    plain = all(axis.plain and tiling.count == 1 for axis, tiling in chosen)
    apart = bool(bias) and not weights_fit(channels, taps, target)
    if group == 1 and plain and not apart and not written:
        return False
    every = shape[1]
    if groups == 1 and (large or any(tiling.count > 1 for _, tiling in chosen)):
        # A product clears what is missing in the last block of channels for every vector. If the
        # weights are too large for one MAB, the L1Bs share the channels, all with as many blocks.
        fill = block * target.counts["l1b"] if large else block
        every = channels = -(-channels // fill) * fill
        factor = write.padded(factor, [1], [(0, channels - shape[1])])
    value = split(write, operands.value, shape, chosen, every)
    tiles = [one for axis, tiling in chosen for one in _tile_axes(axis, tiling)]
    places, made, kernel, steps, dilations = map(list, zip(*tiles, strict=True))
    factor = write.reshape(factor, (weights[0], channels, *kernel))
    reads = [value, factor, *([bias] if bias and not apart else [])]
    facts: dict[str, Any] = {"dilations": dilations, "strides": steps}
    if groups == 1:
        found = write.op("Conv", *reads, kernel_shape=kernel, group=1, **facts)
    else:
        shapes = [
            (shape[0], weights[0], *made),
            (shape[0], every, *places),
            (weights[0], channels, *kernel),
            (weights[0],),
        ]
        found = _with_group_axis(write, reads, shapes, groups, facts)
    whole = (shape[0], weights[0], *(tiling.count * tiling.results for _, tiling in chosen))
    found = write.first_of(write.reshape(found, whole), whole, [a.results for a, _ in chosen])
    if apart:
        found = write.op("Add", found, write.reshape(bias, (weights[0], *(1 for _ in chosen))))
    return write.op("Identity", found)


def _tile_axes(axis: Axis, tiling: Tiling) -> list[tuple[int, int, int, int, int]]:
    """Return places, results, taps, stride and dilation of the axes that an axis becomes."""
    within = (tiling.reach, tiling.results, axis.taps, tiling.stride, axis.dilation)
    return [*[(tiling.count, tiling.count, 1, 1, 1)] * (tiling.count > 1), within]


def _with_group_axis(
    write: Writer,
    reads: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
    groups: int,
    facts: Mapping[str, Any],
) -> str:
    """Append a convolution in groups, which are an axis of each operand and of the result.

    ``shapes`` are those of the result and of ``reads`` without this axis.
    """
    apart = [
        (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
        for shape, axis in zip(shapes, (1, 1, 0, 0), strict=True)
    ]
    split = [write.reshape(name, shape) for name, shape in zip(reads, apart[1:], strict=False)]
    with write.as_one(GROUPED, *split, **facts):
        flat = [write.reshape(name, shape) for name, shape in zip(split, shapes[1:], strict=False)]
        found = write.op("Conv", *flat, kernel_shape=shapes[2][2:], group=groups, **facts)
        found = write.reshape(found, apart[0])
    return write.reshape(found, shapes[0])


def spatial_axes(write: Writer, kernel: Sequence[int]) -> list[Axis]:
    """Return the spatial axes of a convolution with this kernel."""
    names = ("strides", "dilations", "pads", "auto_pad")
    given = {name: write.attribute(name, None) for name in names}
    facts = {name: value for name, value in given.items() if value is not None}
    result = write.types[write.node.output[0]].shape[2:]
    found = windows_of({**facts, "kernel_shape": kernel}, write.type(0).shape[2:], result)
    return [Axis(w.size, w.kernel, w.stride, w.dilation, w.before, w.after) for w in found]


def _joined_groups(weights: tuple[int, ...], group: int, target: Target) -> int:
    """Return how many groups become one, so that its channels fill blocks of a product.

    Blocks are a power of two, so that they fill units: with padding between groups, no view could
    make one axis of groups and channels again.
    """
    tile, block = rows_of(target), block_of(target)
    for count in range(1, group + 1):
        rows, own = weights[0] // group * count, weights[1] * count
        fills = own % block == rows % tile == 0
        if group % count == 0 and fills and all(n & (n - 1) == 0 for n in (rows, own)):
            return count
    return group


def _dense(write: Writer, factor: str, weights: tuple[int, ...], group: int, joined: int) -> str:
    """Return weights in fewer groups, each ``joined`` old ones: those between old groups are 0."""
    rows, own = weights[:2]
    row, channel = np.arange(rows)[:, None], np.arange(joined * own)[None]
    mine = row // (rows // group) % joined == channel // own
    mask = mine.reshape(rows, joined * own, *(1 for _ in weights[2:]))
    every = write.op("Concat", *[factor] * joined, axis=1)
    return write.op("Mul", every, write.own(mask, "groups"))
