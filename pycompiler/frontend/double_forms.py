"""Operators of doubles whose numbers ONNX keeps as attributes, which are singles.

They are written with products and sums, which take numbers as doubles: as torch's own table does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._decomp.decompositions import native_batch_norm_helper

_ATEN = torch.ops.aten
_WRITTEN = (
    *(_ATEN.addcmul.default, _ATEN.addcdiv.default, _ATEN.addmm.default, _ATEN.addmv.default),
    *(_ATEN.addr.default, _ATEN.baddbmm.default, _ATEN.leaky_relu.default, _ATEN.elu.default),
    *(_ATEN.celu.default, _ATEN.selu.default, _ATEN.linalg_vector_norm.default),
    *(_ATEN.native_layer_norm.default, _ATEN.native_group_norm.default),
    *(_ATEN.hardsigmoid.default, _ATEN.hardswish.default, _ATEN.hardshrink.default),
    *(_ATEN.softshrink.default, _ATEN.softplus.default, _ATEN._fused_rms_norm.default),
    *(_ATEN.hardtanh.default, _ATEN.hardtanh_backward.default),
    _ATEN._native_batch_norm_legit.no_stats,
)
#: Operators that torch itself makes of those.
_NORMS = (_ATEN.layer_norm.default, _ATEN.group_norm.default, _ATEN.instance_norm.default)


def composed(op: Any) -> Callable[..., Any]:
    """Return what torch itself makes of an operator."""
    return partial(op._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)


def _batch_norm(
    x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    given = (x, weight, bias, mean, variance)
    return native_batch_norm_helper(*given, False, momentum, eps, functional=False)[:3]


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
    **{op: _of_doubles(composed(op)) for op in _NORMS},
    _ATEN._native_batch_norm_legit_no_training.default: _of_doubles(_batch_norm),
    _ATEN.batch_norm.default: lambda *_: NotImplemented,  # torch makes one of the native ones of it
}
