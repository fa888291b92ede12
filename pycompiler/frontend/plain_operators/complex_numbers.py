"""Operators on complex numbers that torch's exporter does not know, on pairs of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ATEN = torch.ops.aten


def _padded(x: torch.Tensor, pad: Sequence[int], value: float = 0) -> Any:
    if not x.is_complex() or value:
        return NotImplemented
    pairs = torch.constant_pad_nd(torch.view_as_real(x), [0, 0, *pad], 0)
    return torch.view_as_complex(pairs)


def _conjugate(x: torch.Tensor) -> Any:
    if not x.is_complex():
        return NotImplemented
    pairs = torch.view_as_real(x)
    sign = 1 - 2 * torch.arange(2, dtype=pairs.dtype)
    return torch.view_as_complex(pairs * sign)


#: They leave real numbers to the exporter.
COMPLEX: dict[Any, Callable[..., Any]] = {
    _ATEN.constant_pad_nd.default: _padded,
    _ATEN._conj_physical.default: _conjugate,
    _ATEN.conj_physical.default: _conjugate,
}
