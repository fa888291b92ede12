"""Sine, cosine and tangent over the whole range of doubles.

The argument is multiplied by the part of 2/pi that its exponent leaves: bits before make whole
turns. The product is that of parts of 26 bits and the halves of the argument, so each is exact.
Sums keep what their rounding leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import pi

from .program import Operand, Result, Row
from .reals import Reals

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


def _unset(r: Reals, value: Row, bit: int) -> Result:
    """Return all ones where a bit is 0."""
    return r.mask(r.bits("and", value, bit).flags)


def _window(r: Reals, offset: Row) -> list[Result]:
    """Return three words of 2/pi that begin ``offset`` bits behind its first one."""
    words: list[int] = [
        _TWO_OVER_PI >> _WORD * (_WORDS - 1 - place) & ((1 << _WORD) - 1) for place in range(_WORDS)
    ]
    step = 1 << (_WORDS - _WINDOW).bit_length() - 1
    count = _WINDOW + step - 1
    mask = _unset(r, offset, step * _WORD)
    rows: list[Result] = []
    for place in range(count):
        changed = r.bits("and", mask, words[place] ^ words[place + step])
        rows.append(r.bits("xor", changed, words[place + step]))
    while step > 1:
        step //= 2
        count = _WINDOW + step - 1
        mask = _unset(r, offset, step * _WORD)
        rows = [r.select(mask, rows[place], rows[place + step]) for place in range(count)]
    shift = r.bits("and", offset, _WORD - 1)
    back = r.bits("sub", _WORD - 1, shift)
    return [
        r.bits("or", r.bits("lsl", one, shift), r.alu("ullsr", r.alu("ullsr", other, back), 1))
        for one, other in pairwise(rows)
    ]


def _parts(r: Reals, words: Sequence[Result]) -> list[Result]:
    """Return the bits of words, behind the point, as doubles of 26 bits each."""
    found = []
    for number in range(_PARTS):
        place, start = divmod(number * _PART, _WORD)
        rest = _WORD - start - _PART
        if rest >= 0:
            bits = r.alu("ullsr", words[place], rest) if rest else words[place]
        else:
            other = r.alu("ullsr", words[place + 1], _WORD + rest)
            bits = r.bits("or", r.bits("lsl", words[place], -rest), other)
        if start or rest < 0:
            bits = r.bits("and", bits, (1 << _PART) - 1)
        unit = 2.0 ** (r.FIELD - _PART * (number + 1))
        found.append(r.sub(r.bits("or", bits, unit), unit))
    return found


def _two_sum(r: Reals, a: Operand, b: Operand) -> tuple[Result, Result]:
    """Return a + b, and what its rounding leaves out."""
    total = r.add(a, b)
    other = r.sub(total, a)
    return total, r.add(r.sub(a, r.sub(total, other)), r.sub(b, other))


def _whole(r: Reals, value: Operand) -> tuple[Result, Result]:
    """Return the nearest integer as 64 bits, and the number less it."""
    near = r.real("floor", r.add(value, 0.5))
    return r.real("ftoi", near), r.sub(value, near)


def reduced(r: Reals, magnitude: Row) -> tuple[Result, Result]:
    """Return the number of quarter turns, modulo 2^64, and the rest as an angle."""
    field = r.bits("lsr", magnitude, r.FIELD)
    offset = r.bits("max", r.bits("sub", field, _FIRST), 0)
    parts = _parts(r, _window(r, offset))
    scaled = r.bits("sub", magnitude, r.bits("lsl", offset, r.FIELD))
    upper = r.bits("and", scaled, -(1 << _LOWER))
    lower = r.sub(scaled, upper)
    turns: Result | None = None
    terms: list[Result] = []
    for half, part in ((upper, 0), (lower, 0), (upper, 1)):
        count, rest = _whole(r, r.mul(half, parts[part]))
        turns = count if turns is None else r.bits("add", turns, count)
        terms.append(rest)
    assert turns is not None
    terms += [r.mul(lower, parts[1]), r.mul(upper, parts[2])]
    errors: list[Result] = []
    total = terms[0]
    for term in terms[1:]:
        total, error = _two_sum(r, total, term)
        errors.append(error)
    count, total = _whole(r, total)
    turns = r.bits("add", turns, count)
    for half, part in ((lower, 2), (upper, 3), (lower, 3), (upper, 4)):
        total, error = _two_sum(r, total, r.mul(half, parts[part]))
        errors.append(error)
    low: Operand = r.mul(upper, parts[6])
    for half, part in ((lower, 5), (upper, 5), (lower, 4)):
        low = r.fma(half, parts[part], low)
    for error in reversed(errors):
        low = r.add(low, error)
    angle = r.mul(r.add(total, low), pi / 2)
    # Small arguments are their own rest.
    near = r.up_to(magnitude, pi / 4)
    return r.bits("and", turns, r.alu("lnot", near)), r.select(near, magnitude, angle)
