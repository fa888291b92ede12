"""Picks by index: writes, and the gradients of gathers.

The backward pass adds each gradient at the place that its index names. The device compares places
with indices and adds up what matches, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ATEN = torch.ops.aten
#: torch's numbers of the reductions.
_NONE, _MEAN = 0, 1


def _hits(index: torch.Tensor, count: int) -> torch.Tensor:
    """Return whether each index is each of ``count`` places, along a new last axis."""
    places = torch.arange(count, dtype=index.dtype)
    return index.unsqueeze(-1) == places


def _nll_loss(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignored: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss and the sum of the weights."""
    axis, known = min(1, target.ndim), target != ignored
    place = torch.where(known, target, 0)
    factor = torch.ones_like(place, dtype=x.dtype) if weight is None else weight[place]
    each = -x.gather(axis, place.unsqueeze(axis)).squeeze(axis) * factor
    each, factor = (torch.where(known, term, 0.0) for term in (each, factor))
    if reduction == _NONE:
        return each, x.new_zeros(())
    total = factor.sum()
    return (each.sum() / total if reduction == _MEAN else each.sum()), total


def _nll_loss_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignored: int,
    total: torch.Tensor,
) -> torch.Tensor:
    """Write each gradient at its class; torch's own form multiplies all classes by it."""
    axis, known = min(1, target.ndim), target != ignored
    place = torch.where(known, target, 0)
    factor = torch.where(known, -grad / total if reduction == _MEAN else -grad, 0.0)
    found = torch.zeros_like(x).scatter(axis, place.unsqueeze(axis), factor.unsqueeze(axis))
    return found if weight is None else found * weight.reshape(-1, *[1] * (x.ndim - 2))


def _embedding_backward(
    grad: torch.Tensor, index: torch.Tensor, count: int, padding: int, by_frequency: bool
) -> torch.Tensor:
    """Return the gradient of a table: a product with the places that the indices name."""
    flat = index.reshape(-1)
    hits = _hits(flat, count)
    if padding >= 0:
        hits = hits & (flat != padding).unsqueeze(-1)
    ones = hits.to(grad.dtype)
    if by_frequency:
        ones = ones / ones.sum(0, keepdim=True).clamp(min=1)
    return ones.t() @ grad.reshape(flat.shape[0], -1)


def _index_put(
    base: torch.Tensor,
    indices: Sequence[torch.Tensor | None],
    values: torch.Tensor,
    accumulate: bool = False,
    *_: object,
) -> Any:
    """Return ``base`` with ``values`` added, as a product with the places that the indices name."""
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if not accumulate or len(given) != 1 or not base.is_floating_point():
        return NotImplemented
    axis, index = given[0]
    if index.is_floating_point() or index.dtype is torch.bool:
        return NotImplemented
    rest = [size for a, size in enumerate(base.shape) if a != axis]
    # The axes of the index stand where the indexed axis stood.
    wide = (*base.shape[:axis], *index.shape, *base.shape[axis + 1 :])
    moved = values.expand(wide).movedim(
        list(range(axis, axis + index.ndim)), list(range(index.ndim))
    )
    count = base.shape[axis]
    flat = torch.where(index < 0, index + count, index).reshape(-1)
    ones = _hits(flat, count).to(base.dtype)
    sums = ones.t() @ moved.reshape(flat.shape[0], -1)
    return base + sums.reshape(count, *rest).movedim(0, axis)


PICK_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.embedding_dense_backward.default: _embedding_backward,
    _ATEN.index_put.default: _index_put,
    _ATEN._unsafe_index_put.default: _index_put,
    _ATEN.nll_loss2d_backward.default: _nll_loss_backward,
    _ATEN.nll_loss_backward.default: _nll_loss_backward,
    _ATEN.nll_loss2d_forward.default: _nll_loss,
    _ATEN.nll_loss_forward.default: _nll_loss,
}
