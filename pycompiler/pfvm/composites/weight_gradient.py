"""The gradient of the weights of a convolution, as a convolution over pictures and tiles.

The sum over pictures and places is a Conv whose operands have channels for pictures: its pixels are
those of the convolution, its kernel are the gradients of the convolution's result. Both are cut
into the tiles of the convolution. The sum over tiles is one over channels as well, so pictures and
tiles become the channels of the Conv. All of this is one operator of the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from ...graph.dtypes import MNDtype
from ..windows import APART, WEIGHT_GRADIENT
from .folding import folded_pixels, strides_to_fold, unfolded
from .tile_choice import best_tiles, block_of, weight_gradient_fits
from .tiles import Axis, Tiling, split
from .writer import Writer

_Names = tuple[str, str]
_Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def weight_gradient(write: Writer) -> str | bool:
    """Write a Conv whose operands have pictures and channels exchanged; False for other Convs."""
    target = write.target
    if target is None or (operands := _operands(write)) is None:
        return False
    pixels, gradient = operands
    shape, given = (
        (kind.shape[1], kind.shape[0], *kind.shape[2:]) for kind in (write.type(0), write.type(1))
    )
    axes = _axes(write, shape, given)
    if min(*shape, *given) < 1 or any(
        axis.results != size for axis, size in zip(axes, given[2:], strict=True)
    ):
        return False
    strides = strides_to_fold(shape, 1, axes, block_of(target))
    zeros = [(0, 0)] * len(axes)
    if any(stride > 1 for stride in strides):
        pixels, shape, axes, zeros = folded_pixels(write, pixels, shape, axes, strides)
    if each := _channels_in_tiles((shape, given), axes, write):
        found = _grouped(write, (pixels, gradient), (shape, given), axes, each)
    else:
        found = _products(write, (pixels, gradient), (shape, given), axes)
    if any(stride > 1 for stride in strides):
        taps = (axis.taps * stride for axis, stride in zip(axes, strides, strict=True))
        whole = (shape[1] // prod(strides), given[1], *taps)
        found = unfolded(write, found, whole, strides, zeros)
    return write.op("Identity", found)


def _operands(write: Writer) -> _Names | None:
    """Return the operands as they are before the exchange; None if they are not exchanged."""
    if len(write.node.input) > 2 or int(write.attribute("group", 1)) != 1:
        return None
    if write.attribute("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return None
    one, other = ((name, _exchanged(write, name)) for name in write.node.input)
    # A constant may be exchanged already.
    known = [name in write.data for name in write.node.input]
    if all(known) or write.type(0).elem != "float":
        return None
    if not (one[1] or known[0]) or not (other[1] or known[1]):
        return None
    pixels, gradient = (
        found or write.constant(np.swapaxes(write.data[name], 0, 1), "exchanged")
        for name, found in (one, other)
    )
    return pixels, gradient


def _exchanged(write: Writer, name: str) -> str:
    """Return the value of which ``name`` is a Transpose of the first two axes; else nothing."""
    maker = write.makers.get(name)
    if maker is None or maker.op_type != "Transpose":
        return ""
    order = next((tuple(a.ints) for a in maker.attribute if a.name == "perm"), ())
    return str(maker.input[0]) if order == (1, 0, *range(2, len(order))) else ""


def _axes(write: Writer, shape: tuple[int, ...], given: tuple[int, ...]) -> list[Axis]:
    """Return the spatial axes of the convolution whose weights' gradient is asked for."""
    count = len(shape) - 2
    taps = write.types[write.node.output[0]].shape[2:]
    pads = list(write.attribute("pads", [0] * 2 * count))
    strides = write.attribute("dilations", [1] * count)
    dilations = write.attribute("strides", [1] * count)
    out: list[Axis] = []
    for a in range(count):
        reached = (given[2 + a] - 1) * strides[a] + (taps[a] - 1) * dilations[a] + 1
        # Places behind the last one that a gradient meets do not count.
        end = min(pads[count + a], max(0, reached - shape[2 + a] - pads[a]))
        size = min(shape[2 + a], reached - pads[a] - end)
        out.append(Axis(size, taps[a], strides[a], dilations[a], pads[a], end))
    return out


def _channels_in_tiles(shapes: _Shapes, axes: Sequence[Axis], write: Writer) -> int:
    """Return for how many channels at once the gradient is computed in tiles; 0 if not in tiles.

    guess: where a MAB has a block of places, tiles take fewer cycles than products, in groups of
    channels too. With fewer places they take more, unless all fits LM.
    """
    target, (shape, given) = write.target, shapes
    assert target is not None
    block, channels = block_of(target), shape[1]
    many = prod(given[2:]) >= target.counts["mab"] * block
    blocks = -(-channels // block)
    for count in range(1, blocks + 1 if many else 2):
        each = -(-blocks // count) * block
        some = shape[0], min(each, channels), *shape[2:]
        chosen = best_tiles(some, given[1], axes, target, passes=write.passes)
        if weight_gradient_fits(some, given[1], chosen, target, few=not many):
            return some[1]
    return 0


def _grouped(write: Writer, ends: _Names, shapes: _Shapes, axes: Sequence[Axis], each: int) -> str:
    """Append Convs over pictures and tiles, for ``each`` channels or the rest of them."""
    (pixels, gradient), (shape, given) = ends, shapes
    parts = []
    for first in range(0, shape[1], each):
        count = min(each, shape[1] - first)
        some = write.cut(pixels, [1], [first], [first + count]) if count < shape[1] else pixels
        own = (shape[0], count, *shape[2:])
        parts.append(_tiled(write, (some, gradient), (own, given), axes))
    return write.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


def _tiled(write: Writer, operands: _Names, shapes: _Shapes, axes: Sequence[Axis]) -> str:
    """Append the Conv over pictures and tiles."""
    target = write.target
    assert target is not None
    (pixels, gradient), shape, given = operands, list(shapes[0]), shapes[1]
    sizes = [axis.size for axis in axes]
    pixels = write.first_of(pixels, shape, sizes)
    shape[2:] = sizes
    chosen = best_tiles(tuple(shape), given[1], axes, target, passes=write.passes)
    every = shape[1]
    if any(tiling.count > 1 for _, tiling in chosen):
        # As the convolution does, so that both read the same tiles.
        every = -(-every // block_of(target)) * block_of(target)
    value = split(write, pixels, tuple(shape), chosen, every)
    whole = [tiling.count * tiling.results for _, tiling in chosen]
    ends = [(0, more - size) for more, size in zip(whole, given[2:], strict=True)]
    gradient = write.padded(gradient, range(2, len(given)), ends, given)
    cut = [n for _, t in chosen for n in ((t.count, t.results) if t.count > 1 else (t.results,))]
    gradient = write.reshape(gradient, (*given[:2], *cut))
    made = [(t.reach - (t.results - 1) * t.stride - 1) // axis.dilation + 1 for axis, t in chosen]
    rows: list[tuple[int, int, int]] = []
    for taps, (axis, tiling) in zip(made, chosen, strict=True):
        rows += [(0, 1, 1)] * (tiling.count > 1) + [(taps, tiling.stride, axis.dilation)]
    names = ("kernel_shape", "strides", "dilations")
    facts = dict(zip(names, zip(*rows, strict=True), strict=True))
    tiles, kernel = prod(t.count for _, t in chosen), [t.results for _, t in chosen]
    both = (value, every, [t.reach for _, t in chosen]), (gradient, given[1], kernel)
    with write.as_one(WEIGHT_GRADIENT, value, gradient, **facts):
        turned = []
        for one, channels, places in both:
            turned.append(write.op("Transpose", one, perm=_order(chosen)))
            turned[-1] = write.reshape(turned[-1], (channels, given[0] * tiles, *places))
        found = write.op(
            "Conv",
            *turned,
            kernel_shape=kernel,
            strides=[axis.dilation for axis, _ in chosen],
            dilations=[tiling.stride for _, tiling in chosen],
        )
    wanted = [shape[1], *(axis.taps for axis in axes)]
    if [every, *made] != wanted:
        places = [0, *range(2, len(shape))]
        found = write.cut(found, places, [0] * len(places), wanted)
    return found


def _order(chosen: Sequence[tuple[Axis, Tiling]]) -> list[int]:
    """Return the order of axes: channels, pictures, tiles, places."""
    tiles, places, axis = list[int](), list[int](), 2
    for _, tiling in chosen:
        if tiling.count > 1:
            tiles.append(axis)
            axis += 1
        places.append(axis)
        axis += 1
    return [1, 0, *tiles, *places]


def _products(write: Writer, ends: _Names, shapes: _Shapes, axes: Sequence[Axis]) -> str:
    """Append a product for each picture over its places: its rows are taps and channels.

    With few places, or if LM has no room for the results of all pictures, one product for all
    pictures gives the sum. If it has no room for all rows or their results, several products have
    some of the taps each.
    """
    (pixels, gradient), (shape, given) = ends, shapes
    pictures, channels, columns = shape[0], shape[1], given[1]
    places, spatial = prod(given[2:]), range(2, len(shape))
    assert write.target is not None
    block, mabs = block_of(write.target), write.target.counts["mab"]
    whole = places < APART or not write.has_room((pictures, channels, columns))
    together = whole and pictures > 1
    value = write.padded(pixels, spatial, [(axis.begin, axis.end) for axis in axes])

    def rows(name: str, count: int) -> str:
        if not together:
            return write.reshape(name, (pictures, count, places))
        turned = write.op("Transpose", name, perm=[1, 0, *spatial])
        return write.reshape(turned, (1, count, pictures * places))

    taps = []
    for tap in product(*(range(axis.taps) for axis in axes)):
        starts = [step * axis.dilation for step, axis in zip(tap, axes, strict=True)]
        last = [(axis.results - 1) * axis.stride + 1 for axis in axes]
        stops = [start + size for start, size in zip(starts, last, strict=True)]
        part = write.cut(value, spatial, starts, stops, [axis.stride for axis in axes])
        taps.append(rows(part, channels))
    right = write.op("Transpose", rows(gradient, columns), perm=[0, 2, 1])
    terms = pictures * places if together else pictures * -(-places // block) * block
    # The rows are halves, several where a single would be, and all MABs have the same.
    halves = MNDtype.HALF.words_per_long // MNDtype.FLOAT.words_per_long
    held = channels * max(terms * mabs // halves, columns * (1 if together else pictures))
    count = next((n for n in range(len(taps), 1, -1) if write.has_room((n, held))), 1)
    sums = []
    for first in range(0, len(taps), count):
        some = taps[first : first + count]
        left = write.op("Concat", *some, axis=1) if len(some) > 1 else some[0]
        found = write.op("MatMul", left, right)
        sums.append(write.op("ReduceSum", found, write.ints([0]), keepdims=0))
    found = write.op("Concat", *sums, axis=0) if len(sums) > 1 else sums[0]
    found = write.reshape(found, (*(axis.taps for axis in axes), channels, columns))
    count = len(axes)
    return write.op("Transpose", found, perm=[count, count + 1, *range(count)])
