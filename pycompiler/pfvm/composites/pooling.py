"""Pools: as reductions of whole blocks, or over one axis after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from onnx import helper

from ..windows import HOST, AxisWindow, windows_of
from .pool_indices import max_with_indices
from .tile_choice import best_tiles
from .tiles import Axis, Tiling, split
from .writer import Writer

#: The element type whose means are written as sums of taps.
WIDE = "double"
#: Operators without negative results, and operators that keep the signs of their first input.
_NOT_NEGATIVE = ("Relu", "Sigmoid", "HardSigmoid", "Abs", "Exp", "Softmax", "Softplus")
_KEEP_SIGNS = ("MaxPool", "AveragePool", "Identity", "Dropout", "Reshape", "Transpose")


def max_pool(write: Writer) -> str | bool:
    """Write a reduction of blocks, pools over one axis each, or the choice of indices."""
    windows = _windows(write)
    if windows is not None and len(write.node.output) > 1 and write.node.output[1]:
        return max_with_indices(write, windows)
    return _written(write, windows)


def average_pool(write: Writer) -> str | bool:
    """Write a mean of blocks, or pools over one axis each."""
    return _written(write, _windows(write))


def _written(write: Writer, windows: Sequence[AxisWindow] | None) -> str | bool:
    node = write.node
    if windows is not None:
        return _pooled(write, node.input[0], windows, node.op_type)
    # The layer takes windows along one axis. This attribute tells it to leave the node to the host.
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    made = write.op(node.op_type, *node.input, result=node.output[0], **{HOST: "NOTSET", **facts})
    write.nodes[-1].output.extend(node.output[1:])
    return bool(made)


def lp_pool(write: Writer) -> str | bool:
    """Take the root of the sum of powers over windows."""
    windows = _windows(write)
    if windows is None:
        return False
    # Padding after the input in place of `ceil_mode`: an average then divides by the whole window.
    windows = tuple(
        replace(window, after=max(window.reach, 0), padding_counts=True) for window in windows
    )
    powers, root = _powers(write)
    found = _pooled(write, powers, windows, "AveragePool")
    count = prod(window.kernel for window in windows)
    if count > 1:
        found = write.op("Mul", found, write.number(count))
    return write.op(*root(found))


def global_lp_pool(write: Writer) -> str | bool:
    """Take the root of the sum of powers over all axes but batch and channel."""
    axes = _spatial(write)
    powers, root = _powers(write)
    found = write.op("ReduceSum", powers, write.ints(axes), keepdims=1) if axes else powers
    return write.op(*root(found))


def _powers(write: Writer) -> tuple[str, Callable[[str], tuple[str, ...]]]:
    """Append the powers of the magnitudes; also return the operator that takes the root."""
    value, power = write.node.input[0], write.single("p", 2)
    if power == 2:
        return write.op("Mul", value, value), lambda total: ("Sqrt", total)
    value = write.op("Abs", value)
    if power == 1:
        return value, lambda total: ("Identity", total)
    powers = write.op("Pow", value, write.number(power))
    return powers, lambda total: ("Pow", total, write.number(1 / power))


def global_average_pool(write: Writer) -> str | bool:
    """Take the mean over all axes but batch and channel."""
    axes = _spatial(write)
    if not axes:
        return False
    count = prod(write.type(0).shape[2:])
    return write.mean(write.node.input[0], axes, count)


def global_max_pool(write: Writer) -> str | bool:
    """Take the largest element over all axes but batch and channel."""
    axes = _spatial(write)
    if not axes:
        return False
    return write.op("ReduceMax", write.node.input[0], write.ints(axes), keepdims=1)


def _spatial(write: Writer) -> list[int]:
    return list(range(2, len(write.type(0).shape)))


def _windows(write: Writer) -> tuple[AxisWindow, ...] | None:
    """Return the windows along each spatial axis.

    None if a window holds no element, or if windows lie along an axis that is too long for LM.
    """
    result = write.types[write.node.output[0]].shape
    facts = {a.name: helper.get_attribute_value(a) for a in write.node.attribute}
    windows = windows_of(facts, write.type(0).shape[2:], result[2:])
    blocks = all(_in_blocks(window) for window in windows)
    for window in windows:
        copied = window.kernel * window.count != window.size if blocks else not window.plain
        long = copied and max(window.size, window.count) > write.rows
        if not window.whole or long:
            return None
    return windows


def _pooled(write: Writer, value: str, windows: Sequence[AxisWindow], op: str) -> str:
    """Append pool ``op``: a reduction of blocks, or a pool along one axis after the other."""
    axes = [axis for axis, window in enumerate(windows) if not window.plain]
    if not axes:
        return write.op("Identity", value)
    if all(_in_blocks(window) for window in windows):
        return _blocks(write, value, windows, op)
    tiled = _tiles(write, value, windows, op)
    if tiled is not None:
        return _tiled(write, value, tiled, op)
    for axis in axes:
        value = _along(write, value, axis, windows, op)
    return value


def _tiles(
    write: Writer, value: str, windows: Sequence[AxisWindow], op: str
) -> list[tuple[Axis, Tiling]] | None:
    """Return tiles of the axes; None if there are none, or zeros in their halo would be wrong."""
    shape = write.types[value].shape if value in write.types else ()
    if write.target is None or not shape or write.type(0).elem == WIDE:
        return None
    axes = [
        Axis(w.size, w.kernel, w.stride, w.dilation, w.before, max(w.after, w.reach))
        for w in windows
    ]
    if op == "MaxPool":
        harmless = _not_negative(write, value)
    else:
        harmless = all(w.padding_counts and w.reach <= w.after for w in windows)
    padded = any(axis.begin or axis.end for axis in axes)
    counted = all(axis.results == w.count for axis, w in zip(axes, windows, strict=True))
    if not counted or (padded and not harmless):
        return None
    # The channels lie as those of the convolutions around the pool, so tiles like theirs suit it.
    chosen = best_tiles(
        write.part(shape), shape[1], axes, write.target, passes=write.passes, even=True
    )
    return chosen if any(tiling.count > 1 for _, tiling in chosen) else None


def _not_negative(write: Writer, value: str) -> bool:
    """Whether a value is known to have no negative element."""
    while value in write.makers:
        node = write.makers[value]
        if node.op_type in _NOT_NEGATIVE:
            return True
        if node.op_type not in _KEEP_SIGNS:
            return False
        value = node.input[0]
    return False


def _tiled(write: Writer, value: str, chosen: Sequence[tuple[Axis, Tiling]], op: str) -> str:
    """Append pools inside of tiles: each along one axis, without padding."""
    shape = write.types[value].shape
    value = split(write, value, shape, chosen, shape[1])
    sizes: list[int] = []
    inner: list[int] = []
    for _, tiling in chosen:
        sizes += [tiling.count] * (tiling.count > 1) + [tiling.reach]
        inner.append(len(sizes) - 1)
    for place, (axis, tiling) in zip(inner, chosen, strict=True):
        if axis.taps > 1:
            window = AxisWindow(
                tiling.reach, tiling.results, axis.taps, tiling.stride, axis.dilation, 0, 0, False
            )
            plain = [replace(window, kernel=1, stride=1, dilation=1)] * len(sizes)
            value = _along(write, value, place, [*plain[:place], window, *plain[place + 1 :]], op)
    value = write.reshape(value, (*shape[:2], *(axis.results for axis, _ in chosen)))
    return write.op("Identity", value)


def _along(write: Writer, value: str, axis: int, windows: Sequence[AxisWindow], op: str) -> str:
    """Append the pool along spatial axis ``axis`` only."""
    rank, window = len(windows), windows[axis]
    if op == "AveragePool" and write.type(0).elem == WIDE:
        return mean_of_taps(write, value, axis + 2, rank + 2, window)

    def alone(own: int, other: int) -> list[int]:
        return [own if place == axis else other for place in range(rank)]

    facts: dict[str, Any] = {
        "kernel_shape": alone(window.kernel, 1),
        "strides": alone(window.stride, 1),
        "pads": alone(window.before, 0) + alone(window.after, 0),
    }
    if window.dilation > 1:
        facts["dilations"] = alone(window.dilation, 1)
    if window.reach > window.after:
        facts["ceil_mode"] = 1
    if op == "AveragePool" and window.padding_counts:
        facts["count_include_pad"] = 1
    return write.op(op, value, **facts)


def mean_of_taps(write: Writer, value: str, axis: int, rank: int, window: AxisWindow) -> str:
    """Append the sum of the taps, times one over their number: the layer of means has singles."""
    wide = [-1 if place == axis else 1 for place in range(rank)]
    total, zero = "", write.number(0.0)
    for tap in range(window.kernel):
        places = window.taps[:, tap]
        if (places < 0).all():
            continue
        own = write.pick(value, axis, np.maximum(places, 0))
        if (places < 0).any():
            inside = write.constant((places >= 0).reshape(wide), "inside")
            own = write.op("Where", inside, own, zero)
        total = write.op("Add", total, own) if total else own
    inverses = 1 / np.asarray(window.counts, np.float64)
    return write.op("Mul", total, write.own(inverses.reshape(wide), "shares"))


def _in_blocks(window: AxisWindow) -> bool:
    """Whether the windows lie one after the other, without padding."""
    if window.plain:
        return True
    followed = window.kernel == window.stride and window.dilation == 1
    return followed and not window.before and window.kernel * window.count <= window.size


def _blocks(write: Writer, value: str, windows: Sequence[AxisWindow], op: str) -> str:
    """Append a reduction over the elements of blocks."""
    used = [window.kernel * window.count for window in windows]
    cut = [axis for axis, window in enumerate(windows) if used[axis] < window.size]
    if cut:
        bounds = ([0] * len(cut), [used[axis] for axis in cut], [axis + 2 for axis in cut])
        value = write.op("Slice", value, *map(write.ints, bounds))
    apart, axes = list(write.type(0).shape[:2]), []
    for window in windows:
        apart.append(window.count)
        if window.kernel > 1:
            axes.append(len(apart))
            apart.append(window.kernel)
    value, along = write.op("Reshape", value, write.ints(apart)), write.ints(axes)
    if op == "MaxPool":
        return write.op("ReduceMax", value, along, keepdims=0)
    total = write.op("ReduceSum", value, along, keepdims=0)
    count = prod(window.kernel for window in windows)
    return write.op("Mul", total, write.number(1 / count))
