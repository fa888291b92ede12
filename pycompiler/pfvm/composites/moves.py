"""Moves by constant places: Tile, Trilu, Pad in modes that repeat elements; Col2Im."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal, cast

import numpy as np

from ..held import Array
from . import in_dram, long_axes
from .writer import Writer


def tile(write: Writer) -> str | bool:
    """Repeat an axis as a new axis in front of it."""
    repeats = write.data.get(write.node.input[1])
    if repeats is None:
        return False
    shape, apart, wide = write.type(0).shape, list[int](), list[int]()
    if joined := _tiled_in_dram(write, repeats.tolist()):
        return joined
    for size, times in zip(shape, repeats.tolist(), strict=True):
        if times != 1:
            apart.append(1)
            wide.append(times)
        apart.append(size)
        wide.append(size)
    value = write.node.input[0]
    if apart == list(shape):
        return write.op("Identity", value)
    value = write.op("Reshape", value, write.ints(apart))
    value = write.op("Expand", value, write.ints(wide))
    return write.op("Reshape", value, write.ints(write.types[write.node.output[0]].shape))


def _tiled_in_dram(write: Writer, repeats: Sequence[int]) -> str | bool:
    """Join copies in DRAM if the result has no small slices."""
    goal = write.types[write.node.output[0]].shape
    value, shape = write.node.input[0], list(write.type(0).shape)
    wanted = [axis for axis, times in enumerate(repeats) if times > 1]
    if not prod(goal) or not in_dram.fits_no_slice(write, goal, *wanted):
        return False
    if prod(shape[: max(wanted)]) * prod(repeats) > in_dram.MOST_RUNS:
        return False
    for axis in reversed(wanted):
        value = in_dram.tile(write, value, shape, axis, repeats[axis])
        shape[axis] *= repeats[axis]
    return write.op("Identity", value)


def strided_slice(write: Writer) -> str | bool:
    """Take elements of an axis that lie ``step`` apart, if ``step`` divides its size.

    Elements and steps become two axes, so the axis of the elements need not lie in one PE. Axes
    that one PE could not hold together are cut one after the other.
    """
    shape = list(write.type(0).shape)
    value, cuts = write.node.input[0], _cuts(write, len(shape))
    changed = [axis for axis, *cut in cuts if range(shape[axis])[slice(*cut)] != range(shape[axis])]
    large, apart_in_dram = False, False
    if len(changed) > 1:
        apart_in_dram = in_dram.fits_no_slice(write, shape, *changed)
        large = write.are_large(shape[axis] for axis in changed)
    found = large or apart_in_dram
    for axis, start, end, step in cuts:
        size = shape[axis]
        chosen = range(size)[start:end:step]
        if step > 1 and write.target is not None and size % step == 0:
            value, found = _every(write, value, shape, axis, chosen), True
        elif step == 1 and 0 < len(chosen) < size and apart_in_dram:
            # Slices of the result are not those of the input: the next axis may be needed whole.
            value = in_dram.cut(write, value, shape, axis, chosen.start, chosen.stop)
        elif len(chosen) and (
            long_axes.is_long_range(write, shape, axis, chosen) or (step < 0 and apart_in_dram)
        ):
            value = long_axes.picked(write, value, shape, axis, chosen, apart=apart_in_dram)
            found = True
        elif len(chosen) < size or step < 0:
            value = write.cut(value, [axis], [start], [end], [step])
        shape[axis] = len(chosen)
    return found and write.op("Identity", value)


def _cuts(write: Writer, rank: int) -> list[tuple[int, int, int, int]]:
    """Return axis, start, end and step of each cut of a Slice; none if they are not constant."""
    names = (*write.node.input[1:], "", "")[:4]
    starts, ends, axes, steps = (
        write.data[name].reshape(-1).tolist() if name in write.data else None for name in names
    )
    if starts is None or ends is None or any(name and name not in write.data for name in names):
        return []
    given = range(len(starts)) if axes is None else (axis % rank for axis in axes)
    return list(zip(given, starts, ends, steps or [1] * len(starts), strict=True))


def _every(write: Writer, value: str, shape: Sequence[int], axis: int, chosen: range) -> str:
    """Append the moves that take the elements ``chosen``, whose step divides the axis."""
    step, count = chosen.step, shape[axis] // chosen.step
    first, offset = divmod(chosen.start, step)
    apart = (*shape[:axis], count, step, *shape[axis + 1 :])
    value = write.cut(write.reshape(value, apart), [axis + 1], [offset], [offset + 1])
    value = write.reshape(value, [*shape[:axis], count, *shape[axis + 1 :]])
    if len(chosen) < count:
        value = write.cut(value, [axis], [first], [first + len(chosen)])
    return value


def triangle(write: Writer) -> str | bool:
    """Keep the elements of a triangle of each matrix."""
    shape, offset = write.type(0).shape, 0
    name = write.input(1)
    upper = int(write.attribute("upper", 1))
    rows, columns = (np.arange(size, dtype=np.int64) for size in shape[-2:])
    distance = columns - rows[:, None]
    if name and name not in write.data:
        one = write.reshape(name, (1,))
        test = "GreaterOrEqual" if upper else "LessOrEqual"
        kept = write.op(test, write.constant(distance, "distance"), one)
    else:
        if name:
            offset = int(write.data[name].reshape(-1)[0])
        kept = write.constant(distance >= offset if upper else distance <= offset, "kept")
    value = write.node.input[0]
    if write.type(0).elem == "bool":
        return write.op("And", value, kept)
    return write.op("Where", kept, value, write.number(0))


def pad(write: Writer) -> str | bool:
    """Pick the elements that padding repeats; the layer pads with a constant."""
    mode = write.attribute("mode", b"constant").decode()
    inputs = (*write.node.input, "", "")
    pads, named = write.data.get(inputs[1]), inputs[3]
    if pads is None or (named and named not in write.data):
        return False
    shape = write.type(0).shape
    rank = len(shape)
    axes = [int(a) % rank for a in write.data[named].reshape(-1)] if named else list(range(rank))
    ends = [int(end) for end in pads.reshape(-1)]
    if mode == "constant":
        return _padded(write, axes, ends, inputs[2])
    if mode not in ("reflect", "edge", "wrap"):
        return False
    value = write.node.input[0]
    for place, axis in enumerate(axes):
        before, after = ends[place], ends[place + len(axes)]
        if not before and not after:
            continue
        if max(shape[axis], shape[axis] + before + after) > write.rows:
            return False
        if shape[axis] + min(0, before) + min(0, after) < 1:  # nothing is left to repeat
            return False
        kind = cast(Literal["reflect", "edge", "wrap"], mode)
        places = np.arange(max(0, -before), shape[axis] - max(0, -after))
        added = (max(0, before), max(0, after))
        value = write.pick(value, axis, np.pad(places, added, mode=kind))
    return write.op("Identity", value)


def _padded(write: Writer, axes: Sequence[int], ends: Sequence[int], filler: str) -> str | bool:
    """Pad axes one after the other if a PE has no room for them, or for one of them."""
    shape, value = list(write.type(0).shape), write.node.input[0]
    both = [(axis, ends[i], ends[i + len(axes)]) for i, axis in enumerate(axes)]
    both = [one for one in both if any(one[1:])]
    if not prod(shape) or any(min(one[1:]) < 0 for one in both) or len(set(axes)) < len(axes):
        return False
    longest = prod(sum(one[1:], shape[one[0]]) for one in both)
    goal = write.types[write.node.output[0]].shape
    apart = len(both) > 1 and in_dram.fits_no_slice(write, goal, *(axis for axis, *_ in both))
    large = any(
        long_axes.needs_dram(write, goal, axis, before, before + shape[axis])
        for axis, before, _ in both
    )
    long = long_axes.is_long(write, longest, 1) and write.has_room(goal)
    if not long and not apart and not large:
        return False
    for axis, before, after in both:
        way = in_dram.pad if apart else long_axes.pad
        value = way(write, value, shape, axis, (before, after), filler)
        shape[axis] += before + after
    return write.op("Identity", value)


def fold(write: Writer) -> str | bool:
    """Add up the blocks that meet in a place, along one axis of the image after the other."""
    inputs = [write.data.get(name) for name in write.node.input[1:3]]
    if any(found is None for found in inputs):
        return False
    image, block = (cast(Array, found).reshape(-1).tolist() for found in inputs)
    rank = len(image)
    facts: dict[str, Any] = {
        name: list(write.attribute(name, [default] * (rank * times)))
        for name, default, times in (("strides", 1, 1), ("dilations", 1, 1), ("pads", 0, 2))
    }
    sources = [
        _meeting(
            image[axis],
            block[axis],
            facts["strides"][axis],
            facts["dilations"][axis],
            (facts["pads"][axis], facts["pads"][axis + rank]),
        )
        for axis in range(rank)
    ]
    counts = [count for count, _ in sources]
    shape = write.type(0).shape
    outer = (shape[0], shape[1] // prod(block))
    if any(
        max(b * n + 1, size) > write.rows for b, n, size in zip(block, counts, image, strict=True)
    ):
        return False
    value = write.op("Reshape", write.node.input[0], write.ints((*outer, *block, *counts)))
    # Each axis of the block comes before its axis of positions.
    order = [0, 1, *(2 + axis + part * rank for axis in range(rank) for part in (0, 1))]
    value = write.op("Transpose", value, perm=order)
    merged = [b * n for b, n in zip(block, counts, strict=True)]
    value = write.op("Reshape", value, write.ints((*outer, *merged)))
    for axis, (_, places) in enumerate(sources):
        value = _added(write, value, 2 + axis, len(merged) + 2, places)
    return write.op("Identity", value)


def _meeting(
    size: int, block: int, stride: int, dilation: int, pads: tuple[int, int]
) -> tuple[int, Array]:
    """Return the positions of blocks along an axis, and what each place of the axis adds up.

    The element ``tap`` of the block at ``position`` has number ``tap * positions + position``. The
    number after the last stands for zero.
    """
    positions = (size + sum(pads) - dilation * (block - 1) - 1) // stride + 1
    met: list[list[int]] = [[] for _ in range(size)]
    for tap in range(block):
        for position in range(positions):
            place = position * stride + tap * dilation - pads[0]
            if 0 <= place < size:
                met[place].append(tap * positions + position)
    most = max(1, *map(len, met))
    rows = [own + [block * positions] * (most - len(own)) for own in met]
    return positions, np.array(rows, dtype=np.int64)


def _added(write: Writer, value: str, axis: int, rank: int, places: Array) -> str:
    """Append the sum of the elements that meet in each place of ``axis``."""
    ends: Sequence[int] = [0] * rank + [int(place == axis) for place in range(rank)]
    value = write.op("Pad", value, write.ints(ends), write.number(0.0))
    total = ""
    for tap in range(places.shape[1]):
        own = write.pick(value, axis, places[:, tap])
        total = write.op("Add", total, own) if total else own
    return total
