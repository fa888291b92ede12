"""Conversions between number formats, and rounding to integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import onnx

from ...graph.dtypes import MNDtype
from ...tolerance import ELEMENTWISE, MOVE
from .elementwise_function import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    REALS,
    UINT,
    ULONG,
    UNARY,
    Call,
    Function,
)
from .program import Program, Result, Row, double, first_word, long, neg, single, word
from .reals import Reals, of_reals

_MANTISSA = 23
_HALF = 0x10  # bits of half a word
_MAGNITUDE = 0x7FFFFFFF
_SIGN = 0x80000000


def int_to_float(p: Program, x: Row, signed: bool = True) -> Result:
    """Convert a 32-bit integer to a single: both halves are exact, their sum is rounded once."""
    r = Reals(p, wide=False)
    upper = r.of_small(p.alu("ilsr" if signed else "uilsr", x, _HALF))
    lower = r.of_small(p.alu("iand", x, (1 << _HALF) - 1))
    return r.fma(upper, 2.0**_HALF, lower)


def both_words(p: Program, x: Row) -> Result:
    """Copy the first word of a long word to both."""
    return p.alu("lor", p.alu("ullsr", x, long(32)), _first(p, x))


def _first(p: Program, x: Row) -> Result:
    return p.alu("land", x, long(0xFFFFFFFF00000000))


def _low_in_both(p: Program, x: Row) -> Result:
    upper = p.alu("llsl", x, long(32))
    return p.alu("lor", upper, p.alu("ullsr", upper, long(32)))


def _exact_halves(p: Program, x: Row, signed: bool) -> tuple[Result, Result]:
    """Return two doubles whose sum is a 64-bit integer."""
    # The upper half plus 2^31, an unsigned number, goes into the fraction bits of 2^84.
    offset = 2.0**63 if signed else 0.0
    biased = p.alu("lxor", p.alu("ullsr", x, long(32)), double(2.0**84 + offset))
    upper = p.op("mau", "dvadd", biased, neg(double(2.0**84 + offset + 2.0**52)))
    return upper, p.alu("lor", p.alu("land", x, long(0xFFFFFFFF)), double(2.0**52))


def _long_to_float(p: Program, x: Row, signed: bool = True) -> Row:
    """Convert to a single: both halves are exact doubles, their sum is rounded once."""
    halves = _exact_halves(p, x, signed)
    return both_words(p, p.op("mau", "dvaddr", *halves, first_word=True))


def _long_to_double(p: Program, x: Row, signed: bool = True) -> Row:
    return p.op("mau", "dvadd", *_exact_halves(p, x, signed))


def _double_to_float(p: Program, x: Row) -> Row:
    return both_words(p, p.op("mau", "dvpassar", x, first_word=True))


_DROPPED = 52 - _MANTISSA  # fraction bits that a single lacks


def _odd(p: Program, x: Row) -> Row:
    """Round a double to the fraction of a single so that a second rounding is right.

    The last bit is set if the bits that are dropped are not all 0.
    """
    dropped = (1 << _DROPPED) - 1
    exact = p.mask(p.flags("land", x, long(dropped)))
    sticky = p.alu("land", p.alu("lnot", exact), long(1 << _DROPPED))
    return p.alu("lor", p.alu("land", x, long(~dropped)), sticky)


def _double_to_int(p: Program, x: Row) -> Row:
    whole = p.alu("dftoi", x)
    bounded = p.alu("lmax", p.alu("lmin", whole, long(_MAGNITUDE)), long(-_SIGN))
    return _low_in_both(p, bounded)


def _float_to_long(p: Program, x: Row) -> Row:
    return p.alu("dftoi", p.op("mau", "dvpassa", first_word(x)))


#: Formats that are kept as singles: fraction bits to drop, and the largest number.
_SHORT: dict[object, tuple[int, float]] = {
    onnx.TensorProto.FLOAT16: (13, 65504.0),
    onnx.TensorProto.BFLOAT16: (_HALF, 3.3895313892515355e38),
}


#: Integers that are kept in 32 bits: their bits, and the shift that brings their sign or zeros.
_NARROW: dict[object, tuple[int, str]] = {
    onnx.TensorProto.INT8: (8, "i"),
    onnx.TensorProto.UINT8: (8, "ui"),
    onnx.TensorProto.INT16: (_HALF, "i"),
    onnx.TensorProto.UINT16: (_HALF, "ui"),
}


def _rounded(p: Program, x: Row, bits: int, largest: float) -> Row:
    """Round to a shorter fraction: add half of the last place to the bits; ties go to even."""
    r = Reals(p, wide=False)
    odd = p.alu("iand", p.alu("uilsr", x, bits), 1)
    raised = p.alu("iadd", p.alu("iadd", x, (1 << bits - 1) - 1), odd)
    short = p.alu("iand", raised, -(1 << bits))
    over = p.alu("lnot", r.mask(r.real("max", largest, r.magnitude(short)).flags))
    return r.normal(p.alu("ior", short, p.alu("iand", over, r.INFINITY)))


def _cast(p: Program, call: Call) -> Row:
    (x,), (source,), target = call.inputs, call.dtypes, call.result
    if target is FLOAT and call.attributes.get("to") in _SHORT:
        if source is DOUBLE:
            x, source = _double_to_float(p, _odd(p, x)), FLOAT
        single_value = x if source is FLOAT else _cast(p, replace(call, attributes={}))
        return _rounded(p, single_value, *_SHORT[call.attributes["to"]])
    if target is INT and call.attributes.get("to") in _NARROW and source is not BOOL:
        places, letter = _NARROW[call.attributes["to"]]
        whole = _cast(p, replace(call, attributes={}))
        # Twice a shift by the bits above: the last `places` bits, with their sign or without.
        return p.alu(f"{letter}lsr", p.alu("ilsl", whole, 32 - places), 32 - places)
    if source is target:
        return x
    if source is BOOL:
        one = {FLOAT: single(1.0), DOUBLE: double(1.0), LONG: long(1), ULONG: long(1)}.get(
            target, word(1)
        )
        return p.alu("land", x, one)
    if target is BOOL:
        letter = "l" if source in (DOUBLE, LONG, ULONG) else "i"
        bits = Reals(p, source is DOUBLE).magnitude(x) if source in REALS else x
        return p.alu("lnot", p.mask(p.flags(f"{letter}passa", bits)))
    return _NUMBERS[source, target](p, x)


_NUMBERS: dict[tuple[MNDtype, MNDtype], Callable[[Program, Row], Row]] = {
    (INT, FLOAT): int_to_float,
    (FLOAT, INT): lambda p, x: p.alu("fftoi", x),
    (LONG, FLOAT): _long_to_float,
    (FLOAT, LONG): _float_to_long,
    **dict.fromkeys(product((LONG, ULONG), (INT, UINT)), _low_in_both),
    **dict.fromkeys(product((INT,), (LONG, ULONG)), lambda p, x: p.alu("llsr", x, long(32))),
    **dict.fromkeys(product((UINT,), (LONG, ULONG)), lambda p, x: p.alu("ullsr", x, long(32))),
    **dict.fromkeys(((UINT, INT), (INT, UINT), (ULONG, LONG), (LONG, ULONG)), lambda p, x: x),
    (UINT, FLOAT): lambda p, x: int_to_float(p, x, signed=False),
    (FLOAT, DOUBLE): lambda p, x: p.op("mau", "dvpassa", first_word(x)),
    (DOUBLE, FLOAT): _double_to_float,
    (INT, DOUBLE): lambda p, x: Reals(p, wide=True).of_small(p.alu("llsr", x, long(32))),
    (UINT, DOUBLE): lambda p, x: Reals(p, wide=True).of_small(p.alu("ullsr", x, long(32))),
    (DOUBLE, INT): _double_to_int,
    (LONG, DOUBLE): _long_to_double,
    (DOUBLE, LONG): lambda p, x: p.alu("dftoi", x),
    (ULONG, FLOAT): lambda p, x: _long_to_float(p, x, signed=False),
    (ULONG, DOUBLE): lambda p, x: _long_to_double(p, x, signed=False),
    (DOUBLE, ULONG): lambda p, x: p.alu("udftoi", x),
}
_ALL = (BOOL, FLOAT, DOUBLE, INT, LONG, UINT, ULONG)
_PAIRS: frozenset[tuple[MNDtype, MNDtype]] = frozenset(
    {
        *_NUMBERS,
        *((BOOL, dtype) for dtype in _ALL),
        *((dtype, BOOL) for dtype in _ALL),
        *((dtype, dtype) for dtype in _ALL),
    }
)


def _floor(r: Reals, x: Row) -> Row:
    return r.normal(r.real("floor", x))


def _ceil(r: Reals, x: Row) -> Row:
    return r.normal(r.neg(r.real("floor", r.normal(r.neg(x)))))


def _round(r: Reals, x: Row) -> Row:
    """Round to the nearest integer, ties to even; above 2^FIELD every number is an integer."""
    magnitude, large = r.magnitude(x), 2.0**r.FIELD
    near = r.sub(r.add(r.real("min", magnitude, large), large), large)
    kept = r.keep(r.real("max", magnitude, large).flags, magnitude)
    return r.normal(r.signed(r.real("max", near, kept), x))


FUNCTIONS: tuple[Function, ...] = (
    Function(
        "Cast",
        _cast,
        UNARY,
        (),
        ELEMENTWISE,
        pairs=_PAIRS,
        attributes=frozenset({"to", "saturate"}),
        note="integers are rounded once; out of range saturates to 32 or 64 bits; "
        "8 and 16 bits are taken modulo 2^8 and 2^16",
    ),
    Function("Floor", of_reals(_floor), UNARY, REALS, MOVE),
    Function("Ceil", of_reals(_ceil), UNARY, REALS, MOVE),
    Function("Round", of_reals(_round), UNARY, REALS, MOVE, note="ties to even"),
)
