"""Picks by index: losses of classes, and the way back of gathers.

The way back adds each gradient at the place that its index names. The device compares places with
indices and adds up what matches, in a fixed order.
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


def _at_class(target: torch.Tensor, classes: int) -> torch.Tensor:
    """Return whether each class is the target, with the classes on axis 1."""
    axis = min(1, target.ndim)
    shape = [1] * (target.ndim + 1)
    shape[axis] = classes
    return target.unsqueeze(axis) == torch.arange(classes, dtype=target.dtype).reshape(shape)


def _class_weights(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor | None:
    return None if weight is None else weight.reshape(-1, *[1] * max(0, x.ndim - 2))


def _counted(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, ignored: int
) -> torch.Tensor:
    """Return the weight of the target at its class and zero elsewhere, in the shape of ``x``."""
    axis = min(1, target.ndim)
    chosen = _at_class(target, x.shape[axis]) & (target != ignored).unsqueeze(axis)
    found = _class_weights(x, weight)
    ones = torch.ones_like(x) if found is None else found.expand(x.shape)
    return torch.where(chosen, ones, 0.0)


def _nll_loss(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignored: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss and the sum of the weights."""
    counted = _counted(x, target, weight, ignored)
    axis = min(1, target.ndim)
    each = -torch.where(counted != 0, x * counted, 0.0).sum(axis)
    if reduction == _NONE:
        return each, x.new_zeros(())
    total = counted.sum()
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
    if reduction == _MEAN:
        grad = grad / total
    elif reduction == _NONE:
        grad = grad.unsqueeze(min(1, target.ndim))
    counted = _counted(x, target, weight, ignored)
    return torch.where(counted != 0, -grad * counted, 0.0)


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


def _added(
    base: torch.Tensor, axis: int, index: torch.Tensor, source: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the sums of what lands at each place, and how many land there.

    None if indices are fewer than places along another axis.
    """
    if base.ndim == 0 or any(
        index.shape[a] != size for a, size in enumerate(base.shape) if a != axis % base.ndim
    ):
        return None
    moved = index.movedim(axis, -1)
    given = source[tuple(map(slice, index.shape))].movedim(axis, -1)
    hits = _hits(moved, base.shape[axis])
    # A product with 0 would make NaNs of infinities.
    sums, counts = torch.where(hits, given.unsqueeze(-1), 0.0), hits.to(base.dtype)
    if moved.shape[-1] == 1:
        sums, counts = sums.squeeze(-2), counts.squeeze(-2)
    else:
        sums, counts = sums.sum(-2), counts.sum(-2)
    return sums.movedim(-1, axis), counts.movedim(-1, axis)


def _scatter_add(base: torch.Tensor, axis: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    found = _added(base, axis, index, source) if base.is_floating_point() else None
    return NotImplemented if found is None else base + found[0]


def _scatter(base: torch.Tensor, axis: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    """Return ``base`` with values in the places of the indices, which must differ."""
    found = _added(base, axis, index, source) if base.is_floating_point() else None
    return NotImplemented if found is None else torch.where(found[1] != 0, found[0], base)


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
    _ATEN.nll_loss2d_forward.default: _nll_loss,
    _ATEN.nll_loss_backward.default: _nll_loss_backward,
    _ATEN.nll_loss_forward.default: _nll_loss,
    _ATEN.scatter.src: _scatter,
    _ATEN.scatter_add.default: _scatter_add,
}
