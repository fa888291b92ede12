"""Element types of device values, and their ONNX counterparts."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import onnx

from ..errors import PycompilerError, error


class MNDtype(Enum):
    """Element type of a value on the device."""

    UNKNOWN = "Unknown"
    HALF = "Half"
    FLOAT = "Float"
    FLOAT32 = "Float32"
    DOUBLE = "Double"
    HALF_BOOL = "HalfBool"
    SINGLE_BOOL = "SingleBool"
    LONG_BOOL = "LongBool"
    INT8 = "Int8"
    BYTE = "Byte"
    SHORT = "Short"
    USHORT = "UShort"
    INT = "Int"
    UINT = "UInt"
    LONG = "Long"
    ULONG = "ULong"

    # As for levels: names are not hashed at every call.
    __hash__ = object.__hash__

    @property
    def bits(self) -> int:
        """Bits of one element on the device; 0 for Unknown."""
        return _BITS[self]

    @property
    def words_per_long(self) -> int:
        """Elements of one long word: the range of the W level."""
        return _WORDS[self]


_BITS = {
    MNDtype.UNKNOWN: 0,
    MNDtype.HALF: 16,
    MNDtype.FLOAT: 32,
    MNDtype.FLOAT32: 32,
    MNDtype.DOUBLE: 64,
    MNDtype.HALF_BOOL: 16,
    MNDtype.SINGLE_BOOL: 32,
    MNDtype.LONG_BOOL: 64,
    MNDtype.INT8: 8,
    MNDtype.BYTE: 8,
    MNDtype.SHORT: 16,
    MNDtype.USHORT: 16,
    MNDtype.INT: 32,
    MNDtype.UINT: 32,
    MNDtype.LONG: 64,
    MNDtype.ULONG: 64,
}
_WORDS = {dtype: 64 // bits if bits else 0 for dtype, bits in _BITS.items()}


def onnx_name(elem_type: int) -> str:
    """ONNX's name of an element type: 1 is ``float``."""
    return str(onnx.TensorProto.DataType.Name(elem_type).lower())


def onnx_elem_type(name: str) -> int:
    """Return the inverse of :func:`onnx_name`."""
    return int(onnx.TensorProto.DataType.Value(name.upper()))


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """Return the numpy type of an ONNX element type name."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(onnx_elem_type(name)))


# Integers of 8 and 16 bits are kept in 32 bits, where the device has arithmetic for them.
# The device's half has other field widths than torch's 16-bit formats. A single holds every value
# of both.
_DEVICE = {
    "float16": MNDtype.FLOAT,
    "bfloat16": MNDtype.FLOAT,
    "float": MNDtype.FLOAT,
    "double": MNDtype.DOUBLE,
    "bool": MNDtype.SINGLE_BOOL,
    "int8": MNDtype.INT,
    "uint8": MNDtype.INT,
    "int16": MNDtype.INT,
    "uint16": MNDtype.INT,
    "int32": MNDtype.INT,
    "uint32": MNDtype.UINT,
    "int64": MNDtype.LONG,
    "uint64": MNDtype.ULONG,
}


#: Element types without a device dtype that the host computes.
HOST_ONLY = frozenset({"complex64", "complex128"})


#: Element types of fewer than 8 bits.
_SMALL = frozenset({"int4", "uint4", "int2", "uint2", "float4e2m1"})


def uncomputed(what: str, name: str, kind: str, legal: str) -> PycompilerError:
    """Return the diagnostic for a value of a kind that is not compiled: P0131 to P0136, P0109."""
    facts: dict[str, Any] = {"what": what, "name": name, "kind": kind}
    if kind == "string":
        return error("P0131", **facts)
    if kind == "sequence":
        return error("P0132", **facts)
    if kind == "optional":
        return error("P0133", **facts)
    if kind == "map":
        return error("P0134", **facts)
    if kind.startswith("float8"):
        return error("P0135", **facts)
    if kind in _SMALL:
        return error("P0136", **facts)
    return error("P0109", **facts, legal=legal)


def device_dtype(elem: str) -> MNDtype:
    """Return the device dtype that holds ONNX element type ``elem``; Unknown if there is none."""
    return _DEVICE.get(elem, MNDtype.UNKNOWN)
