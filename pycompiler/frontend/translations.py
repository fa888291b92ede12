"""How operators become ONNX where torch's exporter writes another type or another value.

torch's own translations make singles of Python numbers before they cast them. Here, all of them
run in :class:`_Numbers`, which makes constants of the wanted type. The table at the end has
translations of our own, which stand in place of torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnxscript import evaluator, opset18

#: Its annotations know no Python numbers.
op: Any = opset18
_ATEN = torch.ops.aten
_FLOAT, _DOUBLE, _INT = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32
_LONGS = (ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64)


class _Numbers:
    """Records what ``recorder`` does, but a cast of a Python number is a constant of its type."""

    def __init__(self, recorder: Any):
        self._recorder = recorder
        self._learned: list[ir.Value] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def eval(self, schema: onnx.defs.OpSchema, args: Any, kwargs: Any) -> Any:
        """Record an operator."""
        kind = None
        if schema.name == "Pow" and isinstance(args[1], float) and args[0].dtype == _DOUBLE:
            args = [args[0], op.Constant(value=ir.tensor(np.float64(args[1])))]
        if args and isinstance(args[0], (bool, int, float)):
            if schema.name == "Cast":
                kind = kwargs["to"]
            elif schema.name == "CastLike":
                kind = getattr(args[1], "dtype", None)
        if kind is None:
            found = self._recorder.eval(schema, args, kwargs)
            self._learn(schema, args, kwargs, found)
            return found
        held = np.asarray(args[0]).astype(ir.DataType(kind).numpy())
        return op.Constant(value=ir.tensor(held))

    def _learn(self, schema: onnx.defs.OpSchema, args: Any, kwargs: Any, found: Any) -> None:
        """Give a result its type, so that numbers that meet it get that type too."""
        if not isinstance(found, ir.Value) or found.dtype is not None:
            return
        kinds = {
            port.type_str: arg.dtype
            for port, arg in zip(schema.inputs, args, strict=False)
            if isinstance(arg, ir.Value)
        }
        dtype = kwargs["to"] if schema.name == "Cast" else kinds.get(schema.outputs[0].type_str)
        if dtype is not None:
            found.dtype = ir.DataType(dtype)
            self._learned.append(found)

    def forget(self, results: Any) -> None:
        """Leave the types of results to the exporter, which takes torch's."""
        for value in results if isinstance(results, (list, tuple)) else [results]:
            if any(value is known for known in self._learned):
                value.type = None


def _with_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def translated(*args: Any, **kwargs: Any) -> Any:
        numbers: Any = _Numbers(evaluator.default())
        with evaluator.default_as(numbers):
            found = function(*args, **kwargs)
        numbers.forget(found)
        return found

    return translated


def _wide(x: Any, kind: ir.DataType) -> Any:
    """Cast an operand to an element type, unless it has it."""
    return x if getattr(x, "dtype", None) == kind else op.Cast(x, to=kind)


def _typed(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return two operands in one type: that of the tensor, but floats make floats of integers."""
    tensors = [x for x in (a, b) if isinstance(x, ir.Value)]
    kind: Any = tensors[0].dtype
    if kind.is_integer() and len(tensors) == 2 and tensors[1].dtype is not None:
        kind = tensors[1].dtype if tensors[1].dtype.is_floating_point() else kind
    if kind.is_integer() and any(isinstance(x, float) for x in (a, b)):
        kind = _FLOAT
    return _wide(a, kind), _wide(b, kind), kind


def _is_inf(sign: int) -> Callable[[Any], Any]:
    """Return the test for infinities of a sign; 0 stands for both."""

    def translated(x: Any) -> Any:
        if not x.dtype.is_floating_point():
            return op.Less(_wide(x, ir.DataType.INT64), op.Cast(_LOWEST, to=ir.DataType.INT64))
        x = x if x.dtype == _DOUBLE else _wide(x, _FLOAT)
        return op.IsInf(x, detect_negative=int(sign <= 0), detect_positive=int(sign >= 0))

    return translated


#: No integer is below it.
_LOWEST = -(2**63)


def _negative(x: Any) -> Any:
    """Whether a number is below 0 or -0; the inverse of -0 is an infinity with its sign."""
    zero = op.Cast(0.0, to=x.dtype)
    return op.Less(op.Where(op.Equal(x, zero), op.Reciprocal(x), x), zero)


def _turned(x: Any, turns: Any, kind: ir.DataType) -> Any:
    """Change the signs of some numbers, by a product: onnxruntime's choices have no -0."""
    return op.Mul(x, op.Where(turns, op.Cast(-1.0, to=kind), op.Cast(1.0, to=kind)))


def _with_zeros(x: Any, like: Any, kind: ir.DataType) -> Any:
    """Give zeros the sign of another number."""
    zero = op.Cast(0.0, to=kind)
    turns = op.Or(op.Less(x, zero), op.And(op.Equal(x, zero), _negative(like)))
    return _turned(op.Abs(x), turns, kind)


def _apart(a: Any, b: Any, rest: Any, zero: Any) -> Any:
    """Whether a remainder is not 0, and has not the sign of the divisor."""
    signs = op.Xor(op.Less(rest, zero), op.Less(b, zero))
    return op.And(signs, op.Not(op.Equal(rest, zero)))


def _divided(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    """Divide and round. The quotient of integers is one of integers."""
    a, b, kind = _typed(a, b)
    if rounding_mode is None:
        return op.Div(a, b)
    if kind.is_integer():
        own = ir.DataType.INT64 if kind in _LONGS[:2] else _INT
        own = kind if kind == ir.DataType.UINT64 else own
        a, b = _wide(a, own), _wide(b, own)
        found = op.Div(a, b)
        if rounding_mode == "floor" and kind.is_signed():
            apart = _apart(a, b, op.Mod(a, b, fmod=1), op.Cast(0, to=own))
            found = op.Sub(found, op.Cast(apart, to=own))
        return _wide(found, kind) if own != kind else found
    if rounding_mode == "floor":
        return _floored(a, b, kind)
    # The quotient is rounded before it is cut, as in torch: to the element type.
    if kind != _DOUBLE:
        quotient = op.Cast(op.Div(op.Cast(a, to=_DOUBLE), op.Cast(b, to=_DOUBLE)), to=kind)
    else:
        quotient = op.Div(a, b)
    return _cut(quotient, kind)


def _cut(x: Any, kind: ir.DataType) -> Any:
    """Round towards zero, which keeps its sign."""
    return _turned(op.Floor(op.Abs(x)), _negative(x), kind)


def _floored(a: Any, b: Any, kind: ir.DataType) -> Any:
    """Return the whole number below the exact quotient, by way of the remainder, which is exact."""
    own = kind if kind == _DOUBLE else _FLOAT
    a, b = _wide(a, own), _wide(b, own)
    zero, one, half = (op.Cast(n, to=own) for n in (0.0, 1.0, 0.5))
    rest, quotient = op.Mod(a, b, fmod=1), op.Div(a, b)
    whole = op.Floor(op.Add(op.Div(op.Sub(a, rest), b), half))
    whole = op.Where(_apart(a, b, rest, zero), op.Sub(whole, one), whole)
    found = op.Where(op.Equal(b, zero), quotient, whole)
    found = _with_zeros(found, quotient, own)
    return found if own == kind else op.Cast(found, to=kind)


def _remainder(a: Any, b: Any) -> Any:
    """Return the remainder with the sign of the divisor, which is exact but for the last sum."""
    a, b, kind = _typed(a, b)
    if kind.is_integer():
        return op.Mod(a, b)
    own = kind if kind == _DOUBLE else _FLOAT
    a, b = _wide(a, own), _wide(b, own)
    rest, zero = op.Mod(a, b, fmod=1), op.Cast(0.0, to=own)
    found = op.Where(_apart(a, b, rest, zero), op.Add(rest, b), rest)
    found = _with_zeros(found, a, own)
    return found if own == kind else op.Cast(found, to=kind)


def _fmod(a: Any, b: Any) -> Any:
    a, b, kind = _typed(a, b)
    if kind.is_integer() or kind in (_FLOAT, _DOUBLE):
        return op.Mod(a, b, fmod=1)
    return op.Cast(op.Mod(_wide(a, _FLOAT), _wide(b, _FLOAT), fmod=1), to=kind)


def _power(a: Any, b: Any) -> Any:
    """Return a power of operands of one type; a number takes the type of the tensor."""
    a, b, kind = _typed(a, b)
    if kind.is_integer() or kind in (_FLOAT, _DOUBLE):
        return op.Pow(a, b)
    return op.Cast(op.Pow(_wide(a, _FLOAT), _wide(b, _FLOAT)), to=kind)


def _shifted(direction: str) -> Callable[[Any, Any], Any]:
    """Return a shift. One by more bits than there are leaves 0, or the sign."""

    def translated(a: Any, b: Any) -> Any:
        a, b, kind = _typed(a, b)
        bits = 64 if kind in _LONGS else 32 if kind == _INT else 8 * kind.itemsize
        own = ir.DataType.UINT64 if bits == 64 else ir.DataType.UINT32
        signed = ir.DataType.INT64 if bits == 64 else _INT
        whole = kind if kind == ir.DataType.UINT64 else ir.DataType.INT64
        b = _wide(b, whole)
        last = bits - 1 if kind.is_signed() or direction == "LEFT" else bits
        beyond = op.Or(op.Less(b, op.Cast(0, to=whole)), op.Greater(b, op.Cast(last, to=whole)))
        if direction == "LEFT" or not kind.is_signed():
            b = op.Where(beyond, op.Cast(0, to=whole), b)
            found = op.BitShift(_wide(a, own), op.Cast(b, to=own), direction=direction)
            return op.Where(beyond, op.Cast(0, to=kind), op.Cast(found, to=kind))
        b = op.Where(beyond, op.Cast(last, to=whole), b)
        a = _wide(a, signed)
        sign = op.Where(
            op.Less(a, op.Cast(0, to=signed)), op.Cast(-1, to=signed), op.Cast(0, to=signed)
        )
        size = op.Cast(op.BitwiseXor(a, sign), to=own)
        found = op.Cast(op.BitShift(size, op.Cast(b, to=own), direction=direction), to=signed)
        return op.Cast(op.BitwiseXor(found, sign), to=kind)

    return translated


def _logarithm(base: float) -> Callable[[Any], Any]:
    def translated(x: Any) -> Any:
        return op.Div(op.Log(x), op.Cast(np.log(base), to=x.dtype))

    return translated


def _exp2(x: Any) -> Any:
    return op.Pow(op.Cast(2.0, to=x.dtype), x)


_OWN: dict[Any, Callable[..., Any]] = {
    _ATEN.isinf.default: _is_inf(0),
    _ATEN.isposinf.default: _is_inf(1),
    _ATEN.isneginf.default: _is_inf(-1),
    _ATEN.div.Tensor_mode: _divided,
    _ATEN.div.Scalar_mode: _divided,
    _ATEN.floor_divide.default: lambda a, b: _divided(a, b, "floor"),
    _ATEN.floor_divide.Scalar: lambda a, b: _divided(a, b, "floor"),
    _ATEN.remainder.Tensor: _remainder,
    _ATEN.remainder.Scalar: _remainder,
    _ATEN.remainder.Scalar_Tensor: _remainder,
    torch.ops.prims.remainder.default: _remainder,
    _ATEN.fmod.Tensor: _fmod,
    _ATEN.fmod.Scalar: _fmod,
    _ATEN.pow.Tensor_Tensor: _power,
    _ATEN.pow.Tensor_Scalar: _power,
    _ATEN.pow.Scalar: _power,
    **dict.fromkeys(
        (
            _ATEN.bitwise_left_shift.Tensor,
            _ATEN.bitwise_left_shift.Tensor_Scalar,
            _ATEN.bitwise_left_shift.Scalar_Tensor,
            _ATEN.__lshift__.Tensor,
            _ATEN.__lshift__.Scalar,
        ),
        _shifted("LEFT"),
    ),
    **dict.fromkeys(
        (
            _ATEN.bitwise_right_shift.Tensor,
            _ATEN.bitwise_right_shift.Tensor_Scalar,
            _ATEN.bitwise_right_shift.Scalar_Tensor,
            _ATEN.__rshift__.Tensor,
            _ATEN.__rshift__.Scalar,
        ),
        _shifted("RIGHT"),
    ),
    _ATEN.log2.default: _logarithm(2.0),
    _ATEN.log10.default: _logarithm(10.0),
    _ATEN.exp2.default: _exp2,
    _ATEN.fill.Scalar: lambda x, value: op.Expand(op.Cast(value, to=x.dtype), op.Shape(x)),
}


@cache
def translations() -> dict[Any, Callable[..., Any]]:
    """Return the translations of real numbers by operator, as the exporter takes them."""
    from torch.onnx._internal.exporter import _registration

    # torch parses its library's 500 functions again for each registry: for this, and each export.
    apis = vars(_registration)["onnxscript_apis"]
    apis.get_torchlib_ops = cache(apis.get_torchlib_ops)
    found: dict[Any, Callable[..., Any]] = {}
    for known in _registration.ONNXRegistry.from_torchlib().functions.values():
        real = [one for one in known if not one.is_complex]
        if real and isinstance(real[0].fx_target, torch._ops.OpOverload):
            found[real[0].fx_target] = _with_numbers(real[0].onnx_function)
    return found | {target: _with_numbers(own) for target, own in _OWN.items()}
