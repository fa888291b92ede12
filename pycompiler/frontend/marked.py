"""ONNX nodes of which the host knows where NaNs go (:mod:`pycompiler.pfvm.nans`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.onnx.ops import symbolic, symbolic_multi_out

from ..pfvm.nans import NANS

_OPS = {
    **{torch.ge: "GreaterOrEqual", torch.le: "LessOrEqual", torch.lt: "Less", torch.eq: "Equal"},
    torch.gt: "Greater",
}

#: Nodes of ONNX compute nothing outside of a trace.
_TRACED = (FakeTensor, FunctionalTensor)


def takes_real() -> bool:
    """Whether the trace takes real tensors; that of AOT autograd does not."""
    fake = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
    return fake is None or bool(fake.allow_non_fake_inputs)


def compared(form: str, op: Callable[..., Any], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a comparison; on the host, one of floats has a form.

    A graph of AOT autograd may run in torch, so it has no nodes of ONNX.
    """
    kind, plain = torch.result_type(a, b), torch.as_tensor(op(a, b))
    if not kind.is_floating_point or not isinstance(plain, _TRACED):
        return plain
    if not takes_real() and form in ("first", "second"):
        return plain | torch.isnan(a if form == "first" else b)
    note, pair = {NANS: form}, (a.to(kind), b.to(kind))
    return symbolic(_OPS[op], pair, dtype=torch.bool, shape=plain.shape, metadata_props=note)


def sorted_for_median(x: torch.Tensor, dim: int) -> Any:
    """Sort along an axis; on the host, all numbers beside a NaN are NaNs."""
    if not x.is_floating_point() or not isinstance(x, _TRACED):
        return torch.sort(x, dim)
    facts: dict[str, Any] = {"axis": dim % x.ndim, "largest": 0}
    count = torch.full((1,), x.shape[dim])
    kinds, shapes, note = [x.dtype, torch.int64], [x.shape] * 2, {NANS: "median"}
    return symbolic_multi_out(
        "TopK", (x, count), facts, dtypes=kinds, shapes=shapes, metadata_props=note
    )
