"""Sine, cosine and tangent over the whole range; how doubles are reduced, see `wide_trigonometry`.

The argument is reduced to n quarter turns and a rest of at most half a quarter. For that it is
multiplied by 2/pi in five parts of 24 bits, as doubles: the products of the first three are exact.
A large argument is an integer times a power of two. The multiples of 4 that this power has in 2/pi
are whole turns, so they are left out: each range of arguments has its own parts.
"""

from __future__ import annotations

from dataclasses import replace
from math import factorial, pi

from ...machine import WORDS_PER_LONG
from ...tolerance import FUNCTION
from . import wide_trigonometry as wide
from .elementwise_function import REALS, UNARY, Function
from .program import Operand, Program, Result, Row, Source, single
from .reals import Reals, of_reals
from .roots import quotient

_FIELD = 23
#: The first 224 bits of 2/pi.
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB
_BITS = 224

#: Arguments below 2^28 are as they are. Those of each range of 25 exponents above are divided by a
#: power of two, which makes them integers below 2^48.
_FIRST, _STEP, _RANGES = 28, 25, 5
_PARTS, _PART_BITS = 5, 24
_UPPER, _LOWER = 0xFFFFFFFF00000000, 0xFFFFFFFF

# sin(t)/t and cos(t) in t^2, for t up to pi/4: minimax, 2^-28.3 and 2^-34.3; series, 2^-56 and
# 2^-58.
_SIN = (
    (0.9999999969, -0.1666665063, 0.008332033202, -0.0001950356948),
    tuple((-1.0) ** k / factorial(2 * k + 1) for k in range(9)),
)
_COS = (
    (1.0, -0.4999999961, 0.04166661654, -0.001388661348, 2.43794127e-5),
    tuple((-1.0) ** k / factorial(2 * k) for k in range(10)),
)


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


def _reduced(r: Reals, x: Row) -> tuple[Result, Result]:
    """Return the number of quarter turns, modulo 2^32, and the rest as an angle."""
    magnitude = r.magnitude(x)
    shown, before = x, _parts(0)
    rows: list[Operand] = list(before)
    for number in range(1, _RANGES):
        edge = _FIRST + _STEP * (number - 1)
        above = r.bits("sub", magnitude, (r.BIAS + edge) << _FIELD).flags
        smaller = (_power(number) - _power(number - 1)) << _FIELD
        shown = r.bits("sub", shown, r.keep(above, smaller))
        now = _parts(number)
        changes = (one ^ other for one, other in zip(before, now, strict=True))
        rows = [
            r.bits("xor", row, r.keep(above, change))
            for row, change in zip(rows, changes, strict=True)
        ]
        before = now
    (turns, angle), (more_turns, more_angle) = (
        _reduced_word(r.p, shown, rows, word) for word in range(WORDS_PER_LONG)
    )
    return r.alu("lor", turns, more_turns), r.alu("lor", angle, more_angle)


def _reduced_word(p: Program, x: Row, parts: list[Operand], word: int) -> tuple[Result, Result]:
    """Return turns and angle of one word of each long word; the other word is 0."""
    d = Reals(p, wide=True)

    def wide(operand: Operand) -> Source:
        return replace(Program.row(operand), extend=True, word=word)

    own = wide(x)
    first, second, third, *small = (wide(part) for part in parts)
    total: Result | None = None
    turns: Result | None = None
    for part in (first, second):
        product = d.mul(own, part)
        whole = d.real("floor", d.add(product, 0.5))
        rest = d.sub(product, whole)
        total = rest if total is None else d.add(total, rest)
        turns = whole if turns is None else d.add(turns, whole)
    assert total is not None
    assert turns is not None
    product = d.mul(own, third)
    whole = d.real("floor", d.add(d.add(total, product), 0.5))
    total = d.add(d.sub(total, whole), product)
    for part in small:
        total = d.fma(own, part, total)
    angle = p.op("mau", "dvpassar", d.mul(total, pi / 2), first_word=True)
    counted = d.real("ftoi", d.add(turns, whole))
    if word:
        return d.bits("and", counted, _LOWER), d.alu("ullsr", angle, 32)
    return d.bits("lsl", counted, 32), d.bits("and", angle, _UPPER)


def _both(r: Reals, x: Row) -> tuple[Result, Result, Result]:
    """Return the quarter turns, and sine and cosine of the rest; of doubles those of |x|."""
    turns, angle = wide.reduced(r, r.magnitude(x)) if r.wide else _reduced(r, x)
    square = r.mul(angle, angle)
    sin, cos = r.own(_SIN), r.own(_COS)
    if r.wide:
        sine = r.fma(r.mul(angle, square), r.polynomial(square, sin[1:]), angle)
        return turns, sine, r.fma(square, r.polynomial(square, cos[1:]), 1.0)
    return turns, r.mul(angle, r.polynomial(square, sin)), r.polynomial(square, cos)


def _odd(r: Reals, turns: Row) -> Result:
    """Return all ones where the number of quarter turns is odd."""
    return r.bits("sub", 0, r.bits("and", turns, 1))


def _half_turn(r: Reals, turns: Row) -> Result:
    """Return the sign bit where the second bit of the number of quarter turns is set."""
    return r.bits("lsl", r.bits("and", turns, 2), r.WIDTH - 2)


def _sin(r: Reals, x: Row) -> Row:
    turns, sine, cosine = _both(r, x)
    found = r.select(_odd(r, turns), cosine, sine)
    sign = _half_turn(r, turns)
    if r.wide:
        sign = r.bits("xor", sign, r.bits("and", x, r.SIGN))
    return r.normal(r.bits("xor", found, sign))


def _cos(r: Reals, x: Row) -> Row:
    turns, sine, cosine = _both(r, x)
    turns = r.bits("add", turns, 1)
    found = r.select(_odd(r, turns), cosine, sine)
    return r.normal(r.bits("xor", found, _half_turn(r, turns)))


def _tan(r: Reals, x: Row) -> Row:
    """Return the tangent, or minus its reciprocal after an odd number of quarter turns."""
    turns, sine, cosine = _both(r, x)
    odd = _odd(r, turns)
    found = quotient(r, r.select(odd, cosine, sine), r.select(odd, sine, cosine))
    sign = r.bits("xor", odd, x) if r.wide else odd
    return r.normal(r.bits("xor", found, r.bits("and", sign, r.SIGN)))


FUNCTIONS: tuple[Function, ...] = (
    Function("Sin", of_reals(_sin), UNARY, REALS, FUNCTION),
    Function("Cos", of_reals(_cos), UNARY, REALS, FUNCTION),
    Function("Tan", of_reals(_tan), UNARY, REALS, FUNCTION),
)
