"""Pools, samples, pads and sizes of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import torch
from torch.nn import functional

from ..marked import compared

_ATEN = torch.ops.aten


def _adaptive_max_pool(axes: int, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return an adaptive pool. Windows of unequal sizes repeat their last element."""

    def made_of(x: torch.Tensor, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        shape, front = x.shape[-axes:], x.shape[:-axes]
        if not any(size % count for size, count in zip(shape, sizes, strict=True)):
            kernel = [size // count for size, count in zip(shape, sizes, strict=True)]
            values, indices = plain(x, kernel, kernel, return_indices=True)
            return values, indices
        # Arithmetic of ranges: a constant made from numbers could not be traced.
        windows, numbers = x, torch.zeros([1] * 2 * axes, dtype=torch.int64)
        for axis, (size, count) in enumerate(zip(shape, sizes, strict=True)):
            reach = max(
                ((n + 1) * size + count - 1) // count - n * size // count for n in range(count)
            )
            number = torch.arange(count)
            first, end = number * size // count, ((number + 1) * size + count - 1) // count
            picks = torch.minimum(first[:, None] + torch.arange(reach), end[:, None] - 1)
            at, cut = len(front) + 2 * axis, (count, reach)
            windows = windows.index_select(at, picks.reshape(-1))
            windows = windows.reshape(*windows.shape[:at], *cut, *windows.shape[at + 1 :])
            wide = [1] * 2 * axis + list(cut) + [1] * 2 * (axes - axis - 1)
            numbers = numbers * size + picks.reshape(wide)
        inner = [len(front) + 2 * axis + 1 for axis in range(axes)]
        best = windows.amax(inner, keepdim=True)
        known = compared(f"window {', '.join(map(str, inner))}", torch.eq, windows, best)
        places = torch.where(known, numbers, torch.full_like(numbers, prod(shape)))
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


def padded(x: torch.Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """Pad and crop by picking rows: torch lets a negative pad reach beyond the other end."""
    if min(pad, default=0) >= 0 or mode == "constant":
        return NotImplemented
    for step in range(len(pad) // 2):
        axis, (front, back) = x.ndim - 1 - step, pad[2 * step : 2 * step + 2]
        size = x.shape[axis]
        place = torch.arange(size + front + back) - front
        if mode == "circular":  # torch crops first, and the rest goes round
            first, last = max(0, -front), size - max(0, -back)
            place = (place - first) % (last - first) + first
        elif mode == "reflect" and size > 1:
            place = ((place + size - 1) % (2 * size - 2) - (size - 1)).abs()
        x = x.index_select(axis, place.clamp(0, size - 1))
    return x


IMAGES: dict[Any, Callable[..., Any]] = {
    _ATEN.adaptive_max_pool1d.default: _adaptive_max_pool(1, functional.max_pool1d),
    _ATEN.adaptive_max_pool2d.default: _adaptive_max_pool(2, functional.max_pool2d),
    _ATEN.adaptive_max_pool3d.default: _adaptive_max_pool(3, functional.max_pool3d),
    _ATEN.grid_sampler_3d.default: _grid_sampler,
}
#: Those of which the exporter takes some calls.
PADS: dict[Any, Callable[..., Any]] = {
    _ATEN.pad.default: padded,
    **{
        getattr(_ATEN, f"{name}_pad{axes}d").default: partial(padded, mode=mode)
        for name, mode in (("replication", "replicate"), ("reflection", "reflect"))
        for axes in (1, 2, 3)
    },
}
