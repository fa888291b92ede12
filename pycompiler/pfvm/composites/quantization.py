"""Quantised operators: integers with a scale and a zero point.

Integers of products are exact as singles up to 2^24, and as doubles beyond. Quotients that are
rounded to integers are quotients of doubles, rounded to singles: these are the right singles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
from onnx import helper

from ...graph.dtypes import onnx_elem_type
from .writer import SMALL, Writer

_FLOAT, _DOUBLE, _INT = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT32)
#: The element types of what is dequantised.
QUANTIZED = SMALL | {"int32"}
BYTES = frozenset({"int8", "uint8"})
#: The element types of scales.
_SCALES = frozenset({"float", "float16", "bfloat16"})
#: The largest difference of two bytes, and the largest integer below which all are singles.
_WIDEST, _EXACT = 255, 1 << 24


def quotient(write: Writer, a: str, b: str) -> str:
    """Append the single that is nearest to ``a / b``."""
    wide = (write.op("Cast", name, to=_DOUBLE) for name in (a, b))
    return write.op("Cast", write.op("Div", *wide), to=_FLOAT)


def _along(write: Writer, name: str) -> str | None:
    """Append a scale or a zero point so that it broadcasts; None for other shapes."""
    shape, whole = write.types[name].shape, write.type(0).shape
    if prod(shape) == 1:
        return write.reshape(name, [])
    axis = int(write.attribute("axis", 1)) % max(1, len(whole))
    block = int(write.attribute("block_size", 0))
    if block:
        return _blocks(write, name, axis, block)
    if len(shape) != 1:
        return None
    return write.reshape(name, [-1 if at == axis else 1 for at in range(len(whole))])


def _blocks(write: Writer, name: str, axis: int, block: int) -> str | None:
    """Append the factors of blocks once for each element; the last block may be short."""
    shape, whole = write.types[name].shape, write.type(0).shape
    if len(shape) != len(whole) or shape[axis] * block < whole[axis]:
        return None
    apart = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    wide = [*shape[: axis + 1], block, *shape[axis + 1 :]]
    value = write.op("Expand", write.reshape(name, apart), write.ints(wide))
    long = [*shape[:axis], shape[axis] * block, *shape[axis + 1 :]]
    value = write.reshape(value, long)
    return write.cut(value, [axis], [0], [whole[axis]]) if long[axis] > whole[axis] else value


def _rounded(write: Writer, value: str, zero: str, elem: str, goal: str | None = None) -> str:
    """Append the nearest integer, plus the zero point, within the range of ``elem``."""
    value = write.op("Round", value)
    if zero:
        value = write.op("Add", value, write.op("Cast", zero, to=_FLOAT))
    info = np.iinfo(helper.tensor_dtype_to_np_dtype(onnx_elem_type(elem)))
    ends = (write.constant(np.asarray(end, np.float32), "end") for end in (info.min, info.max))
    return write.cast(write.op("Clip", value, *ends), elem, goal)


def quantize(write: Writer) -> str | bool:
    """Divide by the scale, round, add the zero point, and take what the type can hold."""
    elem, scale, zero = write.types[write.node.output[0]].elem, write.input(1), write.input(2)
    factor = _along(write, scale)
    if elem not in SMALL or write.types[scale].elem not in _SCALES or factor is None:
        return False
    if int(write.attribute("precision", 0)) not in (0, _FLOAT):
        return False
    if zero:
        zero = _along(write, zero) or ""
    return _rounded(write, quotient(write, write.node.input[0], factor), zero, elem)


def dequantize(write: Writer) -> str | bool:
    """Subtract the zero point, multiply by the scale."""
    elem, scale, zero = write.types[write.node.output[0]].elem, write.input(1), write.input(2)
    factor = _along(write, scale)
    if factor is None or {write.types[scale].elem, elem} - _SCALES:
        return False
    value = _centred(write, write.node.input[0], _along(write, zero) if zero else None)
    value = write.op("Cast", value, to=_FLOAT)
    if write.types[scale].elem != "float":
        factor = write.op("Cast", factor, to=_FLOAT)
    return write.cast(write.op("Mul", value, factor), elem)


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
    name = write.input(index)
    if name and rows and len(write.types[name].shape) == 1 != prod(write.types[name].shape):
        return None
    return name and _scale_of(write, name, rows)


def _product(write: Writer, a: str, b: str, terms: int, to: int) -> str:
    """Append the exact product of matrices of integers as ``to``."""
    kind = _FLOAT if terms * _WIDEST * _WIDEST < _EXACT else _DOUBLE
    found = write.op("MatMul", *(write.op("Cast", name, to=kind) for name in (a, b)))
    return write.op("Cast", found, to=to)


def matmul(write: Writer) -> str | bool:
    """Subtract the zero points and multiply."""
    zeros = [_zero_of(write, 2, rows=True), _zero_of(write, 3, rows=False)]
    if None in zeros or {write.type(0).elem, write.type(1).elem} - BYTES:
        return False
    a, b = (_centred(write, write.node.input[at], zeros[at]) for at in range(2))
    return _product(write, a, b, write.type(0).shape[-1], _INT)


def linear_matmul(write: Writer) -> str | bool:
    """Multiply, scale the product, and quantise it."""
    one, one_scale, _, other, other_scale, _, scale, zero = write.node.input
    names = (one_scale, other_scale, scale)
    shown = [
        _scale_of(write, name, rows) for name, rows in zip(names, (True, False, True), strict=True)
    ]
    if None in shown or prod(write.types[scale].shape) * prod(write.types[zero].shape) != 1:
        return False
    if {write.types[name].elem for name in names} - _SCALES:
        return False
    zeros = [_zero_of(write, 2, rows=True), _zero_of(write, 5, rows=False)]
    if None in zeros or {write.types[name].elem for name in (one, other)} - BYTES:
        return False
    a, b = (_centred(write, name, at) for name, at in zip((one, other), zeros, strict=True))
    found = _product(write, a, b, write.type(0).shape[-1], _FLOAT)
    factors = [write.op("Cast", name or "", to=_FLOAT) for name in shown]
    return _requantized(write, found, factors, zero)


def _scale_of(write: Writer, name: str, rows: bool) -> str | None:
    """Append a scale of a matrix: one, or one for each row or column; None for other forms."""
    shape = write.types[name].shape
    if prod(shape) == 1:
        return write.reshape(name, [])
    if len(shape) != 1:
        return name if rows == (shape[-1] == 1) else None
    return write.reshape(name, [-1, 1] if rows else [1, -1])


def _requantized(write: Writer, found: str, factors: Sequence[str], zero: str) -> str:
    """Append exact sums times the first two factors over the third, as small integers."""
    factor = quotient(write, write.op("Mul", *factors[:2]), factors[2])
    found = write.op("Mul", found, factor)
    elem = write.types[write.node.output[0]].elem
    return _rounded(write, found, write.reshape(zero, []), elem)


def convolution(write: Writer) -> str | bool:
    """Subtract the zero points and convolve; padding is the zero point, so it becomes 0."""
    found = _convolved(write, (0, 1), (2, 3))
    return found is not None and write.op("Cast", found, to=_INT)


def _convolved(write: Writer, values: tuple[int, int], zeros: tuple[int, int]) -> str | None:
    """Append the exact convolution of the operands at these places; None for other forms."""
    names = [write.input(place) for place in zeros]
    weights = write.type(values[1]).shape
    for at, name in enumerate(names):
        shape = write.types[name].shape if name else ()
        if prod(shape) == 1:
            names[at] = write.reshape(name, []) if name else ""
        elif at and len(shape) == 1:
            names[at] = write.reshape(name, [-1, *[1] * (len(weights) - 1)])
        else:
            return None
    kind = _FLOAT if prod(weights[1:]) * _WIDEST * _WIDEST < _EXACT else _DOUBLE
    parts = (
        write.op("Cast", _centred(write, write.node.input[place], name), to=kind)
        for place, name in zip(values, names, strict=True)
    )
    facts = {a.name: helper.get_attribute_value(a) for a in write.node.attribute}
    return write.op("Conv", *parts, **facts)


def linear_convolution(write: Writer) -> str | bool:
    """Convolve, add the bias, scale the sums, and quantise them."""
    names = {place: write.input(place) for place in (1, 4, 6)}
    weights, scale = write.type(3).shape, write.types[names[4]].shape
    plain = all(prod(write.types[write.input(at)].shape) == 1 for at in (1, 6, 7))
    if not plain or (prod(scale) != 1 and scale != (weights[0],)):
        return False
    if {write.type(0).elem, write.type(3).elem} - BYTES:
        return False
    found = _convolved(write, (0, 3), (2, 5))
    if found is None:
        return False
    wide = [1, -1, *[1] * (len(weights) - 2)]
    bias = write.input(8)
    if bias:
        found = write.op("Cast", found, to=_INT)
        found = write.op("Add", found, write.reshape(bias, wide))
    found = write.op("Cast", found, to=_FLOAT)
    factors = [write.reshape(name, wide if place == 4 else []) for place, name in names.items()]
    if prod(scale) == 1:
        factors[1] = write.reshape(names[4], [])
    return _requantized(write, found, factors, write.input(7))
