"""Sine, cosine and tangent over the whole range of singles.

The argument is reduced to n quarter turns and a rest of at most half a quarter. For that it is
multiplied by 2/pi in five parts of 24 bits, as doubles: the products of the first three are exact.
A large argument is an integer times a power of two. The multiples of 4 that this power has in 2/pi
are whole turns, so they are left out: each range of arguments has its own parts.
"""

from __future__ import annotations

from dataclasses import replace
from math import pi

from ...machine import WORDS_PER_LONG
from ...tolerance import FUNCTION
from . import wide_trigonometry as wide
from .doubles import Doubles, by_dtype, of_one
from .elementwise_function import REALS, UNARY, Call, Function
from .program import Operand, Program, Result, Row, Source, single
from .roots import quotient

_SIGN, _MAGNITUDE = 0x80000000, 0x7FFFFFFF
_FIELD, _BIAS = 23, 127
#: The first 224 bits of 2/pi.
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB
_BITS = 224

#: Arguments below 2^28 are as they are. Those of each range of 25 exponents above are divided by a
#: power of two, which makes them integers below 2^48.
_FIRST, _STEP, _RANGES = 28, 25, 5
_PARTS, _PART_BITS = 5, 24
_UPPER, _LOWER = 0xFFFFFFFF00000000, 0xFFFFFFFF

# sin(t)/t and cos(t) as polynomials in t^2 for t up to pi/4: minimax, 2^-28.3 and 2^-34.3.
_SIN = (0.9999999969, -0.1666665063, 0.008332033202, -0.0001950356948)
_COS = (1.0, -0.4999999961, 0.04166661654, -0.001388661348, 2.43794127e-5)


def _power(number: int) -> int:
    """Return the exponent of the power of two that arguments of a range are divided by."""
    return _FIRST - _FIELD + _STEP * (number - 1) if number else 0


def _parts(number: int) -> tuple[int, ...]:
    """Return the parts of 2/pi for a range, as bits of singles: below 4, each of 24 bits."""
    whole = (_TWO_OVER_PI << _power(number)) & ((1 << _BITS + 2) - 1)
    found = []
    for part in range(_PARTS):
        last = _BITS + 2 - _PART_BITS * (part + 1)
        bits = whole >> last & ((1 << _PART_BITS) - 1)
        value = single(bits * 2.0 ** (last - _BITS))
        found.append(value.bits & _LOWER)
    return tuple(found)


def _reduced(p: Program, x: Row) -> tuple[Result, Result]:
    """Return the number of quarter turns, modulo 2^32, and the rest as an angle."""
    magnitude = p.alu("iand", x, _MAGNITUDE)
    shown, before = x, _parts(0)
    rows: list[Operand] = list(before)
    for number in range(1, _RANGES):
        edge = _FIRST + _STEP * (number - 1)
        above = p.flags("isub", magnitude, (_BIAS + edge) << _FIELD)
        smaller = (_power(number) - _power(number - 1)) << _FIELD
        shown = p.alu("isub", shown, p.keep(above, smaller))
        now = _parts(number)
        changes = (one ^ other for one, other in zip(before, now, strict=True))
        rows = [
            p.alu("ixor", row, p.keep(above, change))
            for row, change in zip(rows, changes, strict=True)
        ]
        before = now
    (turns, angle), (more_turns, more_angle) = (
        _reduced_word(p, shown, rows, word) for word in range(WORDS_PER_LONG)
    )
    return p.alu("lor", turns, more_turns), p.alu("lor", angle, more_angle)


def _reduced_word(p: Program, x: Row, parts: list[Operand], word: int) -> tuple[Result, Result]:
    """Return turns and angle of one word of each long word; the other word is 0."""
    d = Doubles(p)

    def wide(operand: Operand) -> Source:
        return replace(Program.row(operand), extend=True, word=word)

    own = wide(x)
    first, second, third, *small = (wide(part) for part in parts)
    total: Result | None = None
    turns: Result | None = None
    for part in (first, second):
        product = d.mul(own, part)
        whole = d.alu("dfloor", d.add(product, 0.5))
        rest = d.sub(product, whole)
        total = rest if total is None else d.add(total, rest)
        turns = whole if turns is None else d.add(turns, whole)
    assert total is not None
    assert turns is not None
    product = d.mul(own, third)
    whole = d.alu("dfloor", d.add(d.add(total, product), 0.5))
    total = d.add(d.sub(total, whole), product)
    for part in small:
        total = d.fma(own, part, total)
    angle = p.op("mau", "dvpassar", d.mul(total, pi / 2), first_word=True)
    counted = d.alu("dftoi", d.add(turns, whole))
    if word:
        return d.alu("land", counted, _LOWER), d.alu("ullsr", angle, 32)
    return d.alu("llsl", counted, 32), d.alu("land", angle, _UPPER)


def _both(p: Program, x: Row) -> tuple[Result, Result, Result]:
    """Return the quarter turns, and sine and cosine of the rest."""
    turns, angle = _reduced(p, x)
    square = p.mul(angle, angle)
    return turns, p.mul(angle, p.polynomial(square, _SIN)), p.polynomial(square, _COS)


def _odd(p: Program, turns: Row) -> Result:
    """Return all ones where the number of quarter turns is odd."""
    return p.alu("isub", 0, p.alu("iand", turns, 1))


def _half_turn(p: Program, turns: Row) -> Result:
    """Return the sign bit where the second bit of the number of quarter turns is set."""
    return p.alu("ilsl", p.alu("iand", turns, 2), 30)


def _sine(p: Program, x: Row, ahead: int) -> Row:
    turns, sine, cosine = _both(p, x)
    turns = p.alu("iadd", turns, ahead) if ahead else turns
    found = p.select(_odd(p, turns), cosine, sine)
    return p.normal(p.alu("ixor", found, _half_turn(p, turns)))


def _sin(p: Program, call: Call) -> Row:
    return _sine(p, call.inputs[0], 0)


def _cos(p: Program, call: Call) -> Row:
    return _sine(p, call.inputs[0], 1)


def _tan(p: Program, call: Call) -> Row:
    """Return the tangent, or minus its reciprocal after an odd number of quarter turns."""
    turns, sine, cosine = _both(p, call.inputs[0])
    odd = _odd(p, turns)
    found = quotient(p, p.select(odd, cosine, sine), p.select(odd, sine, cosine))
    return p.normal(p.alu("ixor", found, p.alu("iand", odd, _SIGN)))


FUNCTIONS: tuple[Function, ...] = (
    Function("Sin", by_dtype(_sin, of_one(wide.sine)), UNARY, REALS, FUNCTION),
    Function("Cos", by_dtype(_cos, of_one(wide.cosine)), UNARY, REALS, FUNCTION),
    Function("Tan", by_dtype(_tan, of_one(wide.tangent)), UNARY, REALS, FUNCTION),
)
