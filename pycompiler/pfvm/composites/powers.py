"""Pow of integers: products of squares, as many as the bits of the exponent say."""

from __future__ import annotations

import numpy as np
import onnx

from .writer import Writer

_DOUBLE, _LONG = onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64
_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
#: Larger powers of an integer beyond 1 exceed 64 bits.
_MOST_BITS = 6
#: Powers in floating point are rounded to the integer that is at most this much above.
_NEAR = 2.0**-45


def power(write: Writer) -> str | bool:
    """Multiply squares for exponents that are integers; others go by way of doubles."""
    value, exponent = write.node.input
    if write.type(1).elem in _INTEGERS:
        return _by_bits(write, value, write.op("Cast", exponent, to=_LONG))
    return _by_doubles(write, value, exponent)


def _by_bits(write: Writer, value: str, exponent: str) -> str:
    """Append a power whose exponent the model computes.

    An exponent beyond the last bit keeps its lowest bit, which decides the sign of powers of -1.
    A negative exponent leaves 0, but for 1 and -1.
    """

    def long(number: int) -> str:
        return write.constant(np.asarray(number, np.int64), "number")

    last = (1 << _MOST_BITS) - 1
    size = write.op("Abs", exponent)
    odd = write.op("BitwiseAnd", size, long(1))
    far = write.op("Greater", size, long(last))
    size = write.op("Where", far, write.op("Add", odd, long(last - 1)), size)
    found, square, one = "", value, write.number(1)
    for bit in range(_MOST_BITS):
        some = write.op("BitwiseAnd", size, long(1 << bit))
        unset = write.op("Equal", some, long(0))
        factor = write.op("Where", unset, one, square)
        found = write.op("Mul", found, factor) if found else factor
        if bit + 1 < _MOST_BITS:
            square = write.op("Mul", square, square)
    negative = write.op("Less", exponent, long(0))
    unit = write.op("Equal", write.op("Abs", value), one)
    lost = write.op("And", negative, write.op("Not", unit))
    return write.op("Where", lost, write.number(0), found)


def _by_doubles(write: Writer, value: str, exponent: str) -> str:
    """Append the integer part of a power in floating point."""
    wide = (write.op("Cast", name, to=_DOUBLE) for name in (value, exponent))
    found = write.op("Pow", *wide)
    found = write.op("Mul", found, write.constant(np.asarray(1 + _NEAR), "near"))
    return write.cast(found, write.type(0).elem)
