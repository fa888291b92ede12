"""How operations of torch are written in ONNX operators that run one by one on a device.

A rule takes an :class:`Eager` and the operands: device tensors, numbers, lists of sizes. Operations
without a rule are taken apart by torch's own decompositions until rules are left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch._decomp import decomposition_table

from ..errors import error
from ..frontend.gradient_rules import GRADIENT_RULES
from ..frontend.torch_dtypes import TORCH_DTYPES
from ..graph.dtypes import numpy_dtype, onnx_elem_type
from .eager import DeviceTensor, Eager

Rule = Callable[..., DeviceTensor]
#: A number becomes a constant of the kernel.
Operand = DeviceTensor | np.ndarray[Any, Any]

_ATEN = torch.ops.aten
_ELEMS = {dtype: elem for elem, dtype in TORCH_DTYPES.items()}


@lru_cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return what takes operations apart: the rules of gradients, then those of torch."""
    return {**decomposition_table, **GRADIENT_RULES}


def _pair(op: str) -> Rule:
    """Return the rule of an operator with two operands, of which one may be a number."""

    def run(eager: Eager, a: Any, b: Any, alpha: float = 1) -> DeviceTensor:
        like = a if isinstance(a, DeviceTensor) else b
        one, other = _operand(a, like), _operand(b, like)
        if alpha != 1:
            scaled = eager.run("Mul", other, _number(alpha, like)) if other is b else None
            other = scaled[0] if scaled else other * np.asarray(alpha, other.dtype)
        return eager.run(op, one, other)[0]

    return run


def _operand(one: Any, like: DeviceTensor) -> Any:
    return one if isinstance(one, DeviceTensor) else _number(one, like)


def _number(value: Any, like: DeviceTensor) -> Any:
    dtype = numpy_dtype(like.type.elem)
    if isinstance(value, np.ndarray) and value.dtype != dtype:
        raise error("P0828", what="an operation", reason=f"it mixes {value.dtype} and {dtype}")
    return np.array(value, dtype)


def _single(op: str, **attributes: Any) -> Rule:
    return lambda eager, x: eager.run(op, x, **attributes)[0]


def _bits(truth: str, number: str) -> Rule:
    """Return the rule of an operator that ONNX has for truth values and, apart, for integers."""

    def run(eager: Eager, a: Any, b: Any) -> DeviceTensor:
        like = a if isinstance(a, DeviceTensor) else b
        op = truth if like.type.elem == "bool" else number
        return eager.run(op, _operand(a, like), _operand(b, like))[0]

    return run


def _bits_not(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    return eager.run("Not" if x.type.elem == "bool" else "BitwiseNot", x)[0]


def _not_equal(eager: Eager, a: Any, b: Any) -> DeviceTensor:
    return eager.run("Not", _pair("Equal")(eager, a, b))[0]


def _where(eager: Eager, condition: DeviceTensor, a: Any, b: Any) -> DeviceTensor:
    like = next((one for one in (a, b) if isinstance(one, DeviceTensor)), None)
    if like is None:
        raise error("P0828", what="a choice of two numbers", reason="no operand has a dtype")
    return eager.run("Where", condition, _operand(a, like), _operand(b, like))[0]


def _rank(x: DeviceTensor) -> int:
    return len(x.type.shape)


def _transposed(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    return eager.run("Transpose", x, perm=list(reversed(range(_rank(x)))))[0]


def _permuted(eager: Eager, x: DeviceTensor, dims: Sequence[int]) -> DeviceTensor:
    return eager.run("Transpose", x, perm=[dim % _rank(x) for dim in dims])[0]


def _swapped(eager: Eager, x: DeviceTensor, one: int, other: int) -> DeviceTensor:
    order = list(range(_rank(x)))
    order[one], order[other] = order[other], order[one]
    return eager.run("Transpose", x, perm=order)[0]


def _reshaped(eager: Eager, x: DeviceTensor, shape: Sequence[int]) -> DeviceTensor:
    # Zero is a size for torch, and keeps a size for ONNX.
    return eager.run("Reshape", x, np.array(shape, np.int64), allowzero=int(0 in shape))[0]


def _unsqueezed(eager: Eager, x: DeviceTensor, dim: int) -> DeviceTensor:
    return eager.run("Unsqueeze", x, np.array([dim], np.int64))[0]


def _squeezed(eager: Eager, x: DeviceTensor, dims: int | Sequence[int]) -> DeviceTensor:
    rank = _rank(x)
    wanted = {dim % rank for dim in ([dims] if isinstance(dims, int) else dims)} if rank else set()
    shape = [size for dim, size in enumerate(x.type.shape) if dim not in wanted or size != 1]
    return _reshaped(eager, x, shape)


def _expanded(
    eager: Eager, x: DeviceTensor, shape: Sequence[int], implicit: bool = False
) -> DeviceTensor:
    own = (1,) * (len(shape) - _rank(x)) + x.type.shape
    full = [old if new == -1 else new for old, new in zip(own, shape, strict=True)]
    return eager.run("Expand", x, np.array(full, np.int64))[0]


def _selected(eager: Eager, x: DeviceTensor, dim: int, index: int) -> DeviceTensor:
    return eager.run("Gather", x, np.array(index, np.int64), axis=dim)[0]


def _sliced(
    eager: Eager,
    x: DeviceTensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> DeviceTensor:
    size = x.type.shape[dim]
    ends = [start or 0, size if end is None else min(end, size)]
    parts = [np.array([value], np.int64) for value in (*ends, dim, step)]
    return eager.run("Slice", x, *parts)[0]


def _joined(eager: Eager, parts: Sequence[DeviceTensor], dim: int = 0) -> DeviceTensor:
    return eager.run("Concat", *parts, axis=dim)[0]


def _softmax(op: str) -> Rule:
    def run(eager: Eager, x: DeviceTensor, dim: int, to_float: bool) -> DeviceTensor:
        return eager.run(op, x, axis=dim)[0]

    return run


def _reduced(op: str) -> Rule:
    def run(
        eager: Eager,
        x: DeviceTensor,
        dims: int | Sequence[int] | None = None,
        keep: bool = False,
        dtype: torch.dtype | None = None,
    ) -> DeviceTensor:
        axes = [dims] if isinstance(dims, int) else dims
        given = [np.array(axes, np.int64)] if axes else []
        return eager.run(op, x, *given, keepdims=int(keep))[0]

    return run


def _whole(op: str) -> Rule:
    return lambda eager, x, dtype=None: eager.run(op, x, keepdims=0)[0]


def _powered(eager: Eager, x: DeviceTensor, exponent: Any) -> DeviceTensor:
    if isinstance(exponent, int | float) and exponent == 2:
        return eager.run("Mul", x, x)[0]
    return eager.run("Pow", x, _operand(exponent, x))[0]


def _cast(eager: Eager, x: DeviceTensor, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype is None or _ELEMS[dtype] == x.type.elem:
        return x
    return eager.run("Cast", x, to=onnx_elem_type(_ELEMS[dtype]))[0]


def _gathered(
    eager: Eager, x: DeviceTensor, dim: int, index: DeviceTensor, sparse_grad: bool = False
) -> DeviceTensor:
    return eager.run("GatherElements", x, index, axis=dim)[0]


def _scattered(
    eager: Eager, x: DeviceTensor, dim: int, index: DeviceTensor, source: Any
) -> DeviceTensor:
    if not isinstance(source, DeviceTensor):
        source = _filled(eager, index.type.shape, source, x.type.elem)
    return eager.run("ScatterElements", x, index, source, axis=dim)[0]


def _looked_up(
    eager: Eager, weight: DeviceTensor, index: DeviceTensor, *_: Any, **__: Any
) -> DeviceTensor:
    return eager.run("Gather", weight, index, axis=0)[0]


def _filled(eager: Eager, shape: Sequence[int], value: Any, elem: str) -> DeviceTensor:
    return eager.tensor(np.full(tuple(shape), value, numpy_dtype(elem)))


def _like(value: Any) -> Rule:
    def run(eager: Eager, x: DeviceTensor, dtype: torch.dtype | None = None, **_: Any) -> Any:
        return _filled(eager, x.type.shape, value, _elem(x, dtype))

    return run


def _full_like(
    eager: Eager, x: DeviceTensor, value: Any, dtype: torch.dtype | None = None, **_: Any
) -> DeviceTensor:
    return _filled(eager, x.type.shape, value, _elem(x, dtype))


def _new(value: Any) -> Rule:
    def run(
        eager: Eager,
        x: DeviceTensor,
        shape: Sequence[int],
        dtype: torch.dtype | None = None,
        **_: Any,
    ) -> DeviceTensor:
        return _filled(eager, shape, value, _elem(x, dtype))

    return run


def _elem(x: DeviceTensor, dtype: torch.dtype | None) -> str:
    return x.type.elem if dtype is None else _ELEMS[dtype]


def _copied(eager: Eager, x: DeviceTensor, source: Any, blocking: bool = False) -> DeviceTensor:
    if not isinstance(source, DeviceTensor):
        return _filled(eager, x.type.shape, source, x.type.elem)
    made = _cast(eager, source, TORCH_DTYPES[x.type.elem])
    return made if made.type.shape == x.type.shape else _expanded(eager, made, x.type.shape)


def _gelu(eager: Eager, x: DeviceTensor, approximate: str = "none") -> DeviceTensor:
    return eager.run("Gelu", x, approximate=approximate)[0]


def _same(eager: Eager, x: DeviceTensor, *_: Any, **__: Any) -> DeviceTensor:
    return x


#: Elementwise operations that torch's primitives have by the same names.
_PRIMS = (
    *("abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cos", "div", "eq"),
    *("erf", "exp", "floor", "ge", "gt", "le", "log", "lt", "maximum", "minimum", "mul", "ne"),
    *("neg", "reciprocal", "sign", "sin", "sqrt", "sub", "tanh", "where"),
)

#: By the name of the operation, as in `aten.add.Tensor`.
RULES: dict[str, Rule] = {
    **{
        f"aten.{name}.default": _single(op)
        for name, op in {
            "abs": "Abs", "cos": "Cos", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log",
            "logical_not": "Not", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu",
            "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sqrt": "Sqrt", "tanh": "Tanh",
        }.items()
    },
    **{
        f"aten.{name}.{kind}": _pair(op)
        for name, op in {
            "add": "Add", "div": "Div", "eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater",
            "le": "LessOrEqual", "lt": "Less", "mul": "Mul", "sub": "Sub",
        }.items()
        for kind in ("Tensor", "Scalar")
    },
    "aten._log_softmax.default": _softmax("LogSoftmax"),
    "aten._softmax.default": _softmax("Softmax"),
    "aten._to_copy.default": _cast,
    "aten._unsafe_view.default": _reshaped,
    "aten.amax.default": _reduced("ReduceMax"),
    "aten.amin.default": _reduced("ReduceMin"),
    "aten.bitwise_and.Tensor": _bits("And", "BitwiseAnd"),
    "aten.bitwise_not.default": _bits_not,
    "aten.bitwise_or.Tensor": _bits("Or", "BitwiseOr"),
    "aten.bitwise_xor.Tensor": _bits("Xor", "BitwiseXor"),
    "aten.bmm.default": _pair("MatMul"),
    "aten.cat.default": _joined,
    "aten.clone.default": _same,
    "aten.copy.default": _copied,
    "aten.embedding.default": _looked_up,
    "aten.empty_like.default": _like(0),
    "aten.expand.default": _expanded,
    "aten.fill.Scalar": _full_like,
    "aten.full_like.default": _full_like,
    "aten.gather.default": _gathered,
    "aten.gelu.default": _gelu,
    "aten.logical_and.default": _pair("And"),
    "aten.max.default": _whole("ReduceMax"),
    "aten.maximum.default": _pair("Max"),
    "aten.mean.default": _whole("ReduceMean"),
    "aten.mean.dim": _reduced("ReduceMean"),
    "aten.min.default": _whole("ReduceMin"),
    "aten.minimum.default": _pair("Min"),
    "aten.mm.default": _pair("MatMul"),
    "aten.ne.Scalar": _not_equal,
    "aten.ne.Tensor": _not_equal,
    "aten.new_ones.default": _new(1),
    "aten.new_zeros.default": _new(0),
    "aten.ones_like.default": _like(1),
    "aten.permute.default": _permuted,
    "aten.pow.Tensor_Scalar": _powered,
    "aten.pow.Tensor_Tensor": _powered,
    "aten.scatter.src": _scattered,
    "aten.scatter.value": _scattered,
    "aten.select.int": _selected,
    "aten.slice.Tensor": _sliced,
    "aten.squeeze.dim": _squeezed,
    "aten.squeeze.dims": _squeezed,
    "aten.sum.default": _whole("ReduceSum"),
    "aten.sum.dim_IntList": _reduced("ReduceSum"),
    "aten.t.default": _transposed,
    "aten.transpose.int": _swapped,
    "aten.unsqueeze.default": _unsqueezed,
    "aten.view.default": _reshaped,
    "aten.where.ScalarOther": _where,
    "aten.where.ScalarSelf": _where,
    "aten.where.self": _where,
    "aten.zero.default": _like(0),
    "aten.zeros_like.default": _like(0),
}  # fmt: skip

#: What torch's decompositions end in, where it means the same.
RULES |= {
    name.replace("aten.", "prims.").replace(f".{kind}", ".default"): rule
    for name, rule in RULES.items()
    for kind in ("default", "Tensor", "self")
    if name.endswith(f".{kind}") and name.split(".")[1] in _PRIMS
}
RULES["prims.convert_element_type.default"] = _cast
