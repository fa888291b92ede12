"""Operators of doubles whose numbers ONNX keeps as attributes, which are singles.

They are written with products and sums, which take numbers as doubles: as torch's own table does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table

_ATEN = torch.ops.aten
_WRITTEN = (
    *(_ATEN.addcmul.default, _ATEN.addcdiv.default, _ATEN.addmm.default, _ATEN.addmv.default),
    *(_ATEN.addr.default, _ATEN.baddbmm.default, _ATEN.leaky_relu.default, _ATEN.elu.default),
    *(_ATEN.celu.default, _ATEN.selu.default, _ATEN.linalg_vector_norm.default),
    *(_ATEN.native_layer_norm.default, _ATEN.native_group_norm.default),
    *(_ATEN.hardsigmoid.default, _ATEN.hardswish.default, _ATEN.hardshrink.default),
    *(_ATEN.softshrink.default, _ATEN.softplus.default, _ATEN._fused_rms_norm.default),
    *(_ATEN.hardtanh.default, _ATEN.hardtanh_backward.default),
)


def _layer_norm(
    x: torch.Tensor,
    shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
) -> torch.Tensor:
    return torch.native_layer_norm(x, shape, weight, bias, eps)[0]


def _channels(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, *[1] * (x.ndim - 2))


def _standard(x: torch.Tensor, axes: list[int], eps: float) -> torch.Tensor:
    moved = x - x.mean(axes, keepdim=True)
    found: torch.Tensor = moved * torch.rsqrt((moved * moved).mean(axes, keepdim=True) + eps)
    return found


def _scaled(x: torch.Tensor, weight: Any, bias: Any) -> torch.Tensor:
    x = x if weight is None else x * _channels(x, weight)
    return x if bias is None else x + _channels(x, bias)


def _group_norm(
    x: torch.Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> torch.Tensor:
    parts = x.reshape(x.shape[0], groups, -1)
    return _scaled(_standard(parts, [2], eps).reshape(x.shape), weight, bias)


def _instance_norm(
    x: torch.Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    of_input: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Any:
    if not of_input:
        return NotImplemented
    return _scaled(_standard(x, list(range(2, x.ndim)), eps), weight, bias)


def _batch_norm(
    x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    moved = (x - _channels(x, mean)) * _channels(x, torch.rsqrt(variance + eps))
    return _scaled(moved, weight, bias), x.new_zeros(0), x.new_zeros(0)


def _of_doubles(function: Callable[..., Any]) -> Callable[..., Any]:
    def made_of(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(x, *args, **kwargs) if x.dtype == torch.float64 else NotImplemented

    return made_of


def doubles_of(program: torch.export.ExportedProgram) -> dict[Any, Callable[..., Any]]:
    """Return the table if a value of the program has doubles."""
    values = (node.meta.get("val") for node in program.graph.nodes)
    return DOUBLES if any(getattr(x, "dtype", None) == torch.float64 for x in values) else {}


def either(first: Callable[..., Any], second: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a function that tries the second where the first does not concern a call."""

    def made_of(*args: Any, **kwargs: Any) -> Any:
        found = first(*args, **kwargs)
        return second(*args, **kwargs) if found is NotImplemented and second else found

    return made_of


DOUBLES: dict[Any, Callable[..., Any]] = {
    **{op: _of_doubles(decomposition_table[op]) for op in _WRITTEN},
    _ATEN.layer_norm.default: _of_doubles(_layer_norm),
    _ATEN.group_norm.default: _of_doubles(_group_norm),
    _ATEN.instance_norm.default: _of_doubles(_instance_norm),
    _ATEN.batch_norm.default: lambda *_: NotImplemented,  # torch makes one of these two of it
    _ATEN._native_batch_norm_legit_no_training.default: _of_doubles(_batch_norm),
}
