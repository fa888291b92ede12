"""MatMul and Gemm of integers: exact, modulo 2^32 or 2^64; products with vectors.

A small product adds up products of elements. For a large one, each factor is cut into digits of 16
bits: sums of products of digits are exact as doubles.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
import onnx
from onnx import helper

from ...graph.dtypes import onnx_elem_type
from .writer import INTEGERS, SMALL, Writer

_FLOAT, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
_LONG, _ULONG = onnx.TensorProto.INT64, onnx.TensorProto.UINT64
#: The bits of a digit, and integers below which all are doubles or singles.
_DIGIT, _EXACT, _SHORT = 16, 1 << 53, 1 << 24
#: The most products of elements in a PE, for each digit. More cost more than products of digits.
_APART = 64
#: Factors up to this one are exact in every precision of products.
_BYTE = 255


def matmul(write: Writer) -> str | bool:
    """Multiply matrices of integers, or a matrix that is no parameter with a vector.

    A product fills one column of the MAU for a vector, and its layouts let vectors that come and
    go cross L2Bs. A sum of products of elements has any layout.
    """
    vector = not write.data and 1 in {len(write.types[name].shape) for name in write.node.input}
    if write.type(0).elem not in INTEGERS:
        found = vector and _summed(write, *write.node.input)
    else:
        found = product(write, write.type(0).shape[-1])
    return found and write.op("Identity", found)


def product(write: Writer, terms: int, turned: Iterable[int] = (0, 0)) -> str:
    """Append the product of matrices modulo 2^32 or 2^64; empty if there are too many terms.

    ``turned`` says which of the two is transposed.
    """
    one, other = (
        write.op("Transpose", name, perm=[1, 0]) if flag else name
        for name, flag in zip(write.node.input[:2], turned, strict=True)
    )
    elem = write.type(0).elem
    largest = [_largest(write, name) for name in write.node.input[:2]]
    most = largest[0] * largest[1] * terms
    if most < _EXACT:
        kind = _FLOAT if most < _SHORT and max(largest) <= _BYTE else _DOUBLE
        found = write.op("MatMul", *(write.op("Cast", name, to=kind) for name in (one, other)))
        if kind == _DOUBLE:  # a Cast of floats saturates, one of integers does not
            found = write.op("Cast", found, to=_LONG)
        return write.op("Cast", found, to=onnx_elem_type(elem))
    count = np.dtype(helper.tensor_dtype_to_np_dtype(onnx_elem_type(elem))).itemsize * 8 // _DIGIT
    whole = prod(write.types[write.node.output[0]].shape) * terms
    if write.target is not None and whole <= _APART * count * prod(write.target.pe_shape):
        return _summed(write, one, other)
    if (terms * count) << (2 * _DIGIT) >= _EXACT:
        return ""
    left, right = (_digits(write, name, count) for name in (one, other))
    # An axis from the back of rows and of columns; a vector has one axis.
    columns = -2 if len(write.type(1).shape) > 1 else -1
    total = ""
    for place in range(count):
        factors = (left[: place + 1], -1), (right[place::-1], columns)
        wide = (
            write.op("Concat", *names, axis=axis) if place else names[0] for names, axis in factors
        )
        part = write.op("Cast", write.op("MatMul", *wide), to=_ULONG)
        if place:
            part = write.op("Mul", part, _natural(write, 1 << (place * _DIGIT)))
        total = write.op("Add", total, part) if total else part
    return write.op("Cast", total, to=onnx_elem_type(elem))


def _summed(write: Writer, one: str, other: str) -> str:
    """Append the sum of all products of a row and a column."""
    axis = -1
    if len(write.type(1).shape) > 1:
        axis, one = -2, write.op("Unsqueeze", one, write.ints([-1]))
        if len(write.type(0).shape) > 1:
            other = write.op("Unsqueeze", other, write.ints([-3]))
    return write.op("ReduceSum", write.op("Mul", one, other), write.ints([axis]), keepdims=0)


def _largest(write: Writer, name: str) -> int:
    """Return the largest magnitude that a factor may have: small integers stay small."""
    maker, elem = write.makers.get(name), write.types[name].elem
    if name in write.data:
        info = write.data[name]
        return max(abs(int(info.min())), abs(int(info.max()))) if info.size else 0
    if maker is not None and maker.op_type == "Cast":
        before = write.types[maker.input[0]].elem
        if before == "bool":
            return 1
        elem = before if before in SMALL else elem
    bounds = np.iinfo(helper.tensor_dtype_to_np_dtype(onnx_elem_type(elem)))
    return max(-int(bounds.min), int(bounds.max))


def _digits(write: Writer, name: str, count: int) -> list[str]:
    """Append the digits of integers modulo 2^32 or 2^64, the lowest first, as doubles."""
    value = write.op("Cast", name, to=_ULONG)
    found = []
    for place in range(count):
        if place:
            value = write.op("BitShift", value, _natural(write, _DIGIT), direction="RIGHT")
        digit = write.op("BitwiseAnd", value, _natural(write, (1 << _DIGIT) - 1))
        found.append(write.op("Cast", digit, to=_DOUBLE))
    return found


def _natural(write: Writer, number: int) -> str:
    return write.constant(np.asarray(number, np.uint64), "number")
