"""Resize: along one axis after the other, a pick for `nearest`, else a sum of weighted picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..held import Array
from .writer import Writer

#: The modes whose antialiased filter is centred as onnxruntime and torch do.
_ANTIALIASED = ("half_pixel", "pytorch_half_pixel")


@dataclass(frozen=True)
class _Axis:
    """An axis of ``size`` elements that gets ``count``; ``start`` and ``end`` are its region."""

    number: int
    size: int
    count: int
    scale: float
    start: float = 0.0
    end: float = 1.0
    #: the precision of places and weights
    kind: type[np.floating[Any]] = np.float32


@dataclass(frozen=True)
class _Taps:
    """The places and the weights of the elements that each result adds up, (results, taps)."""

    places: Array
    weights: Array


def resize(write: Writer) -> str | bool:
    """Resize the axes that shrink most first."""
    mode = _text(write, "mode", "nearest")
    ways = _text(write, "coordinate_transformation_mode", "half_pixel")
    if 0 in write.type(0).shape:
        return False
    axes = _axes(write, ways)
    if axes is None or (ways not in _COORDINATES and ways != "tf_crop_and_resize"):
        return False
    antialias = bool(write.attribute("antialias", 0)) and mode != "nearest"
    if antialias and ways not in _ANTIALIASED:
        return False
    value, outside = write.node.input[0], []
    for axis in sorted(axes, key=lambda axis: axis.count / axis.size):
        at = _coordinates(axis, ways)
        if ways == "tf_crop_and_resize":
            outside.append((axis, (at < 0) | (at > axis.size - 1)))
        if antialias:
            taps = _antialiased(write, axis, mode)
        else:
            taps = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}[mode](write, axis, at)
        value = _along(write, value, axis, taps)
    if any(mask.any() for _, mask in outside):
        value = _extrapolated(write, value, outside)
    return write.op("Identity", value)


def _text(write: Writer, name: str, default: str) -> str:
    found = write.attribute(name, default)
    return found.decode() if isinstance(found, bytes) else str(found)


def _axes(write: Writer, ways: str) -> list[_Axis] | None:
    """Return the axes that change; None if they are not constant, or too long for LM.

    Axes whose size stays are copied where onnxruntime does so, whatever their scale and region.
    """
    shape, result = write.type(0).shape, write.types[write.node.output[0]].shape
    kind: Any = np.float64 if write.type(0).elem == "double" else np.float32
    antialias = int(write.attribute("antialias", 0))
    numbers = [int(axis) % len(shape) for axis in write.attribute("axes", range(len(shape)))]
    roi, scales, sizes = (write.data.get(n) for n in (*write.node.input[1:], "", "", "")[:3])
    if scales is None or not scales.size:
        if sizes is None or not sizes.size:
            return None
        scales = _scales(write, np.asarray(sizes, kind) / np.asarray(shape, kind)[numbers])
    given = [float(scale) for scale in scales]
    out = []
    for place, (axis, scale) in enumerate(zip(numbers, given, strict=True)):
        region = (0.0, 1.0)
        if ways == "tf_crop_and_resize":
            if roi is None:
                return None
            region = (float(roi[place]), float(roi[place + len(numbers)]))
        size, count = shape[axis], result[axis]
        if size == count and (scale == 1.0 or antialias or shape == result):
            continue
        if max(size, count) > write.rows:
            return None
        out.append(_Axis(axis, size, count, scale, *region, kind))
    return out


def _scales(write: Writer, own: Array) -> Array:
    """Return the scales of axes from those of their own sizes."""
    policy = _text(write, "keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return own
    return np.full_like(own, own.min() if policy == "not_larger" else own.max())


def _half_pixel(x: Array, axis: _Axis) -> Array:
    return np.asarray((x + axis.kind(0.5)) / axis.kind(axis.scale) - axis.kind(0.5))


def _symmetric(x: Array, axis: _Axis) -> Array:
    adjusted = axis.kind(axis.count) / (axis.kind(axis.scale) * axis.kind(axis.size))
    offset = axis.kind(axis.size / 2) * (1 - adjusted)
    return np.asarray(offset + _half_pixel(x, axis), dtype=axis.kind)


#: The place in the input of each place of the result: singles, as in onnxruntime, or doubles.
_COORDINATES: dict[str, Callable[[Array, _Axis], Array]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda x, axis: _half_pixel(x, axis) if axis.count > 1 else x * 0,
    "align_corners": lambda x, axis: (
        x * axis.kind(axis.size - 1) / axis.kind(max(1, axis.count - 1))
    ),
    "asymmetric": lambda x, axis: x / axis.kind(axis.scale),
}


def _coordinates(axis: _Axis, ways: str) -> Array:
    x = np.arange(axis.count, dtype=axis.kind)
    if ways != "tf_crop_and_resize":
        return _COORDINATES[ways](x, axis)
    last, start, end = (axis.kind(n) for n in (axis.size - 1, axis.start, axis.end))
    if axis.count == 1:
        return np.asarray([axis.kind(0.5) * (start + end) * last])
    return np.asarray(start * last + x * (end - start) * last / axis.kind(axis.count - 1))


_NEAR = 1e-6  # places so near to a half are halves, as in onnxruntime
_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5 - _NEAR),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5 + _NEAR),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _nearest(write: Writer, axis: _Axis, at: Array) -> _Taps:
    rounded = _ROUNDED[_text(write, "nearest_mode", "round_prefer_floor")](at.astype(float))
    places = np.clip(rounded.astype(np.int64), 0, axis.size - 1)[:, None]
    return _Taps(places, np.ones(places.shape))


def _linear(write: Writer, axis: _Axis, at: Array) -> _Taps:
    at = np.clip(at, 0, axis.size - 1)
    low = np.floor(at).astype(np.int64)
    part = (at - low)[:, None]
    places = np.minimum(np.stack([low, low + 1], 1), axis.size - 1)
    return _Taps(places, np.concatenate([1 - part, part], 1))


def _cubic(write: Writer, axis: _Axis, at: Array) -> _Taps:
    low = np.floor(at).astype(np.int64)
    places = low[:, None] + np.arange(-1, 3)
    a = write.single("cubic_coeff_a", -0.75)
    weights = _cubic_weight(at[:, None].astype(np.float64) - places, a)
    return _inside(write, axis, _Taps(places, weights))


def _cubic_weight(distance: Array, a: float) -> Array:
    x = np.abs(distance)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _inside(write: Writer, axis: _Axis, taps: _Taps) -> _Taps:
    """Clamp the places; `exclude_outside` drops those that were not in the input."""
    weights = taps.weights
    if int(write.attribute("exclude_outside", 0)):
        weights = np.where((taps.places >= 0) & (taps.places < axis.size), weights, 0.0)
        weights = weights / weights.sum(1, keepdims=True)
    return _Taps(np.clip(taps.places, 0, axis.size - 1), weights)


def _antialiased(write: Writer, axis: _Axis, mode: str) -> _Taps:
    """Stretch the filter where the axis shrinks."""
    stretch = max(1.0, 1.0 / axis.scale)
    reach = (1.0 if mode == "linear" else 2.0) * stretch
    centre = (np.arange(axis.count) + 0.5) / axis.scale
    places = np.floor(centre - reach + 0.5).astype(np.int64)[:, None] + np.arange(
        int(np.ceil(2 * reach)) + 1
    )
    distance = (places + 0.5 - centre[:, None]) / stretch
    a = write.single("cubic_coeff_a", -0.75)
    weights = (
        np.maximum(0, 1 - np.abs(distance)) if mode == "linear" else _cubic_weight(distance, a)
    )
    return _inside(write, axis, _Taps(places, weights / weights.sum(1, keepdims=True)))


def _along(write: Writer, value: str, axis: _Axis, taps: _Taps) -> str:
    """Append the sum of the taps. A tap without weight takes the place of its neighbour."""
    wide = [1] * len(write.type(0).shape)
    wide[axis.number] = axis.count
    if taps.places.shape[1] == 1:
        return write.pick(value, axis.number, taps.places[:, 0])
    total = ""
    if taps.places.shape[1] == 2:
        low, high = (write.pick(value, axis.number, taps.places[:, tap]) for tap in (0, 1))
        part = write.constant(taps.weights[:, 1].astype(axis.kind).reshape(wide), "weights")
        return write.op("Add", low, write.op("Mul", write.op("Sub", high, low), part))
    for tap in range(taps.places.shape[1]):
        weights = taps.weights[:, tap].astype(axis.kind)
        if not weights.any():
            continue
        own = write.pick(value, axis.number, taps.places[:, tap])
        own = write.op("Mul", own, write.constant(weights.reshape(wide), "weights"))
        total = write.op("Add", total, own) if total else own
    return total


def _extrapolated(write: Writer, value: str, outside: Sequence[tuple[_Axis, Array]]) -> str:
    """Append the choice of `extrapolation_value` where a place lies outside of the input."""
    rank = len(write.type(0).shape)
    mask = np.zeros((1,) * rank, dtype=bool)
    for axis, own in outside:
        mask = mask | own.reshape([-1 if place == axis.number else 1 for place in range(rank)])
    filler = write.number(write.single("extrapolation_value", 0.0))
    return write.op("Where", write.constant(mask, "outside"), filler, value)
