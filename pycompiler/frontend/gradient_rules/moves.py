"""Writes to slices, and the gradient of a slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..plain_operators.places import PLACES

_ATEN = torch.ops.aten


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


MOVE_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.slice_backward.default: _slice_backward,
    _ATEN.slice_scatter.default: PLACES[_ATEN.slice_scatter.default],
}
