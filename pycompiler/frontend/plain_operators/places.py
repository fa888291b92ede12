"""Stacks, scatters and pools whose places are known when a function is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.nn import functional

_ATEN = torch.ops.aten


def joined_empty(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
    """Join tensors without elements; torch ignores those of shape (0,)."""
    if any(tensor.numel() for tensor in tensors):
        return NotImplemented
    kept = [tensor for tensor in tensors if tensor.shape != (0,)] or list(tensors[:1])
    shape, axis = list(kept[0].shape), dim % kept[0].ndim
    shape[axis] = sum(tensor.shape[axis] for tensor in kept)
    return torch.zeros(shape, dtype=tensors[0].dtype)


def _rows(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.reshape(1) if not tensor.ndim else tensor for tensor in tensors]


def _hstack(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    tensors = _rows(tensors)
    return torch.cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def _vstack(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([t[None] if t.ndim == 1 else t for t in _rows(tensors)], 0)


def _dstack(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    deep = [t[None] if t.ndim == 1 else t for t in _rows(tensors)]
    return torch.cat([t[..., None] if t.ndim == 2 else t for t in deep], 2)


def _column_stack(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([t[:, None] if t.ndim == 1 else t for t in _rows(tensors)], 1)


def _placed(x: torch.Tensor, source: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Write ``source`` into the elements of ``x`` with the numbers ``places``, in order."""
    origin = torch.full((x.numel(),), -1, dtype=torch.int64)
    origin[places.reshape(-1)] = torch.arange(places.numel())
    if not places.numel():
        return x.clone()
    picked = source.reshape(-1)[origin.clamp(min=0)].reshape(x.shape)
    return torch.where((origin >= 0).reshape(x.shape), picked, x)


def _numbers(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.numel()).reshape(x.shape)


def _diagonal_scatter(
    x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    return _placed(x, source, _numbers(x).diagonal(offset, dim1, dim2))


def _as_strided_scatter(
    x: torch.Tensor,
    source: torch.Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> torch.Tensor:
    first = x.storage_offset() if storage_offset is None else storage_offset
    return _placed(x, source, _numbers(x).as_strided(size, stride, first))


def _index_reduce(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> torch.Tensor:
    """Join the rows of ``source`` with the same index, by comparing it with all places."""
    if not x.ndim:
        x, source = x.reshape(1), source.reshape(1)
        return _index_reduce(x, 0, index, source, reduce, include_self=include_self)[0]
    moved, rows = x.movedim(dim, 0), source.movedim(dim, 0)
    found = []
    hits = index.reshape(-1)[None, :] == torch.arange(moved.shape[0])[:, None]
    for place in range(moved.shape[0]):
        own = moved[place]
        hit = hits[place]
        wide = hit.reshape(-1, *[1] * (rows.ndim - 1))
        start = own if include_self else _neutral(own, reduce)
        if reduce == "prod":
            joined = start * torch.where(wide, rows, torch.ones_like(rows)).prod(0)
        elif reduce == "mean":
            total = start + torch.where(wide, rows, torch.zeros_like(rows)).sum(0)
            number = hit.to(x.dtype).sum() + float(include_self)
            joined = total / number.clamp(min=1)
        else:
            pick = torch.maximum if reduce == "amax" else torch.minimum
            for row in range(rows.shape[0]):
                start = torch.where(hit[row], pick(start, rows[row]), start)
            joined = start
        found.append(joined if include_self else torch.where(hit.any(), joined, own))
    return torch.stack(found).movedim(0, dim)


def _neutral(x: torch.Tensor, reduce: str) -> torch.Tensor:
    if reduce in ("prod", "mean"):
        return torch.full_like(x, float(reduce == "prod"))
    low, high = (
        (-torch.inf, torch.inf)
        if x.is_floating_point()
        else (torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max)
    )
    return torch.full_like(x, low if reduce == "amax" else high)


def _adaptive_max_pool(axes: int, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return an adaptive pool. Windows of unequal sizes repeat their last element."""

    def made_of(x: torch.Tensor, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        shape, front = x.shape[-axes:], x.shape[:-axes]
        if not any(size % count for size, count in zip(shape, sizes, strict=True)):
            kernel = [size // count for size, count in zip(shape, sizes, strict=True)]
            values, indices = plain(x, kernel, kernel, return_indices=True)
            return values, indices
        windows, numbers = x, torch.arange(prod(shape)).reshape(shape)
        for axis, (size, count) in enumerate(zip(shape, sizes, strict=True)):
            number = torch.arange(count)
            first, end = number * size // count, ((number + 1) * size + count - 1) // count
            reach = int((end - first).max())
            picks = torch.minimum(first[:, None] + torch.arange(reach), end[:, None] - 1)
            at, flat = len(front) + 2 * axis, picks.reshape(-1)
            cut = (count, reach)
            windows = windows.index_select(at, flat)
            windows = windows.reshape(*windows.shape[:at], *cut, *windows.shape[at + 1 :])
            numbers = numbers.index_select(2 * axis, flat)
            numbers = numbers.reshape(
                *numbers.shape[: 2 * axis], *cut, *numbers.shape[2 * axis + 1 :]
            )
        inner = [len(front) + 2 * axis + 1 for axis in range(axes)]
        best = windows.amax(inner, keepdim=True)
        places = torch.where(windows == best, numbers, torch.full_like(numbers, prod(shape)))
        return best.reshape(*front, *sizes), places.amin(inner).reshape(*front, *sizes)

    return made_of


def _cdist(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    """Return the distances of all rows of ``x`` to all rows of ``y``."""
    return _norm((x[..., :, None, :] - y[..., None, :, :]).abs(), p)


def _pdist(x: torch.Tensor, p: float = 2) -> torch.Tensor:
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1).unbind(0)
    return _norm((x[first] - x[second]).abs(), p)


def _norm(size: torch.Tensor, p: float) -> torch.Tensor:
    if not size.shape[-1]:
        return torch.zeros(size.shape[:-1], dtype=size.dtype)
    if p == torch.inf:
        return size.amax(-1)
    if p == 0:
        return (size != 0).to(size.dtype).sum(-1)
    if p == 1:
        return size.sum(-1)
    return torch.sqrt((size * size).sum(-1)) if p == 2 else (size**p).sum(-1) ** (1 / p)


def _put(
    x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    flat = x.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


def _scatter(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, reduce: str
) -> torch.Tensor:
    return x.scatter_reduce(dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


def _scatter_value(
    x: torch.Tensor, dim: int, index: torch.Tensor, value: float, *, reduce: str
) -> torch.Tensor:
    source = torch.full(index.shape, value, dtype=x.dtype)
    return _scatter(x, dim, index, source, reduce=reduce)


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Return the sums, means or maxima of rows. A product with a 0 and 1 matrix sums each bag."""
    bags = offsets[:-1] if include_last_offset else offsets
    count, place = bags.shape[0], torch.arange(indices.shape[0])
    bag = (place[:, None] >= bags).to(torch.int32).sum(-1) - 1
    within = bag == torch.arange(count)[:, None]
    if include_last_offset:
        within = within & (place < offsets[-1])
    if padding_idx is not None and padding_idx >= 0:
        within = within & (indices != padding_idx)
    rows = weight[indices]
    shares = within.to(weight.dtype)
    size = shares.sum(-1, keepdim=True)
    if mode == 2:
        hidden = torch.where(within[..., None], rows, torch.full_like(rows, -torch.inf))
        found = torch.where(size > 0, hidden.amax(1), torch.zeros_like(weight[:1]))
    else:
        if per_sample_weights is not None:
            shares = shares * per_sample_weights
        found = shares @ rows
        found = found / size.clamp(min=1) if mode == 1 else found
    return found, bag.to(indices.dtype), size[:, 0].to(indices.dtype), bags.clone()


def _resize(x: torch.Tensor, size: Sequence[int], **_: Any) -> torch.Tensor:
    """Return the first elements in another shape; elements beyond the last are zeros."""
    flat, wanted = x.reshape(-1), prod(size)
    if flat.shape[0] < wanted:
        flat = torch.cat([flat, torch.zeros(wanted - flat.shape[0], dtype=x.dtype)])
    return flat[:wanted].reshape(size)


def _rrelu(
    x: torch.Tensor,
    noise: torch.Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    slope = torch.full_like(x, (lower + upper) / 2)
    if training:
        slope = lower + (upper - lower) * torch.rand_like(x)
    slope = torch.where(x >= 0, torch.ones_like(x), slope)
    return x * slope, slope


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


PLACES: dict[Any, Callable[..., Any]] = {
    _ATEN.hstack.default: _hstack,
    _ATEN.vstack.default: _vstack,
    _ATEN.dstack.default: _dstack,
    _ATEN.column_stack.default: _column_stack,
    _ATEN.diagonal_scatter.default: _diagonal_scatter,
    _ATEN.as_strided_scatter.default: _as_strided_scatter,
    _ATEN.index_reduce.default: _index_reduce,
    _ATEN.adaptive_max_pool1d.default: _adaptive_max_pool(1, functional.max_pool1d),
    _ATEN.adaptive_max_pool2d.default: _adaptive_max_pool(2, functional.max_pool2d),
    _ATEN.adaptive_max_pool3d.default: _adaptive_max_pool(3, functional.max_pool3d),
    _ATEN.put.default: _put,
    _ATEN.scatter.reduce: _scatter,
    _ATEN.scatter.value_reduce: _scatter_value,
    _ATEN.embedding_bag.default: _embedding_bag,
    _ATEN.embedding_bag.padding_idx: _embedding_bag,
    _ATEN._embedding_bag.default: _embedding_bag,
    _ATEN._embedding_bag_forward_only.default: _embedding_bag,
    _ATEN.resize.default: _resize,
    _ATEN.rrelu_with_noise_functional.default: _rrelu,
    _ATEN.grid_sampler_3d.default: _grid_sampler,
    _ATEN._cdist_forward.default: _cdist,
    _ATEN._pdist_forward.default: _pdist,
}
