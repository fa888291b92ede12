"""Quantised operators: integers with a scale and a zero point.

Integers of products are exact as singles up to 2^24, and as doubles beyond. Quotients that are
rounded to integers are quotients of doubles, rounded to singles: these are the right singles.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import helper

from ...graph.dtypes import onnx_elem_type
from .writer import SMALL, Writer

_FLOAT, _DOUBLE, _INT = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.INT32,
)
#: The element types of what is dequantised.
QUANTIZED = SMALL | {"int32"}
BYTES = frozenset({"int8", "uint8"})
#: The largest difference of two bytes, and the largest integer below which all are singles.
_WIDEST, _EXACT = 255, 1 << 24


def quotient(write: Writer, a: str, b: str) -> str:
    """Append the single that is nearest to ``a / b``."""
    wide = (write.op("Cast", name, to=_DOUBLE) for name in (a, b))
    return write.op("Cast", write.op("Div", *wide), to=_FLOAT)


def _input(write: Writer, index: int) -> str:
    return write.node.input[index] if index < len(write.node.input) else ""


def _along(write: Writer, name: str) -> str | None:
    """Append a scale or a zero point so that it broadcasts; None for blocks."""
    shape, whole = write.types[name].shape, write.type(0).shape
    if prod(shape) == 1:
        return write.reshape(name, [])
    axis = int(write.attribute("axis", 1)) % max(1, len(whole))
    if len(shape) != 1 or int(write.attribute("block_size", 0)):
        return None
    return write.reshape(name, [-1 if at == axis else 1 for at in range(len(whole))])


def _rounded(write: Writer, value: str, zero: str, elem: str, goal: str) -> None:
    """Append the nearest integer, plus the zero point, within the range of ``elem``."""
    value = write.op("Round", value)
    if zero:
        value = write.op("Add", value, write.op("Cast", zero, to=_FLOAT))
    info = np.iinfo(helper.tensor_dtype_to_np_dtype(onnx_elem_type(elem)))
    ends = (write.constant(np.asarray(end, np.float32), "end") for end in (info.min, info.max))
    write.op("Cast", write.op("Clip", value, *ends), result=goal, to=onnx_elem_type(elem))


def quantize(write: Writer) -> bool:
    """Divide by the scale, round, add the zero point, and take what the type can hold."""
    goal = write.node.output[0]
    elem, scale, zero = write.types[goal].elem, _input(write, 1), _input(write, 2)
    factor = _along(write, scale)
    if elem not in SMALL or write.types[scale].elem != "float" or factor is None:
        return False
    if zero:
        zero = _along(write, zero) or ""
    _rounded(write, quotient(write, write.node.input[0], factor), zero, elem, goal)
    return True


def dequantize(write: Writer) -> bool:
    """Subtract the zero point, multiply by the scale."""
    goal, scale, zero = write.node.output[0], _input(write, 1), _input(write, 2)
    factor = _along(write, scale)
    if factor is None or {write.types[scale].elem, write.types[goal].elem} != {"float"}:
        return False
    value = _centred(write, write.node.input[0], _along(write, zero) if zero else None)
    write.op("Mul", write.op("Cast", value, to=_FLOAT), factor, result=goal)
    return True


def _centred(write: Writer, value: str, zero: str | None) -> str:
    """Append the value less its zero point, as 32-bit integers."""
    value = write.op("Cast", value, to=_INT)
    return write.op("Sub", value, write.op("Cast", zero, to=_INT)) if zero else value


def dynamic_quantize(write: Writer) -> bool:
    """Find the scale in which all elements and 0 fit, and quantise."""
    value, zero = write.node.input[0], write.number(0.0)
    rank = len(write.type(0).shape)
    axes = write.ints(range(rank))
    if not rank:
        return False
    high = write.op("Max", write.op("ReduceMax", value, axes, keepdims=0), zero)
    low = write.op("Min", write.op("ReduceMin", value, axes, keepdims=0), zero)
    scale = quotient(write, write.op("Sub", high, low), write.number(float(_WIDEST)))
    some = write.op("Where", write.op("Equal", scale, zero), write.number(1.0), scale)
    goal, goal_scale, goal_zero = (*write.node.output, "", "")[:3]
    goal_zero = goal_zero or write.name("zero")
    _rounded(write, quotient(write, write.op("Sub", zero, low), some), "", "uint8", goal_zero)
    if goal:
        _rounded(write, quotient(write, value, some), goal_zero, "uint8", goal)
    if goal_scale:
        write.op("Identity", scale, result=goal_scale)
    return True


def _zero_of(write: Writer, index: int, *, rows: bool) -> str | None:
    """Append a zero point of a matrix: one, or one for each column; None for other forms.

    One for each row needs an axis of columns of size 1, as the host has it.
    """
    name = _input(write, index)
    if not name:
        return ""
    shape = write.types[name].shape
    if prod(shape) == 1:
        return write.reshape(name, [])
    if len(shape) != 1:
        return name if rows == (shape[-1] == 1) else None
    return None if rows else write.reshape(name, [1, -1])


def _product(write: Writer, a: str, b: str, terms: int, result: str | None, to: int) -> str:
    """Append the exact product of matrices of integers as ``to``."""
    kind = _FLOAT if terms * _WIDEST * _WIDEST < _EXACT else _DOUBLE
    found = write.op("MatMul", *(write.op("Cast", name, to=kind) for name in (a, b)))
    return write.op("Cast", found, result=result, to=to)


def matmul(write: Writer) -> bool:
    """Subtract the zero points and multiply."""
    zeros = [_zero_of(write, 2, rows=True), _zero_of(write, 3, rows=False)]
    if None in zeros or {write.type(0).elem, write.type(1).elem} - BYTES:
        return False
    a, b = (_centred(write, write.node.input[at], zeros[at]) for at in range(2))
    _product(write, a, b, write.type(0).shape[-1], write.node.output[0], _INT)
    return True


def linear_matmul(write: Writer) -> bool:
    """Multiply, scale the product, and quantise it."""
    one, one_scale, _, other, other_scale, _, scale, zero = write.node.input
    names = (one_scale, other_scale, scale)
    plain = all(prod(write.types[name].shape) == 1 for name in (*names, zero))
    goal = write.node.output[0]
    if not plain or {write.types[name].elem for name in names} != {"float"}:
        return False
    zeros = [_zero_of(write, 2, rows=True), _zero_of(write, 5, rows=False)]
    if None in zeros or {write.types[name].elem for name in (one, other)} - BYTES:
        return False
    a, b = (_centred(write, name, at) for name, at in zip((one, other), zeros, strict=True))
    found = _product(write, a, b, write.type(0).shape[-1], None, _FLOAT)
    factors = [write.reshape(name, []) for name in names]
    factor = quotient(write, write.op("Mul", *factors[:2]), factors[2])
    found = write.op("Mul", found, factor)
    _rounded(write, found, write.reshape(zero, []), write.types[goal].elem, goal)
    return True


def convolution(write: Writer) -> bool:
    """Subtract the zero points and convolve; padding is the zero point, so it becomes 0."""
    zeros = [_input(write, 2), _input(write, 3)]
    for at, name in enumerate(zeros):
        shape = write.types[name].shape if name else ()
        if prod(shape) == 1:
            zeros[at] = write.reshape(name, []) if name else ""
        elif at and len(shape) == 1:
            ones = [1] * (len(write.type(1).shape) - 1)
            zeros[at] = write.reshape(name, [-1, *ones])
        else:
            return False
    terms = prod(write.type(1).shape[1:])
    kind = _FLOAT if terms * _WIDEST * _WIDEST < _EXACT else _DOUBLE
    parts = (
        write.op("Cast", _centred(write, write.node.input[at], zeros[at]), to=kind)
        for at in range(2)
    )
    facts = {a.name: helper.get_attribute_value(a) for a in write.node.attribute}
    found = write.op("Conv", *parts, **facts)
    write.op("Cast", found, result=write.node.output[0], to=_INT)
    return True
