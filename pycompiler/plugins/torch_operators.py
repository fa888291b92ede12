"""Operations of torch as ONNX operators that run one by one: what the table of rules has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch

from ..errors import error
from ..frontend.torch_dtypes import TORCH_DTYPES
from ..graph.dtypes import numpy_dtype, onnx_elem_type
from .eager import DeviceTensor, Eager

Rule = Callable[..., Any]

#: Magnitudes below it are small: x^3 / 3 is less than the last place of x.
_SMALL = 2.0**-12
_ELEMS = {dtype: elem for elem, dtype in TORCH_DTYPES.items()}


def pair(op: str) -> Rule:
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


def single(op: str, **attributes: Any) -> Rule:
    """Return the rule of an operator of one operand."""
    return lambda eager, x: eager.run(op, x, **attributes)[0]


def bits(truth: str, number: str) -> Rule:
    """Return the rule of an operator that ONNX has for truth values and, apart, for integers."""

    def run(eager: Eager, a: Any, b: Any) -> DeviceTensor:
        like = a if isinstance(a, DeviceTensor) else b
        op = truth if like.type.elem == "bool" else number
        return eager.run(op, _operand(a, like), _operand(b, like))[0]

    return run


def bits_not(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    """Invert truth values, or the bits of integers."""
    return eager.run("Not" if x.type.elem == "bool" else "BitwiseNot", x)[0]


def not_equal(eager: Eager, a: Any, b: Any) -> DeviceTensor:
    """Compare by the inverse of Equal."""
    return eager.run("Not", pair("Equal")(eager, a, b))[0]


def where(eager: Eager, condition: DeviceTensor, a: Any, b: Any) -> DeviceTensor:
    """Choose between two operands, of which one may be a number."""
    like = next((one for one in (a, b) if isinstance(one, DeviceTensor)), None)
    if like is None:
        raise error("P0828", what="a choice of two numbers", reason="no operand has a dtype")
    return eager.run("Where", condition, _operand(a, like), _operand(b, like))[0]


def _rank(x: DeviceTensor) -> int:
    return len(x.type.shape)


def transposed(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    """Reverse the axes."""
    return eager.run("Transpose", x, perm=list(reversed(range(_rank(x)))))[0]


def permuted(eager: Eager, x: DeviceTensor, dims: Sequence[int]) -> DeviceTensor:
    """Put the axes in another order."""
    return eager.run("Transpose", x, perm=[dim % _rank(x) for dim in dims])[0]


def swapped(eager: Eager, x: DeviceTensor, one: int, other: int) -> DeviceTensor:
    """Let two axes change places."""
    order = list(range(_rank(x)))
    order[one], order[other] = order[other], order[one]
    return eager.run("Transpose", x, perm=order)[0]


def reshaped(eager: Eager, x: DeviceTensor, shape: Sequence[int]) -> DeviceTensor:
    """Give another shape; torch has found what -1 stands for, or ONNX does."""
    # Zero is a size for torch, and keeps a size for ONNX.
    return eager.run("Reshape", x, np.array(shape, np.int64), allowzero=int(0 in shape))[0]


def unsqueezed(eager: Eager, x: DeviceTensor, dim: int) -> DeviceTensor:
    """Add an axis of size 1."""
    return eager.run("Unsqueeze", x, np.array([dim], np.int64))[0]


def squeezed(eager: Eager, x: DeviceTensor, dims: int | Sequence[int]) -> DeviceTensor:
    """Leave out axes of size 1."""
    rank = _rank(x)
    wanted = {dim % rank for dim in ([dims] if isinstance(dims, int) else dims)} if rank else set()
    shape = [size for dim, size in enumerate(x.type.shape) if dim not in wanted or size != 1]
    return reshaped(eager, x, shape)


def expanded(
    eager: Eager, x: DeviceTensor, shape: Sequence[int], implicit: bool = False
) -> DeviceTensor:
    """Repeat along axes of size 1."""
    own = (1,) * (len(shape) - _rank(x)) + x.type.shape
    full = [old if new == -1 else new for old, new in zip(own, shape, strict=True)]
    return eager.run("Expand", x, np.array(full, np.int64))[0]


def spread(
    eager: Eager, x: DeviceTensor, shape: Sequence[int], axes: Sequence[int]
) -> DeviceTensor:
    """Repeat a tensor along new axes; ``axes`` are those that its own become."""
    own = [1] * len(shape)
    for axis, size in zip(axes, x.type.shape, strict=True):
        own[axis] = size
    return expanded(eager, reshaped(eager, x, own), shape)


def selected(eager: Eager, x: DeviceTensor, dim: int, index: int) -> DeviceTensor:
    """Take one index of an axis."""
    return eager.run("Gather", x, np.array(index, np.int64), axis=dim)[0]


def sliced(
    eager: Eager,
    x: DeviceTensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> DeviceTensor:
    """Take a range of an axis."""
    size = x.type.shape[dim]
    ends = [start or 0, size if end is None else min(end, size)]
    parts = [np.array([value], np.int64) for value in (*ends, dim, step)]
    return eager.run("Slice", x, *parts)[0]


def joined(eager: Eager, parts: Sequence[DeviceTensor], dim: int = 0) -> DeviceTensor:
    """Put tensors one behind the other."""
    return eager.run("Concat", *parts, axis=dim)[0]


def softmax(op: str) -> Rule:
    """Return the rule of a softmax or its logarithm."""

    def run(eager: Eager, x: DeviceTensor, dim: int, to_float: bool) -> DeviceTensor:
        return eager.run(op, x, axis=dim)[0]

    return run


def reduced(op: str) -> Rule:
    """Return the rule of a reduction over some axes."""

    def run(
        eager: Eager,
        x: DeviceTensor,
        dims: int | Sequence[int] | None = None,
        keep: bool = False,
        dtype: torch.dtype | None = None,
    ) -> DeviceTensor:
        if op == "ReduceSum" and x.type.elem == "bool":
            x = cast(eager, x, torch.int64)
        axes = [dims] if isinstance(dims, int) else dims
        given = [np.array(axes, np.int64)] if axes else []
        return eager.run(op, x, *given, keepdims=int(keep))[0]

    return run


def whole(op: str) -> Rule:
    """Return the rule of a reduction to one number."""
    return lambda eager, x, dtype=None: reduced(op)(eager, x)


def powered(eager: Eager, x: DeviceTensor, exponent: Any) -> DeviceTensor:
    """Raise to a power, which may be a number."""
    if isinstance(exponent, int | float) and exponent == 2:
        return eager.run("Mul", x, x)[0]
    return eager.run("Pow", x, _operand(exponent, x))[0]


def cast(eager: Eager, x: DeviceTensor, dtype: torch.dtype | None = None, **_: Any) -> Any:
    """Change the dtype."""
    if dtype is None or _ELEMS[dtype] == x.type.elem:
        return x
    return eager.run("Cast", x, to=onnx_elem_type(_ELEMS[dtype]))[0]


def gathered(
    eager: Eager, x: DeviceTensor, dim: int, index: DeviceTensor, sparse_grad: bool = False
) -> DeviceTensor:
    """Pick elements along an axis."""
    return eager.run("GatherElements", x, index, axis=dim)[0]


def scattered(
    eager: Eager, x: DeviceTensor, dim: int, index: DeviceTensor, source: Any
) -> DeviceTensor:
    """Write elements along an axis."""
    if not isinstance(source, DeviceTensor):
        source = _filled(eager, index.type.shape, source, x.type.elem)
    return eager.run("ScatterElements", x, index, source, axis=dim)[0]


def looked_up(
    eager: Eager, weight: DeviceTensor, index: DeviceTensor, *_: Any, **__: Any
) -> DeviceTensor:
    """Take rows of a table."""
    return eager.run("Gather", weight, index, axis=0)[0]


def _filled(eager: Eager, shape: Sequence[int], value: Any, elem: str) -> DeviceTensor:
    return eager.tensor(np.full(tuple(shape), value, numpy_dtype(elem)))


def like(value: Any) -> Rule:
    """Return the rule of a tensor of the same shape, filled with a value."""

    def run(eager: Eager, x: DeviceTensor, dtype: torch.dtype | None = None, **_: Any) -> Any:
        return _filled(eager, x.type.shape, value, _elem(x, dtype))

    return run


def full_like(
    eager: Eager, x: DeviceTensor, value: Any, dtype: torch.dtype | None = None, **_: Any
) -> DeviceTensor:
    """Make a tensor of the same shape, filled with a value."""
    return _filled(eager, x.type.shape, value, _elem(x, dtype))


def new(value: Any) -> Rule:
    """Return the rule of a tensor of another shape, filled with a value."""

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


def copied(eager: Eager, x: DeviceTensor, source: Any, blocking: bool = False) -> DeviceTensor:
    """Return what a copy of ``source`` into a tensor leaves there."""
    if not isinstance(source, DeviceTensor):
        return _filled(eager, x.type.shape, source, x.type.elem)
    made = cast(eager, source, TORCH_DTYPES[x.type.elem])
    return made if made.type.shape == x.type.shape else expanded(eager, made, x.type.shape)


def _near_zero(
    eager: Eager, x: DeviceTensor, series: DeviceTensor, plain: DeviceTensor
) -> DeviceTensor:
    """Return ``series`` where the magnitude of x is small, ``plain`` elsewhere."""
    small = pair("Less")(eager, *eager.run("Abs", x), _SMALL)
    return where(eager, small, series, plain)


def _series(eager: Eager, x: DeviceTensor, sign: float) -> DeviceTensor:
    """Return x + sign * x^2 / 2, which is log(1 + x) or exp(x) - 1 near zero."""
    half = pair("Mul")(eager, *eager.run("Mul", x, x), sign / 2)
    return eager.run("Add", x, half)[0]


def log_one_plus(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    """Compute log(1 + x), also near zero."""
    plain = eager.run("Log", pair("Add")(eager, x, 1))[0]
    return _near_zero(eager, x, _series(eager, x, -1), plain)


def exp_minus_one(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    """Compute exp(x) - 1, also near zero."""
    plain = pair("Sub")(eager, *eager.run("Exp", x), 1)
    return _near_zero(eager, x, _series(eager, x, 1), plain)


def inverse_root(eager: Eager, x: DeviceTensor) -> DeviceTensor:
    """Compute the reciprocal of the root."""
    return eager.run("Reciprocal", *eager.run("Sqrt", x))[0]


def variance(
    eager: Eager,
    x: DeviceTensor,
    dims: Sequence[int] | None,
    correction: float = 1,
    output_dtype: torch.dtype | None = None,
) -> DeviceTensor:
    """Compute the variance over some axes, which it leaves out."""
    axes = list(range(_rank(x))) if dims is None else list(dims)
    off = pair("Sub")(eager, x, reduced("ReduceMean")(eager, x, axes, True))
    squares = reduced("ReduceSum")(eager, eager.run("Mul", off, off)[0], axes)
    count = prod(x.type.shape[axis] for axis in axes)
    found: DeviceTensor = pair("Div")(eager, squares, max(count - correction, 0))
    return found


def prim_sum(
    eager: Eager,
    x: DeviceTensor,
    dims: Sequence[int] | None,
    output_dtype: torch.dtype | None = None,
) -> DeviceTensor:
    """Sum over some axes, which it leaves out."""
    made: DeviceTensor = x if dims == [] else reduced("ReduceSum")(eager, x, dims)
    return made


def place_of(op: str) -> Rule:
    """Return the rule of the place of an extreme value."""

    def run(
        eager: Eager, x: DeviceTensor, dim: int | None = None, keep: bool = False
    ) -> DeviceTensor:
        whole = x if dim is not None else reshaped(eager, x, [-1])
        return eager.run(op, whole, axis=dim or 0, keepdims=int(keep and dim is not None))[0]

    return run


def split(eager: Eager, x: DeviceTensor, size: int | Sequence[int], dim: int = 0) -> Any:
    """Cut an axis in parts."""
    whole = x.type.shape[dim]
    parts = size
    if isinstance(parts, int):
        parts = [min(parts, whole - at) for at in range(0, whole, parts or 1)] or [0]
    return eager.run("Split", x, np.array(parts, np.int64), outputs=len(parts), axis=dim)


def convolution(
    eager: Eager,
    x: DeviceTensor,
    weight: DeviceTensor,
    bias: DeviceTensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> DeviceTensor:
    """Compute a convolution, or a transposed one."""
    facts: dict[str, Any] = {"strides": stride, "pads": [*padding, *padding], "dilations": dilation}
    operands = [x, weight] if bias is None else [x, weight, bias]
    if transposed:
        facts["output_padding"] = output_padding
    op = "ConvTranspose" if transposed else "Conv"
    return eager.run(op, *operands, group=groups, **facts)[0]


def gelu(eager: Eager, x: DeviceTensor, approximate: str = "none") -> DeviceTensor:
    """Compute GELU."""
    return eager.run("Gelu", x, approximate=approximate)[0]


def same(eager: Eager, x: DeviceTensor, *_: Any, **__: Any) -> DeviceTensor:
    """Return the operand."""
    return x
