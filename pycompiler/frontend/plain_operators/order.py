"""Scans, medians, ranks and counts of values, by sorting and by comparing."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import torch

from ..marked import compared, sorted_for_median
from .elementwise import in_singles

_ATEN = torch.ops.aten


def _scanned(x: torch.Tensor, dim: int, join: Callable[[Any, Any], Any]) -> torch.Tensor:
    """Return the prefixes of ``join`` along ``dim``; each step doubles what a place has seen."""
    count, reach = (x.shape[dim] if x.ndim else 1), 1
    while reach < count:
        earlier, later = x.narrow(dim, 0, count - reach), x.narrow(dim, reach, count - reach)
        x = torch.cat([x.narrow(dim, 0, reach), join(earlier, later)], dim)
        reach *= 2
    return x


def _extreme_scan(better: Callable[[Any, Any], torch.Tensor]) -> Callable[..., Any]:
    """Return cummax or cummin; of equal values, the last one gives the index."""

    def made_of(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
        if not x.ndim or not x.numel():
            return x.clone(), torch.zeros_like(x, dtype=torch.int64)
        count, reach = x.shape[dim], 1
        dim = dim % x.ndim
        shape = [count if axis == dim else 1 for axis in range(x.ndim)]
        place = torch.arange(count).reshape(shape).expand(x.shape)
        while reach < count:
            rest = count - reach
            old, new = x.narrow(dim, 0, rest), x.narrow(dim, reach, rest)
            wins = compared("first", better, new, old)
            own = torch.where(wins, place.narrow(dim, reach, rest), place.narrow(dim, 0, rest))
            x = torch.cat([x.narrow(dim, 0, reach), torch.where(wins, new, old)], dim)
            place = torch.cat([place.narrow(dim, 0, reach), own], dim)
            reach *= 2
        return x, place.clone()

    return made_of


def _cumprod(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    if dtype is None and not x.is_floating_point():
        dtype = torch.int64
    x = x if dtype is None else x.to(dtype)
    return _scanned(x, dim, torch.mul) if x.numel() else x.clone()


def _logcumsumexp(x: torch.Tensor, dim: int) -> torch.Tensor:
    def join(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        large, small = torch.maximum(a, b), torch.minimum(a, b)
        return large + torch.log1p(torch.exp(small - large))

    return _scanned(x, dim, join) if x.numel() else x.clone()


def _kthvalue(
    x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False, order: Any = torch.sort
) -> Any:
    if not x.ndim:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    found = order(x, dim)
    values, indices = (part.narrow(dim, k - 1, 1) for part in (found[0], found[1]))
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _median_dim(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    count = x.shape[dim] if x.ndim else 1
    return _kthvalue(x, (count + 1) // 2, dim, keepdim, sorted_for_median)


def _nanmedian_dim(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    if not x.is_floating_point() or not x.ndim:
        return _median_dim(x, dim, keepdim)
    unknown = x != x
    ordered = torch.sort(torch.where(unknown, torch.full_like(x, inf), x), dim)
    count = (~unknown).sum(dim, keepdim=True)
    place = ((count - 1).clamp(min=0)) // 2
    values, indices = (part.gather(dim, place) for part in (ordered[0], ordered[1]))
    values = torch.where(count == 0, torch.full_like(values, nan), values)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _of_all(of_rows: Callable[..., Any]) -> Callable[[torch.Tensor], Any]:
    """Return the median of all elements, by that of rows."""
    return lambda x: (
        of_rows(x.reshape(-1), 0)[0] if x.numel() else torch.full((), nan, dtype=x.dtype)
    )


def _longest_run(rows: torch.Tensor) -> torch.Tensor:
    """Return the value of the first of the longest runs of each sorted row."""
    place = torch.arange(rows.shape[-1])
    changed = rows != torch.cat([rows[..., :1], rows[..., :-1]], -1)
    start = torch.where(changed, place, torch.zeros_like(place))
    run = place - _scanned(start, -1, torch.maximum)
    return rows.gather(-1, run.argmax(-1, keepdim=True))


def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the smallest of the most frequent values, and the last place where it stands."""
    if not x.ndim:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    moved = x.movedim(dim, -1)
    place = torch.arange(moved.shape[-1])
    values = _longest_run(torch.sort(moved, -1)[0])
    indices = torch.where(moved == values, place, torch.zeros_like(place)).amax(-1, keepdim=True)
    values, indices = values.movedim(-1, dim), indices.movedim(-1, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _searchsorted(
    rows: torch.Tensor,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> torch.Tensor:
    """Count the values that stand before ``x`` in each row."""
    if sorter is not None:
        rows = rows.gather(-1, sorter)
    x = x if isinstance(x, torch.Tensor) else torch.full((), x)
    later = right or side == "right"
    row, value = rows[..., None, :], x[..., None]
    if rows.ndim == 1:
        row = rows
    before = compared("second", torch.le if later else torch.lt, row, value)
    count: torch.Tensor = before.to(torch.int32).sum(-1)
    return count.to(torch.int32 if out_int32 else torch.int64)


def _bucketize(x: Any, bounds: torch.Tensor, **facts: Any) -> torch.Tensor:
    return _searchsorted(bounds, x, **facts)


def _aminmax(x: torch.Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    axes = list(range(x.ndim)) if dim is None else [dim]
    return x.amin(axes, keepdim), x.amax(axes, keepdim)


def _histc(x: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    low, high = x.aminmax() if min == max and x.numel() else (min, max)
    low, high = (torch.as_tensor(end, dtype=x.dtype) for end in (low, high))
    same = low == high
    low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    x = x.reshape(-1, 1)
    # torch computes the bin of a value, so that it rounds otherwise than edges would.
    place = torch.floor((x - low) / (high - low) * bins).clamp(max=bins - 1)
    inside = (x >= low) & (x <= high)
    return (inside & (place == torch.arange(bins, dtype=x.dtype))).to(x.dtype).sum(0)


def _nonzero_static(x: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    flat = (x != 0).reshape(-1)
    rank = torch.cumsum(flat.to(torch.int32), 0) - 1
    place, wanted = torch.arange(flat.shape[0]), torch.arange(size)[:, None]
    picked = flat & (rank == wanted)
    at, known = (picked * place).sum(-1), picked.to(torch.int32).sum(-1) > 0
    columns = []
    for axis in (max(1, size) for size in reversed(x.shape)):
        columns.append(torch.where(known, at % axis, torch.full_like(at, fill_value)))
        at = at // axis
    return torch.stack(columns[::-1], -1) if columns else torch.zeros(size, 0, dtype=torch.int64)


def _masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    x, mask = torch.broadcast_tensors(x, mask)  # type: ignore[no-untyped-call]
    if not source.numel() or not x.numel():
        return x.clone()
    rank = torch.cumsum(mask.reshape(-1).to(torch.int32), 0) - 1
    picked = source.reshape(-1)[rank.clamp(0, source.numel() - 1).to(torch.int64)]
    return torch.where(mask, picked.reshape(x.shape), x)


def _stable_sort(
    x: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Any:
    """Sort; the one that ONNX has is stable."""
    return tuple(torch.sort(x, dim, descending))


ORDER: dict[Any, Callable[..., Any]] = {
    _ATEN.cummax.default: _extreme_scan(torch.ge),
    _ATEN.cummin.default: _extreme_scan(torch.le),
    _ATEN.cumprod.default: _cumprod,
    _ATEN.logcumsumexp.default: _logcumsumexp,
    _ATEN.kthvalue.default: _kthvalue,
    _ATEN.median.default: _of_all(_median_dim),
    _ATEN.median.dim: _median_dim,
    _ATEN.nanmedian.default: _of_all(_nanmedian_dim),
    _ATEN.nanmedian.dim: _nanmedian_dim,
    _ATEN.mode.default: in_singles(_mode),
    _ATEN.searchsorted.Tensor: _searchsorted,
    _ATEN.searchsorted.Scalar: _searchsorted,
    _ATEN.bucketize.Tensor: _bucketize,
    _ATEN.bucketize.Scalar: _bucketize,
    _ATEN.sort.stable: _stable_sort,
    _ATEN.aminmax.default: _aminmax,
    _ATEN.histc.default: _histc,
    _ATEN.masked_scatter.default: _masked_scatter,
    _ATEN.nonzero_static.default: _nonzero_static,
}
