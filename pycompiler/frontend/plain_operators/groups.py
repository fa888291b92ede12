"""Products of groups of rows with a matrix each, as in mixtures of experts.

The sizes of groups depend on data, so nothing is cut. Each row stands once for each group, as zeros
where it belongs to another group. One product over groups and columns then gives all results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_ATEN = torch.ops.aten


def _members(ends: torch.Tensor, size: int, like: torch.Tensor) -> torch.Tensor:
    """Return (groups, size): 1 where a place belongs to a group; places behind have none."""
    places, ends = torch.arange(size)[None, :], ends.to(torch.int64)[:, None]
    before = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    return ((places >= before) & (places < ends)).to(like.dtype)


def _grouped(a: torch.Tensor, b: torch.Tensor, offs: torch.Tensor | None) -> torch.Tensor:
    if offs is None:
        return a @ b
    groups = offs.shape[0]
    if a.ndim == 2 and b.ndim == 2:
        return (_members(offs, a.shape[1], a)[:, None, :] * a) @ b
    if a.ndim == 2:
        own = _members(offs, a.shape[0], a).transpose(0, 1)[:, :, None] * a[:, None, :]
        return own.reshape(a.shape[0], groups * a.shape[1]) @ b.reshape(-1, b.shape[2])
    own = _members(offs, b.shape[1], b)[:, None, :] * b
    return a.transpose(0, 1).reshape(a.shape[1], -1) @ own.reshape(-1, b.shape[1])


def grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """Multiply; rows behind the last group, which torch leaves undefined, are 0."""
    if bias is not None:  # torch refuses it too
        return NotImplemented
    return _grouped(a, b, offs).to(out_dtype or a.dtype)


GROUPS: dict[Any, Callable[..., Any]] = {_ATEN._grouped_mm.default: grouped_mm}
#: By name: operators of other libraries, which need not be there.
LIBRARIES: dict[str, Callable[..., Any]] = {"transformers.grouped_mm_fallback.default": grouped_mm}
