"""Pools, samples, pads and sizes of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch.nn import functional

_ATEN = torch.ops.aten


def _constant(array: Any) -> torch.Tensor:
    """Return a tensor of an array; `torch.from_numpy` would leave the traced program."""
    dtype = torch.int64 if array.dtype.kind == "i" else torch.float32
    return torch.tensor(array.reshape(-1).tolist(), dtype=dtype).reshape(array.shape)


def _adaptive_max_pool(axes: int, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return an adaptive pool. Windows of unequal sizes repeat their last element."""

    def made_of(x: torch.Tensor, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        shape, front = x.shape[-axes:], x.shape[:-axes]
        if not any(size % count for size, count in zip(shape, sizes, strict=True)):
            kernel = [size // count for size, count in zip(shape, sizes, strict=True)]
            values, indices = plain(x, kernel, kernel, return_indices=True)
            return values, indices
        windows, numbers = x, np.arange(prod(shape)).reshape(shape)
        for axis, (size, count) in enumerate(zip(shape, sizes, strict=True)):
            number = np.arange(count)
            first, end = number * size // count, ((number + 1) * size + count - 1) // count
            reach = int((end - first).max())
            picks = np.minimum(first[:, None] + np.arange(reach), end[:, None] - 1)
            at, flat = len(front) + 2 * axis, picks.reshape(-1)
            cut = (count, reach)
            windows = windows.index_select(at, _constant(flat))
            windows = windows.reshape(*windows.shape[:at], *cut, *windows.shape[at + 1 :])
            numbers = numbers.take(flat, 2 * axis)
            numbers = numbers.reshape(
                *numbers.shape[: 2 * axis], *cut, *numbers.shape[2 * axis + 1 :]
            )
        inner = [len(front) + 2 * axis + 1 for axis in range(axes)]
        best = windows.amax(inner, keepdim=True)
        known = _constant(numbers)
        places = torch.where(windows == best, known, torch.full_like(known, prod(shape)))
        return best.reshape(*front, *sizes), places.amin(inner).reshape(*front, *sizes)

    return made_of


_BILINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1


def _grid_sampler(
    x: torch.Tensor, grid: torch.Tensor, interpolation: int, padding: int, align_corners: bool
) -> torch.Tensor:
    """Sample a volume: a sum over all its elements, with a weight along each axis."""
    spatial = x.shape[2:]
    found = x[:, :, None]
    points = grid.reshape(grid.shape[0], -1, len(spatial))
    for axis, size in enumerate(spatial):
        at = points[..., len(spatial) - 1 - axis]
        at = (at + 1) / 2 * (size - 1) if align_corners else ((at + 1) * size - 1) / 2
        at = at if padding == _ZEROS else _inside(at, size, padding, align_corners)
        at = torch.round(at) if interpolation == _NEAREST else at
        away = (at[..., None] - torch.arange(size, dtype=x.dtype)).abs()
        weight = (1 - away).clamp(min=0) if interpolation == _BILINEAR else (away == 0).to(x.dtype)
        weight = weight.reshape(x.shape[0], 1, -1, size, *[1] * (len(spatial) - 1 - axis))
        found = (found * weight).sum(3)
    return found.reshape(*x.shape[:2], *grid.shape[1:-1])


def _inside(at: torch.Tensor, size: int, padding: int, align_corners: bool) -> torch.Tensor:
    if padding != _BORDER:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span <= 0:
            return torch.zeros_like(at)
        turn = torch.remainder(at - low, 2 * span)
        at = torch.minimum(turn, 2 * span - turn) + low
    return at.clamp(0, size - 1)


def padded(x: torch.Tensor, pad: Sequence[int], mode: str = "replicate", value: Any = None) -> Any:
    """Pad and crop by picking rows: torch lets a negative pad reach beyond the other end."""
    if min(pad, default=0) >= 0 or mode == "constant":
        return NotImplemented
    for step in range(len(pad) // 2):
        axis, (front, back) = x.ndim - 1 - step, pad[2 * step : 2 * step + 2]
        size = x.shape[axis]
        place = np.arange(size + front + back) - front
        if mode == "circular":
            place = place % size
        elif mode == "reflect" and size > 1:
            place = np.abs((place + size - 1) % (2 * size - 2) - (size - 1))
        x = x.index_select(axis, _constant(place.clip(0, size - 1)))
    return x


def _replication_pad(x: torch.Tensor, pad: Sequence[int]) -> Any:
    return padded(x, pad, "replicate")


def _reflection_pad(x: torch.Tensor, pad: Sequence[int]) -> Any:
    return padded(x, pad, "reflect")


def _triangle(place: Any) -> Any:
    return np.clip(1 - np.abs(place), 0, None)


def _cubic(place: Any) -> Any:
    far, a = np.abs(place), -0.5
    near = ((a + 2) * far - (a + 3)) * far * far + 1
    rest = (((far - 5) * far + 8) * far - 4) * a
    return np.where(far < 1, near, np.where(far < 2, rest, 0.0))


def _smooth_resize(weight: Callable[[Any], Any], reach: float) -> Callable[..., Any]:
    """Return a resize that averages when it shrinks: a product with weights along each axis."""

    def made_of(
        x: torch.Tensor,
        output_size: Sequence[int] | None,
        align_corners: bool,
        *given: Any,
    ) -> torch.Tensor:
        factors = given[0] if given and isinstance(given[0], Sequence) else given or (None, None)
        sizes = output_size
        if sizes is None:
            sizes = [int(n * f) for n, f in zip(x.shape[-2:], factors, strict=True)]
        for axis, (count, factor) in enumerate(zip(sizes, factors, strict=True)):
            size = x.shape[axis + 2]
            scale = 1 / factor if factor else size / count
            if align_corners:
                scale = (size - 1) / (count - 1) if count > 1 else 0.0
            wide = max(scale, 1.0)
            center = scale * (np.arange(count) + 0.5)
            first = np.maximum((center - reach * wide + 0.5).astype(int), 0)
            last = np.minimum((center + reach * wide + 0.5).astype(int), size)
            place = np.arange(size)
            own = weight((place - center[:, None] + 0.5) / wide)
            own = np.where((place >= first[:, None]) & (place < last[:, None]), own, 0.0)
            matrix = _constant(own / own.sum(1, keepdims=True)).to(x.dtype)
            x = x @ matrix.T if axis else matrix @ x
        return x

    return made_of


IMAGES: dict[Any, Callable[..., Any]] = {
    _ATEN.adaptive_max_pool1d.default: _adaptive_max_pool(1, functional.max_pool1d),
    _ATEN.adaptive_max_pool2d.default: _adaptive_max_pool(2, functional.max_pool2d),
    _ATEN.adaptive_max_pool3d.default: _adaptive_max_pool(3, functional.max_pool3d),
    _ATEN.grid_sampler_3d.default: _grid_sampler,
    _ATEN._upsample_bilinear2d_aa.default: _smooth_resize(_triangle, 1.0),
    _ATEN._upsample_bilinear2d_aa.vec: _smooth_resize(_triangle, 1.0),
    _ATEN._upsample_bicubic2d_aa.default: _smooth_resize(_cubic, 2.0),
    _ATEN._upsample_bicubic2d_aa.vec: _smooth_resize(_cubic, 2.0),
}
#: Those of which the exporter takes some calls.
PADS: dict[Any, Callable[..., Any]] = {
    _ATEN.pad.default: padded,
    _ATEN.replication_pad1d.default: _replication_pad,
    _ATEN.replication_pad2d.default: _replication_pad,
    _ATEN.replication_pad3d.default: _replication_pad,
    _ATEN.reflection_pad1d.default: _reflection_pad,
    _ATEN.reflection_pad2d.default: _reflection_pad,
    _ATEN.reflection_pad3d.default: _reflection_pad,
}
