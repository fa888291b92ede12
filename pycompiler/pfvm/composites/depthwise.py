"""Convolutions of single channels, as the device's layer takes them.

The layer pads, and keeps axes with taps in Addr. So an axis becomes tiles only if a picture does
not fit LM, or if too few PEs have pixels. A channel that makes several results is repeated first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from onnx import helper

from ...machine import Target
from ..windows import DEPTHWISE
from .folding import Operands
from .tile_choice import Chip, Chosen, chip_of, halo_cycles, splits
from .tiles import Axis, Tiling, split, tilings
from .writer import Writer

#: Cycles that tiles take at least: the switches between their layouts and others.
_EXCHANGE = 2000
#: Cycles for each long word of a PE, if the channels of a MAB are collected for other products.
_COLLECTED = 24


def depthwise(write: Writer, operands: Operands, axes: Sequence[Axis], *, written: bool) -> str:
    """Append a convolution of single channels; unless anything is ``written``, maybe as it is."""
    assert write.target is not None
    shape, weights, bias = operands.shape, operands.weights, operands.bias
    each = weights[0] // shape[1]
    given = operands.value in write.given
    pictures, *_ = write.part(shape)
    chosen = _best((pictures, weights[0]), axes, write.target, given=given)
    tiled = any(tiling.count > 1 for _, tiling in chosen)
    if each == 1 and not tiled and not written:
        own = {a.name: helper.get_attribute_value(a) for a in write.node.attribute}
        whole = {**own, "kernel_shape": weights[2:]}
        return _convolved(write, write.node.input, whole)
    value = operands.value
    if each > 1:
        value = write.reshape(value, (*shape[:2], 1, *shape[2:]))
        value = write.op("Expand", value, write.ints((*shape[:2], each, *shape[2:])))
        shape = (shape[0], weights[0], *shape[2:])
        value = write.reshape(value, shape)
    if tiled:
        value = split(write, value, shape, [_to_cut(*pair) for pair in chosen], shape[1])
    kernel, steps, dilations, pads = [], [], [], []
    for axis, tiling in chosen:
        more = tiling.count > 1
        kernel += [1] * more + [axis.taps]
        steps += [1] * more + [axis.stride]
        dilations += [1] * more + [axis.dilation]
        pads += [(0, 0), (0, 0)] if more else [(axis.begin, axis.end)]
    factor = write.reshape(operands.factor, (weights[0], 1, *kernel))
    facts = {
        "dilations": dilations,
        "group": weights[0],
        "kernel_shape": kernel,
        "pads": [pad[0] for pad in pads] + [pad[1] for pad in pads],
        "strides": steps,
    }
    found = _convolved(write, (value, factor, bias), facts)
    joined = (shape[0], weights[0], *(tiling.count * tiling.results for _, tiling in chosen))
    found = write.first_of(write.reshape(found, joined), joined, [axis.results for axis in axes])
    return write.op("Identity", found)


def _convolved(write: Writer, reads: Sequence[str], facts: Mapping[str, Any]) -> str:
    """Append the operator of the device."""
    reads = [name for name in reads if name]
    with write.as_one(DEPTHWISE, *reads, **facts):
        return write.op("Conv", *reads, **facts)


def _to_cut(axis: Axis, tiling: Tiling) -> tuple[Axis, Tiling]:
    """Return the axis as the cut into tiles sees it: only tiles need padding and halos."""
    if tiling.count > 1:
        return axis, tiling
    whole = Axis(axis.size, 1, 1, 1, 0, 0)
    return whole, next(tilings(whole))


def _best(
    lanes: tuple[int, int], axes: Sequence[Axis], target: Target, *, given: bool
) -> list[tuple[Axis, Tiling]]:
    """Return the tiles of every axis for which a PE has the least to do."""
    chip = chip_of(target)
    ways = [
        (
            _cost(lanes, list(zip(axes, way, strict=True)), chip, given=given),
            prod(t.count for t in way),
            number,
            way,
        )
        for number, way in enumerate(product(*(list(tilings(axis)) for axis in axes)))
    ]
    # A tiling of one tap leaves places out; the layer does that by itself.
    whole = [
        tiling if tiling.count > 1 else Tiling(1, axis.results, axis.size, axis.size, axis.stride)
        for axis, tiling in zip(axes, min(ways)[-1], strict=True)
    ]
    return list(zip(axes, whole, strict=True))


def _cost(lanes: tuple[int, int], chosen: Chosen, chip: Chip, *, given: bool) -> float:
    """Estimate the cycles of a PE; ``lanes`` are the pictures and the channels.

    ``given`` pictures are an input of the model.
    """
    pictures, blocks = lanes[0], -(-lanes[1] // chip.across)
    tiles = [tiling for _, tiling in chosen]
    cut = [(axis, tiling) for axis, tiling in chosen if tiling.count > 1]
    count, units = pictures * prod(t.count for t in tiles), prod(chip.levels)
    results, reach = prod(t.results for t in tiles), prod(t.reach for t in tiles)
    taps = prod(axis.taps for axis, _ in chosen)
    # Time slices cut channels and pictures, but not a tile. Its weights take room too.
    over = max(0, reach - chip.lm0) + max(0, results + taps - chip.lm1)
    ways = [(-(-count * blocks // units), 1)]
    streamed = ways[0][0] * max(reach, results) > min(chip.lm0, chip.lm1)
    if given or streamed:
        # It comes from DRAM, so its channels lie on any units. DRAM holds padding, and the copies
        # of units without channels of their own; time slices leave no such units.
        each = max(1, count * blocks / units) if streamed else ways[0][0]
        places = prod(t.places if t.count > 1 else a.size for a, t in chosen)
        total = each * (places + results) * chip.dram
    else:
        # The products around it want all channels in a MAB.
        total = 0.0
        ways = [
            (-(-count * here // units) * -(-blocks // here), here) for here in splits(blocks, chip)
        ]
    copied = 2 * reach * len(cut)
    total += min(
        each * (results * (taps + _COLLECTED * (here > 1)) + copied)
        + halo_cycles((pictures, lanes[1]), chosen, each, here, chip)
        for each, here in ways
    )
    return total + _EXCHANGE * bool(cut) + 1000 * over
