"""Tensors of torch that lie on a device: each operation of torch is a kernel there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import error
from ..frontend.torch_dtypes import TORCH_DTYPES
from .eager import DeviceTensor, Eager

#: Operations that are one ONNX operator on the same operands.
_SAME = {
    "aten.abs.default": "Abs",
    "aten.add.Tensor": "Add",
    "aten.bmm.default": "MatMul",
    "aten.div.Tensor": "Div",
    "aten.exp.default": "Exp",
    "aten.mm.default": "MatMul",
    "aten.mul.Tensor": "Mul",
    "aten.neg.default": "Neg",
    "aten.reciprocal.default": "Reciprocal",
    "aten.relu.default": "Relu",
    "aten.sigmoid.default": "Sigmoid",
    "aten.sqrt.default": "Sqrt",
    "aten.sub.Tensor": "Sub",
    "aten.tanh.default": "Tanh",
}


class TorchTensor(torch.Tensor):
    """A tensor of torch whose data lie on a device. Operations on it run there, forward only.

    Operations that have no kernel are refused (P0828): nothing moves to the host unasked. All
    tensors of an operation have one floating dtype, so that torch's promotion changes nothing.
    """

    held: DeviceTensor
    eager: Eager

    @staticmethod
    def __new__(cls, held: DeviceTensor, eager: Eager) -> TorchTensor:
        """Return an empty shell with the type of ``held``."""
        dtype, make = TORCH_DTYPES[held.type.elem], torch.Tensor._make_wrapper_subclass
        made: TorchTensor = make(cls, held.type.shape, dtype=dtype)
        return made

    def __init__(self, held: DeviceTensor, eager: Eager):
        self.held, self.eager = held, eager

    def on_host(self) -> torch.Tensor:
        """Return a copy on the host."""
        return torch.from_numpy(np.array(self.held.numpy()))

    def __repr__(self) -> str:  # type: ignore[override]
        return f"TorchTensor({self.held.type}, device={self.eager.session.device.name})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> TorchTensor:
        """Run one operation of torch. P0822, P0828."""
        name = str(func)
        first = next((one for one in args if isinstance(one, cls)), None)
        run = _RULES.get(name)
        if first is None or kwargs or (run is None and name not in _SAME):
            reason = "no rule writes it in ONNX operators" if not kwargs else f"it has {kwargs}"
            raise error("P0828", what=name, reason=reason)
        if name in ("aten.alias.default", "aten.detach.default"):
            return cls(first.held, first.eager)
        operands = [_operand(one, first, name) for one in args]
        if run is None:
            [held] = first.eager.run(_SAME[name], *operands)
        else:
            held = run(first.eager, *operands)
        return cls(held, first.eager)


def to_device(tensor: torch.Tensor, eager: Eager) -> TorchTensor:
    """Return a tensor of floats on the device of ``eager``. P0821, P0828."""
    if not tensor.is_floating_point():
        raise error("P0828", what=f"a tensor of {tensor.dtype}", reason="it is not of floats")
    if tensor.dtype not in (torch.float32, torch.float64, torch.float16):
        raise error(
            "P0828", what=f"a tensor of {tensor.dtype}", reason="NumPy has no such elements"
        )
    return TorchTensor(eager.tensor(tensor.detach().numpy()), eager)


def _operand(one: Any, like: TorchTensor, name: str) -> Any:
    if isinstance(one, TorchTensor):
        if one.dtype != like.dtype:
            raise error("P0828", what=name, reason=f"it mixes {one.dtype} and {like.dtype}")
        return one.held
    if isinstance(one, torch.Tensor):
        raise error("P0828", what=name, reason="an operand is on the host: call to_device")
    if isinstance(one, float) or (isinstance(one, int) and name in _SAME):
        return np.array(one, _numpy(like))
    return one


def _numpy(tensor: TorchTensor) -> np.dtype[Any]:
    return np.dtype(str(tensor.dtype).removeprefix("torch."))


def _transposed(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    perm = list(reversed(range(len(x.type.shape))))
    return eager.run("Transpose", x, perm=perm)[0]


def _permuted(eager: Eager, x: DeviceTensor, dims: Sequence[int]) -> DeviceTensor:
    rank = len(x.type.shape)
    return eager.run("Transpose", x, perm=[dim % rank for dim in dims])[0]


def _addmm(eager: Eager, bias: DeviceTensor, a: DeviceTensor, b: DeviceTensor) -> DeviceTensor:
    return eager.run("Add", *eager.run("MatMul", a, b), bias)[0]


def _reshaped(eager: Eager, x: DeviceTensor, shape: Sequence[int]) -> DeviceTensor:
    # Zero is a size for torch, and keeps a size for ONNX.
    return eager.run("Reshape", x, np.array(shape, np.int64), allowzero=int(0 in shape))[0]


def _softmax(eager: Eager, x: DeviceTensor, dim: int, to_float: bool) -> DeviceTensor:
    if to_float:
        raise error("P0828", what="a softmax", reason="it changes the dtype")
    return eager.run("Softmax", x, axis=dim)[0]


def _reduced(op: str) -> Callable[..., DeviceTensor]:
    def run(
        eager: Eager, x: DeviceTensor, dims: Sequence[int] | None = None, keep: bool = False
    ) -> DeviceTensor:
        axes = np.array(dims, np.int64) if dims else None
        return eager.run(op, x, axes, keepdims=int(keep))[0]

    return run


#: Operations that need more: eager operators and the operands, without keywords.
_RULES: dict[str, Callable[..., DeviceTensor]] = {
    "aten._softmax.default": _softmax,
    "aten._unsafe_view.default": _reshaped,
    "aten.addmm.default": _addmm,
    "aten.alias.default": lambda eager, x: x,
    "aten.detach.default": lambda eager, x: x,
    "aten.mean.dim": _reduced("ReduceMean"),
    "aten.permute.default": _permuted,
    "aten.sum.dim_IntList": _reduced("ReduceSum"),
    "aten.t.default": _transposed,
    "aten.view.default": _reshaped,
}
