"""Sine, cosine and tangent over the whole range of doubles.

The argument is multiplied by the part of 2/pi that its exponent leaves: bits before make whole
turns. The product is that of parts of 26 bits and the halves of the argument, so each is exact.
Sums keep what their rounding leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import factorial, pi

from .doubles import FIELD, SIGN, Doubles, quotient
from .program import Constant, Operand, Result, Row, double

#: The first 1216 bits of 2/pi.
_TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424D"
    "D2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639"
    "835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F46"
    "3F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)
_WORD, _WORDS = 64, 19
#: The words that a window is cut from: a shift of less than a word leaves one less.
_WINDOW = 4
#: The first exponent field whose arguments, times the bit before the window, are whole turns.
_FIRST = 1077
#: The bits of a part, the number of parts, and the bits of the lower half of an argument.
_PART, _PARTS, _LOWER = 26, 7, 27

# sin(t)/t and cos(t) as series in t^2, for t up to pi/4: 2^-56 and 2^-58.
_SIN = tuple((-1.0) ** k / factorial(2 * k + 1) for k in range(9))
_COS = tuple((-1.0) ** k / factorial(2 * k) for k in range(10))


def _unset(d: Doubles, value: Row, bit: int) -> Result:
    """Return all ones where a bit is 0."""
    return d.p.mask(d.flags("land", value, bit))


def _window(d: Doubles, offset: Row) -> list[Result]:
    """Return three words of 2/pi that begin ``offset`` bits behind its first one."""
    words: list[int] = [
        _TWO_OVER_PI >> _WORD * (_WORDS - 1 - place) & ((1 << _WORD) - 1) for place in range(_WORDS)
    ]
    step = 1 << (_WORDS - _WINDOW).bit_length() - 1
    count = _WINDOW + step - 1
    mask = _unset(d, offset, step * _WORD)
    rows: list[Result] = []
    for place in range(count):
        changed = d.alu("land", mask, words[place] ^ words[place + step])
        rows.append(d.alu("lxor", changed, words[place + step]))
    while step > 1:
        step //= 2
        count = _WINDOW + step - 1
        mask = _unset(d, offset, step * _WORD)
        rows = [d.p.select(mask, rows[place], rows[place + step]) for place in range(count)]
    shift = d.alu("land", offset, _WORD - 1)
    back = d.alu("lsub", _WORD - 1, shift)
    return [
        d.alu("lor", d.alu("llsl", one, shift), d.alu("ullsr", d.alu("ullsr", other, back), 1))
        for one, other in pairwise(rows)
    ]


def _parts(d: Doubles, words: Sequence[Result]) -> list[Result]:
    """Return the bits of words, behind the point, as doubles of 26 bits each."""
    found = []
    for number in range(_PARTS):
        place, start = divmod(number * _PART, _WORD)
        rest = _WORD - start - _PART
        if rest >= 0:
            bits = d.alu("ullsr", words[place], rest) if rest else words[place]
        else:
            other = d.alu("ullsr", words[place + 1], _WORD + rest)
            bits = d.alu("lor", d.alu("llsl", words[place], -rest), other)
        if start or rest < 0:
            bits = d.alu("land", bits, (1 << _PART) - 1)
        unit = 2.0 ** (FIELD - _PART * (number + 1))
        found.append(d.sub(d.alu("lor", bits, _bits(unit)), unit))
    return found


def _bits(value: float) -> int:
    constant: Constant = double(value)
    return constant.bits


def _two_sum(d: Doubles, a: Operand, b: Operand) -> tuple[Result, Result]:
    """Return a + b, and what its rounding leaves out."""
    total = d.add(a, b)
    other = d.sub(total, a)
    return total, d.add(d.sub(a, d.sub(total, other)), d.sub(b, other))


def _whole(d: Doubles, value: Operand) -> tuple[Result, Result]:
    """Return the nearest integer as 64 bits, and the number less it."""
    near = d.alu("dfloor", d.add(value, 0.5))
    return d.alu("dftoi", near), d.sub(value, near)


def _reduced(d: Doubles, magnitude: Row) -> tuple[Result, Result]:
    """Return the number of quarter turns, modulo 2^64, and the rest as an angle."""
    field = d.alu("llsr", magnitude, FIELD)
    offset = d.alu("lmax", d.alu("lsub", field, _FIRST), 0)
    parts = _parts(d, _window(d, offset))
    scaled = d.alu("lsub", magnitude, d.alu("llsl", offset, FIELD))
    upper = d.alu("land", scaled, -(1 << _LOWER))
    lower = d.sub(scaled, upper)
    turns: Result | None = None
    terms: list[Result] = []
    for half, part in ((upper, 0), (lower, 0), (upper, 1)):
        count, rest = _whole(d, d.mul(half, parts[part]))
        turns = count if turns is None else d.alu("ladd", turns, count)
        terms.append(rest)
    assert turns is not None
    terms += [d.mul(lower, parts[1]), d.mul(upper, parts[2])]
    errors: list[Result] = []
    total = terms[0]
    for term in terms[1:]:
        total, error = _two_sum(d, total, term)
        errors.append(error)
    count, total = _whole(d, total)
    turns = d.alu("ladd", turns, count)
    for half, part in ((lower, 2), (upper, 3), (lower, 3), (upper, 4)):
        total, error = _two_sum(d, total, d.mul(half, parts[part]))
        errors.append(error)
    low: Operand = d.mul(upper, parts[6])
    for half, part in ((lower, 5), (upper, 5), (lower, 4)):
        low = d.fma(half, parts[part], low)
    for error in reversed(errors):
        low = d.add(low, error)
    angle = d.mul(d.add(total, low), pi / 2)
    # Small arguments are their own rest.
    near = d.p.mask(d.flags("dmin", magnitude, pi / 4))
    return d.alu("land", turns, d.alu("lnot", near)), d.p.select(near, magnitude, angle)


def _both(d: Doubles, x: Row) -> tuple[Result, Result, Result]:
    """Return the quarter turns of |x|, and sine and cosine of the rest."""
    turns, angle = _reduced(d, d.magnitude(x))
    square = d.mul(angle, angle)
    sine = d.fma(d.mul(angle, square), d.polynomial(square, _SIN[1:]), angle)
    return turns, sine, d.fma(square, d.polynomial(square, _COS[1:]), 1.0)


def _odd(d: Doubles, turns: Row) -> Result:
    """Return all ones where the number of quarter turns is odd."""
    return d.alu("lsub", 0, d.alu("land", turns, 1))


def _half_turn(d: Doubles, turns: Row) -> Result:
    """Return the sign bit where the second bit of the number of quarter turns is set."""
    return d.alu("llsl", d.alu("land", turns, 2), 62)


def sine(d: Doubles, x: Row) -> Row:
    """Return sin(x)."""
    turns, near, far = _both(d, x)
    found = d.p.select(_odd(d, turns), far, near)
    sign = d.alu("lxor", _half_turn(d, turns), d.alu("land", x, SIGN))
    return d.normal(d.alu("lxor", found, sign))


def cosine(d: Doubles, x: Row) -> Row:
    """Return cos(x)."""
    turns, near, far = _both(d, x)
    turns = d.alu("ladd", turns, 1)
    found = d.p.select(_odd(d, turns), far, near)
    return d.normal(d.alu("lxor", found, _half_turn(d, turns)))


def tangent(d: Doubles, x: Row) -> Row:
    """Return the tangent, or minus its reciprocal after an odd number of quarter turns."""
    turns, near, far = _both(d, x)
    odd = _odd(d, turns)
    found = quotient(d, d.p.select(odd, far, near), d.p.select(odd, near, far))
    sign = d.alu("land", d.alu("lxor", odd, x), SIGN)
    return d.normal(d.alu("lxor", found, sign))
