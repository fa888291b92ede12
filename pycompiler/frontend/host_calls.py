"""Operators of torch that ONNX cannot express, as nodes that the host runs with torch."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch
import torch.onnx.ops
from torch._subclasses.functional_tensor import disable_functional_mode, mb_unwrap_functional_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils._pytree import tree_leaves, tree_map_only

from ..pfvm.torch_calls import CALL, DOMAIN
from .torch_dtypes import TORCH_DTYPES, dtype_name

#: Operators whose results depend on the memory of their operands: the host gets them in order.
_BY_STRIDES = ("as_strided", "._linalg_det.", "._linalg_slogdet.")

_allowed: ContextVar[bool] = ContextVar("host_calls", default=True)


@contextlib.contextmanager
def no_host_calls() -> Iterator[None]:
    """Refuse operators that ONNX cannot express: the caller runs them in torch itself."""
    token = _allowed.set(False)
    try:
        yield
    finally:
        _allowed.reset(token)


def may_be_called(op: Any) -> bool:
    """Whether the host may call an operator: it has no side effects and draws no numbers."""
    return (
        _allowed.get()
        and isinstance(op, torch._ops.OpOverload)
        and op.namespace in ("aten", "prims")
        and not op._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in op.tags
        and any("Tensor" in str(one.type) for one in op._schema.returns)
    )


def torchs_own(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return torch's result for fake tensors, without a trace of it: effects would stay in one."""
    composite = "CompositeImplicitAutograd"
    args, kwargs = tree_map_only(torch.Tensor, mb_unwrap_functional_tensor, (args, kwargs))
    with disable_functional_mode(), disable_proxy_modes_tracing(), torch.no_grad():
        if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), composite):
            # A decomposition of a composite operator also stands in for the operator itself.
            return op._op_dk(getattr(torch._C.DispatchKey, composite), *args, **kwargs)
        return op(*args, **kwargs)


def host_call(op: Any) -> Callable[..., Any]:
    """Return a decomposition of an operator: one node that the host runs."""

    def made_of(*args: Any, **kwargs: Any) -> Any:
        strided = any(one in str(op) for one in _BY_STRIDES)
        if strided and not all(map(_in_order, tree_leaves((args, kwargs)))):
            return NotImplemented
        operands: list[torch.Tensor] = []
        try:
            call: dict[str, Any] = {"args": _encoded(args, operands)}
            call["kwargs"] = {name: _encoded(one, operands) for name, one in kwargs.items()}
        except _NotEncodedError:
            return NotImplemented
        found = torchs_own(op, args, kwargs)
        single = isinstance(found, torch.Tensor)
        wanted = [found] if single else list(found)
        places = [at for at, one in enumerate(wanted) if isinstance(one, torch.Tensor)]
        if not all(one is None or _has_elements(one) for one in wanted):
            return NotImplemented
        call["results"] = places
        likes = [_pairs_like(wanted[at]) for at in places]
        made = torch.onnx.ops.symbolic_multi_out(
            f"{DOMAIN}::{op}",
            operands,
            {CALL: json.dumps(call)},
            dtypes=[dtype for dtype, _ in likes],
            shapes=[shape for _, shape in likes],
            version=1,
        )
        results: list[Any] = [None] * len(wanted)
        for at, tensor in zip(places, made, strict=True):
            results[at] = torch.view_as_complex(tensor) if wanted[at].is_complex() else tensor
        return results[0] if single else tuple(results)

    return made_of


class _NotEncodedError(Exception):
    """An argument has no form in a file."""


def _encoded(value: Any, operands: list[torch.Tensor]) -> Any:
    """Return an argument as JSON has it; its tensors join the ``operands``."""
    match value:
        case torch.Tensor():
            pairs = value.is_complex()
            operands.append(torch.view_as_real(value.resolve_conj()) if pairs else value)
            return {"pairs" if pairs else "tensor": len(operands) - 1}
        case list() | tuple():
            return [_encoded(one, operands) for one in value]
        case complex():
            return {"complex": [value.real, value.imag]}
        case torch.dtype() | torch.layout() | torch.memory_format():
            return {"torch": str(value).removeprefix("torch.")}
        case torch.device():
            return "cpu"
        case None | bool() | int() | float() | str():
            return value
    raise _NotEncodedError


def _in_order(value: Any) -> bool:
    tensor = isinstance(value, torch.Tensor)
    return not tensor or (value.is_contiguous() and not value.storage_offset())


def _has_elements(value: Any) -> bool:
    """Whether a result is a tensor of a known shape and of a dtype that ONNX has."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return False
    real = value.dtype.to_real() if value.is_complex() else value.dtype
    return real in TORCH_DTYPES.values() and all(isinstance(size, int) for size in value.shape)


def _pairs_like(value: torch.Tensor) -> tuple[torch.dtype, list[int]]:
    if value.is_complex():
        return value.dtype.to_real(), [*value.shape, 2]
    return value.dtype, list(value.shape)


def in_words(value: torch.Tensor) -> str:
    """Return dtype and shape of a tensor for a diagnostic."""
    return f"{dtype_name(value.dtype)} {tuple(value.shape)}"
