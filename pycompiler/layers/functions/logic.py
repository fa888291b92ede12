"""Comparisons, logic and choice. A truth value is a mask: all ones for true, 0 for false.

A mask in both words of a long word is also the mask of a 64-bit integer.
"""

from __future__ import annotations

from functools import partial, reduce

from ...tolerance import MOVE
from .elementwise_function import (
    BINARY,
    BOOL,
    INTEGERS,
    NUMBERS,
    REALS,
    TERNARY,
    ULONG,
    UNARY,
    Build,
    Call,
    Function,
)
from .program import ZERO, Program, Result, Row, long, word
from .reals import Reals, of_reals

#: Bits of an integer, by the letter of its instructions.
_BITS = {"l": 64, "i": 32}


def _not(p: Program, a: Row) -> Result:
    return p.alu("lnot", a)


def _compare(name: str, invert: bool) -> Build:
    """Compare by `max` or `min`: they flag lanes that give the first operand, ties included."""

    def build(p: Program, call: Call) -> Row:
        found = p.mask(p.flags(f"{call.real}{name}", *call.inputs))
        return _not(p, found) if invert else found

    return build


def _equal(p: Program, call: Call) -> Row:
    a, b = call.inputs
    if call.dtypes[0] is BOOL:
        return _not(p, p.alu("lxor", a, b))
    if call.dtypes[0] in REALS:  # +0 equals -0
        at_least = p.flags(f"{call.real}max", a, b)
        at_most = p.mask(p.flags(f"{call.real}min", a, b))
        return p.keep(at_least, at_most)
    return p.mask(p.flags(f"{call.letter}xor", a, b))


def _bitwise(name: str) -> Build:
    return lambda p, call: reduce(partial(p.alu, f"l{name}"), call.inputs)


def _shift(p: Program, call: Call) -> Row:
    """Shift by a count without sign; a count of the width or more leaves zeros or sign bits."""
    x, count = call.inputs
    wide = long(_BITS[call.letter]) if call.letter == "l" else word(_BITS[call.letter])
    bounded = p.alu(f"u{call.letter}min", count, wide)
    side = "r" if call.attributes["direction"] == "RIGHT" else "l"
    unsigned = "u" if call.result is ULONG and side == "r" else ""
    return p.alu(f"{unsigned}{call.letter}ls{side}", x, bounded)


def _where(p: Program, call: Call) -> Row:
    mask, a, b = call.inputs
    return p.select(mask, a, b)


def _isinf(r: Reals, x: Row, detect_positive: int = 1, detect_negative: int = 1) -> Row:
    """Find infinities of both signs, or of one: that one alone equals the number with its sign."""
    if not (detect_positive or detect_negative):
        return ZERO
    if detect_positive and detect_negative:
        return r.mask(r.bits("xor", r.magnitude(x), r.INFINITY).flags)
    infinity = r.INFINITY if detect_positive else r.SIGN | r.INFINITY
    return r.mask(r.bits("xor", x, infinity).flags)


def _isnan(r: Reals, x: Row) -> Row:
    """Find the bits of a NaN. No instruction makes one, but inputs are copied with all bits."""
    return _not(r.p, r.mask(r.bits("min", r.magnitude(x), r.INFINITY).flags))


FUNCTIONS: tuple[Function, ...] = (
    Function("GreaterOrEqual", _compare("max", False), BINARY, NUMBERS, MOVE, "test"),
    Function("LessOrEqual", _compare("min", False), BINARY, NUMBERS, MOVE, "test"),
    Function("Less", _compare("max", True), BINARY, NUMBERS, MOVE, "test"),
    Function("Greater", _compare("min", True), BINARY, NUMBERS, MOVE, "test"),
    Function("Equal", _equal, BINARY, (*NUMBERS, BOOL), MOVE, "test"),
    Function("And", _bitwise("and"), BINARY, (BOOL,), MOVE),
    Function("Or", _bitwise("or"), BINARY, (BOOL,), MOVE),
    Function("Xor", _bitwise("xor"), BINARY, (BOOL,), MOVE),
    Function("BitwiseAnd", _bitwise("and"), BINARY, INTEGERS, MOVE),
    Function("BitwiseOr", _bitwise("or"), BINARY, INTEGERS, MOVE),
    Function("BitwiseXor", _bitwise("xor"), BINARY, INTEGERS, MOVE),
    Function("BitwiseNot", lambda p, call: _not(p, call.inputs[0]), UNARY, INTEGERS, MOVE),
    Function(
        "BitShift",
        _shift,
        BINARY,
        INTEGERS,
        MOVE,
        attributes=frozenset({"direction"}),
        note="right shifts of signed integers bring in the sign",
    ),
    Function("Not", lambda p, call: _not(p, call.inputs[0]), UNARY, (BOOL,), MOVE),
    Function("Where", _where, TERNARY, (*NUMBERS, BOOL), MOVE, "choice"),
    Function(
        "IsInf",
        of_reals(_isinf),
        UNARY,
        REALS,
        MOVE,
        "test",
        attributes=frozenset({"detect_negative", "detect_positive"}),
    ),
    Function(
        "IsNaN",
        of_reals(_isnan),
        UNARY,
        REALS,
        MOVE,
        "test",
        note="of inputs: no operator makes one",
    ),
)
