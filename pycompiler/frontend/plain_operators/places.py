"""Stacks, scatters, picks and distances whose places are known when a function is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.nn.functional import pad

from ...errors import error
from ..host_calls import torchs_own

_ATEN = torch.ops.aten


def joined_empty(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
    """Join tensors without elements; torch ignores those of shape (0,)."""
    if any(tensor.numel() for tensor in tensors):
        return NotImplemented
    kept = [tensor for tensor in tensors if tensor.shape != (0,)] or list(tensors[:1])
    shape, axis = list(kept[0].shape), dim % kept[0].ndim
    shape[axis] = sum(tensor.shape[axis] for tensor in kept)
    return torch.zeros(shape, dtype=tensors[0].dtype)


def _diagonal(x: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Choose and add up: the exporter multiplies by 0 and 1, which makes NaNs of infinities."""
    if x.is_complex():
        return NotImplemented
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    first = min(max(0, -offset), rows)
    count = max(0, min(rows - first, columns - max(0, offset)))
    hit = torch.arange(columns) - torch.arange(rows)[:, None] == offset
    if x.dtype == torch.bool:
        return (moved & hit).any(-1)[..., first : first + count]
    kept = torch.where(hit, moved, torch.zeros((), dtype=x.dtype))
    return kept.sum(-1, dtype=x.dtype)[..., first : first + count]


def _diagonal_scatter(
    x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    moved = x.movedim((dim1, dim2), (-2, -1))
    count = source.shape[-1]
    if not count:
        return x.clone()
    row, column = torch.arange(moved.shape[-2])[:, None], torch.arange(moved.shape[-1])
    number = row + torch.zeros_like(column) if offset >= 0 else column + torch.zeros_like(row)
    picked = source.index_select(-1, number.clamp(0, count - 1).reshape(-1))
    found = torch.where(column - row == offset, picked.reshape(moved.shape), moved)
    return found.movedim((-2, -1), (dim1, dim2))


def _index_reduce(x: torch.Tensor, dim: int, index: Any, *given: Any, **facts: Any) -> Any:
    """Join the rows with the same index."""
    wide = [-1 if axis == dim % max(1, x.ndim) else 1 for axis in range(x.ndim)]
    index = index.to(torch.int64).reshape(wide).expand(given[0].shape)
    return scatter_reduced(x, dim, index, *given, **facts)


def scatter_reduced(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> torch.Tensor:
    """Join what lands at a place; its own element takes part with ``include_self``."""
    plain = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "amax", "amin": "amin"}[reduce]
    if not x.ndim:
        x, index, source = x.reshape(1), index.reshape(1), source.reshape(1)
        joined = scatter_reduced(x, 0, index, source, reduce, include_self=include_self)
        return joined.reshape(())
    own = x if include_self else x.scatter(dim, index, _neutral(x.dtype, reduce))
    found: torch.Tensor = _ATEN.scatter_reduce.two(own, dim, index, source, plain)
    if reduce != "mean":
        return found
    kind = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    count: torch.Tensor = torch.full(x.shape, float(include_self), dtype=kind)
    ones = torch.ones(index.shape, dtype=kind)
    count = _ATEN.scatter_reduce.two(count, dim, index, ones, "sum").clamp(min=1)
    if not x.is_floating_point():
        return torch.div(found, count, rounding_mode="floor")
    return (found / count).to(x.dtype)


def _neutral(dtype: torch.dtype, reduce: str) -> float:
    """Return the number that changes nothing in a reduction."""
    if reduce in ("prod", "mean", "sum"):
        return float(reduce == "prod")
    if dtype.is_floating_point:
        return -torch.inf if reduce == "amax" else torch.inf
    if dtype == torch.bool:
        return reduce == "amin"
    info = torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


def _cdist(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    """Return the distances of all rows of ``x`` to all rows of ``y``."""
    return _norm(x[..., :, None, :] - y[..., None, :, :], p)


def _pdist(x: torch.Tensor, p: float = 2) -> torch.Tensor:
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1).unbind(0)
    return _norm(x[first] - x[second], p)


def _norm(x: torch.Tensor, p: float) -> torch.Tensor:
    empty = not x.shape[-1]  # the largest of no elements is 0 here
    return x.sum(-1) if empty else torch.linalg.vector_norm(x, p, -1)


def _copied(x: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return source.to(x.dtype).expand(x.shape).clone()


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
    """Return the sums, means or maxima of rows. A product with a 0 and 1 matrix sums each bag.

    The bags of the indices are a result where torch's kernel needs them: not for plain sums.
    """
    bags = offsets[:-1] if include_last_offset else offsets
    largest = bags.clone()
    count, place = bags.shape[0], torch.arange(indices.shape[0])
    bag = (place[:, None] >= bags).to(torch.int32).sum(-1) - 1
    within = bag == torch.arange(count)[:, None]
    if include_last_offset:
        within = within & (place < offsets[-1])
    if padding_idx is not None and padding_idx >= 0:
        within = within & (indices != padding_idx)
    rows = weight[indices]
    members = within.to(weight.dtype)
    size = members.sum(-1, keepdim=True)
    if mode == 2:
        hidden = torch.where(within[..., None], rows, torch.full_like(rows, -torch.inf))
        found = torch.where(size > 0, hidden.amax(1), torch.zeros_like(weight[:1]))
        largest = indices[hidden.argmax(1)]
    else:
        if per_sample_weights is not None:
            members = members * per_sample_weights
        found = members @ rows
        found = found / size.clamp(min=1) if mode == 1 else found
    given = weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights
    likes = torchs_own(
        _ATEN.embedding_bag.padding_idx, (*given, include_last_offset, padding_idx), {}
    )
    bag, sizes = bag.to(indices.dtype), size[:, 0].to(indices.dtype)
    return found, bag[: likes[1].shape[0]], sizes, largest


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


def _embedding_renorm(
    weight: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float
) -> torch.Tensor:
    """Shrink the rows that are picked and longer than ``max_norm``."""
    rows = torch.arange(weight.shape[0])[:, None] == indices.reshape(-1)
    size = _norm(weight, norm_type)[:, None]
    shrunk = weight * (max_norm / (size + 1e-7))
    picked = rows.to(torch.int32).sum(1, keepdim=True) > 0
    return torch.where(picked & (size > max_norm), shrunk, weight)


def _repeat_numbers(repeats: torch.Tensor, output_size: int | None = None) -> torch.Tensor:
    if output_size is None:
        raise error("P0103", name="repeat_interleave", shape="its values decide")
    ends = torch.cumsum(repeats, 0)
    before = torch.arange(output_size)[:, None] >= ends
    return before.to(torch.int32).sum(1).clamp(max=repeats.shape[0] - 1).to(repeats.dtype)


def indexed(
    x: torch.Tensor,
    indices: Sequence[torch.Tensor | None],
    values: torch.Tensor,
    accumulate: bool = False,
) -> Any:
    """Write one value, or one for each trailing place, where a mask is true."""
    mask = indices[0] if len(indices) == 1 else None
    if mask is None or mask.dtype != torch.bool or values.ndim > x.ndim - mask.ndim:
        return NotImplemented
    wide = mask.reshape(*mask.shape, *[1] * (x.ndim - mask.ndim))
    return torch.where(wide, x + values if accumulate else values, x)


def _slice_scatter(
    x: torch.Tensor,
    source: torch.Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """Write evenly spaced places of an axis: a choice. The exporter writes row by row."""
    size = x.shape[dim]
    if not isinstance(size, int):
        return NotImplemented
    if x.is_complex():
        pairs = (x.real, source.real), (x.imag, source.imag)
        return torch.complex(*(_slice_scatter(*pair, dim, start, end, step) for pair in pairs))
    written = range(size)[start:end:step]
    if not written:
        return x.clone()
    dim %= x.ndim
    behind = [0] * (2 * (x.ndim - 1 - dim))
    first, last = written[0], written[-1]
    places = torch.arange(size).reshape(-1, *[1] * (len(behind) // 2))
    hit = (places >= first) & (places <= last)
    wide = source.to(x.dtype)
    if step > 1:
        hit = hit & ((places - first) % step == 0)
        wide = pad(wide.unsqueeze(dim + 1), (*behind, 0, step - 1)).flatten(dim, dim + 1)
        wide = wide.narrow(dim, 0, last - first + 1)
    if last > first:  # else the one row is broadcast
        wide = pad(wide, (*behind, first, size - 1 - last))
    return (wide & hit) | (x & ~hit) if x.dtype == torch.bool else torch.where(hit, wide, x)


PLACES: dict[Any, Callable[..., Any]] = {
    _ATEN.copy.default: _copied,
    _ATEN.diagonal.default: _diagonal,
    _ATEN.diagonal_copy.default: _diagonal,
    _ATEN.diagonal_scatter.default: _diagonal_scatter,
    _ATEN.trace.default: lambda x: torch.diagonal(x).sum(),
    _ATEN.empty_permuted.default: lambda n, _, **facts: torch.zeros(n, dtype=facts.get("dtype")),
    _ATEN.index_reduce.default: _index_reduce,
    _ATEN.embedding_renorm.default: _embedding_renorm,
    _ATEN.repeat_interleave.Tensor: _repeat_numbers,
    _ATEN.put.default: _put,
    _ATEN.scatter.reduce: _scatter,
    _ATEN.slice_scatter.default: _slice_scatter,
    _ATEN.scatter.value_reduce: _scatter_value,
    _ATEN.embedding_bag.default: _embedding_bag,
    _ATEN.embedding_bag.padding_idx: _embedding_bag,
    _ATEN._embedding_bag.default: _embedding_bag,
    _ATEN._embedding_bag_forward_only.default: _embedding_bag,
    _ATEN.resize.default: _resize,
    _ATEN.rrelu_with_noise_functional.default: _rrelu,
    _ATEN._cdist_forward.default: _cdist,
    _ATEN._pdist_forward.default: _pdist,
}
