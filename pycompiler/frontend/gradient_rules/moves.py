"""Ways back of slices: what lies around the slice is joined to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ATEN = torch.ops.aten


def _slice_scatter(
    base: torch.Tensor,
    source: torch.Tensor,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> torch.Tensor:
    """Return ``base`` with ``source`` in the places ``start:end:step`` of an axis."""
    first, last, _ = slice(start, end, step).indices(base.shape[axis])
    if source.shape[axis] == 0:
        return base.clone()
    if step != 1:
        return _every_nth(base, source, axis, first, step)
    after = base.narrow(axis, last, base.shape[axis] - last)
    return torch.cat([base.narrow(axis, 0, first), source, after], axis)


def _slice_backward(
    grad: torch.Tensor, sizes: Sequence[int], axis: int, start: int, end: int, step: int
) -> torch.Tensor:
    """Return the gradient of a slice: zeros around and between the elements."""
    axis %= len(sizes)
    size, behind = sizes[axis], [0, 0] * (len(sizes) - axis - 1)
    first = slice(start, end, step).indices(size)[0]
    if step > 1:
        grad = torch.nn.functional.pad(grad.unsqueeze(axis + 1), [*behind, 0, step - 1])
        grad = grad.flatten(axis, axis + 1)
    last = first + grad.shape[axis]
    if last > size:
        grad, last = grad.narrow(axis, 0, size - first), size
    if first or last < size:
        grad = torch.nn.functional.pad(grad, [*behind, first, size - last])
    return grad


def _every_nth(
    base: torch.Tensor, source: torch.Tensor, axis: int, first: int, step: int
) -> torch.Tensor:
    """Return ``base`` with ``source`` in every ``step``-th place from ``first`` on."""
    axis, size, count = axis % base.ndim, base.shape[axis], source.shape[axis]
    spread = source.unsqueeze(axis + 1)
    spread = torch.nn.functional.pad(spread, [0, 0] * (base.ndim - axis - 1) + [0, step - 1])
    spread = spread.flatten(axis, axis + 1)
    spread = torch.nn.functional.pad(
        spread, [0, 0] * (base.ndim - axis - 1) + [first, max(0, size - first - count * step)]
    ).narrow(axis, 0, size)
    places = torch.arange(size)
    chosen = (places >= first) & ((places - first) % step == 0)
    return torch.where(chosen.reshape(-1, *[1] * (base.ndim - axis - 1)), spread, base)


def _select_scatter(
    base: torch.Tensor, source: torch.Tensor, axis: int, index: int
) -> torch.Tensor:
    index %= base.shape[axis]
    return _slice_scatter(base, source.unsqueeze(axis), axis, index, index + 1)


MOVE_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.select_scatter.default: _select_scatter,
    _ATEN.slice_backward.default: _slice_backward,
    _ATEN.slice_scatter.default: _slice_scatter,
}
