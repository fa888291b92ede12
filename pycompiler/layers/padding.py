"""Padding of an axis: words whose index lies past its end are set to a harmless value.

The index of an element is ``units + address + word``. The part ``units`` is the same for all long
words of a PE; it is computed once from the numbers of the PE's units. A word is padding in a PE if
``units`` is at least the size of the axis less ``address + word``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..code.lines import Forward, Line, Literal, PeOperand, Special, alu_step, mask_register
from ..code.nest import Nest, Repeat
from ..graph.digits import Part, parts
from ..graph.graph import MNValue
from ..graph.layout import Level
from ..machine import WORDS_PER_LONG, Target
from .switch.unit_masks import NUMBERS

_REGISTER = 1  # mask register
_BITS = 32  # of a word


def fill_padding(value: MNValue, axes: Sequence[int], bits: int, target: Target) -> Nest:
    """Write ``bits``, a long word, over the words of ``value`` that are padding on ``axes``.

    Uses the second register file. Words that the layout does not use at all stay as they are.
    """
    assert value.layout is not None
    # The padded shape: digits that no index of the axis reaches are padding too.
    found = parts(value.layout, value.layout.padded_shape)
    constant = False
    for axis in axes:
        padded = _padded(found, axis, value.shape[axis])
        if not padded:
            continue
        if not constant:
            halves = [bits >> _BITS, bits & (1 << _BITS) - 1]
            goals = [_word(_FILL, word, target) for word in range(WORDS_PER_LONG)]
            if len(set(halves)) == 1:
                halves, goals = halves[:1], [_long(_FILL, target)]
            for part, goal in zip(halves, goals, strict=True):
                yield alu_step("imm", (Literal(part),), goal)
            constant = True
        units = [p for p in found[axis] if p.level in NUMBERS]
        yield from _unit_index(units, target)
        for left, words in sorted(padded.items()):
            mask = None
            if left > 0:
                yield alu_step("imm", (Literal(left),), Special("nowrite"))
                # The flag says that the difference is not negative.
                yield alu_step(
                    "isub",
                    (_long(_INDEX, target), Forward("alu")),
                    mask_register(_REGISTER, target),
                )
                mask = mask_register(_REGISTER, target)
            yield Repeat(len(words), partial(_fill, value, words, mask, target))


def _fill(
    value: MNValue,
    words: Sequence[tuple[int, int]],
    mask: PeOperand | None,
    target: Target,
    at: int,
) -> Iterator[Line]:
    address, word = words[at]
    long = (address,) * target.cycles
    there = PeOperand(value.location.memory, long, value.name, word=word, mask=mask)
    yield alu_step("ipassa", (_word(_FILL, word, target),), there)


def no_bits(value: MNValue, axes: Sequence[int]) -> bool:
    """Whether padding on ``axes`` depends on a digit of units that is no run of bits.

    Such a digit would have to be divided out of the number of the unit.
    """
    assert value.layout is not None
    found = parts(value.layout, value.layout.padded_shape)
    return any(
        any(p.stride & (p.stride - 1) for p in found[axis] if p.level in NUMBERS)
        and value.shape[axis] <= sum((p.size - 1) * p.lo for p in found[axis] if p.level in _OWN)
        for axis in axes
    )


_FILL, _INDEX, _PART = 0, 1, 2  # long words of the register file; a step can read one of them


#: More than the words of a long word have numbers.
_KEY = 1 << 8
#: The levels whose digits decide where an element of an axis is on the device.
_OWN = {*NUMBERS, Level.ADDR, Level.W}


def _padded(
    found: Sequence[Sequence[Part]], axis: int, size: int
) -> dict[int, list[tuple[int, int]]]:
    """Return the words that may be padding, sorted, by the lowest ``units`` at which they are."""
    own = found[axis]
    most = sum((p.size - 1) * p.lo for p in own if p.level in NUMBERS)
    local = [p for p in own if p.level in (Level.ADDR, Level.W)]
    index, at, word = (np.zeros(1, dtype=np.int64) for _ in range(3))
    for part in local:
        index = _added(index, part.size, part.lo)
        at = _added(at, part.size, part.stride if part.level is Level.ADDR else 0)
        word = _added(word, part.size, part.stride if part.level is Level.W else 0)
    outside = size - index <= most
    if not outside.any():
        return {}
    others, other_words = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for number, rest in enumerate(found):
        for part in rest if number != axis else ():
            others = _added(others, part.size, part.stride if part.level is Level.ADDR else 0)
            other_words = _added(
                other_words, part.size, part.stride if part.level is Level.W else 0
            )
    packed = any(p.level is Level.W for rest in found for p in rest)
    left = np.maximum(size - index, 0)
    out: dict[int, list[tuple[int, int]]] = {}
    for units in np.unique(left[outside]).tolist():
        chosen = outside & (left == units)
        addresses = (at[chosen][:, None] + others).reshape(-1)
        words = (word[chosen][:, None] + other_words).reshape(-1)
        # Not packed, an element takes the whole long word.
        also = [] if packed else [(addresses, words + 1)]
        # One number for both is sorted far faster than rows of two.
        codes = [here * _KEY + which for here, which in ((addresses, words), *also)]
        here, which = np.divmod(np.unique(np.concatenate(codes)), _KEY)
        out[units] = list(zip(here.tolist(), which.tolist(), strict=True))
    return out


def _added(places: NDArray[np.int64], size: int, stride: int) -> NDArray[np.int64]:
    """Add the places of a digit of ``size`` values, ``stride`` apart, to all of ``places``."""
    return (places[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)


def _unit_index(units: Sequence[Part], target: Target) -> Iterator[Line]:
    """Compute the part of the index that comes from the numbers of the units."""
    total, part = _long(_INDEX, target), _long(_PART, target)
    forward = Forward("alu")
    yield alu_step("imm", (Literal(0),), total)
    for unit in units:
        # The number of a unit is taken apart bit by bit (see `no_bits`). The size counts only the
        # values in use; the units may have all values of a digit.
        for stride in (1 << bit for bit in range((unit.size - 1).bit_length())):
            yield alu_step("imm", (Literal((unit.stride * stride).bit_length() - 1),), part)
            yield alu_step("ilsr", (Special(NUMBERS[unit.level]), part), part)
            yield alu_step("imm", (Literal(1),), Special("nowrite"))
            yield alu_step("iand", (forward, part), part)
            # 0 - bit is all ones where the digit is 1.
            yield alu_step("imm", (Literal(0),), Special("nowrite"))
            yield alu_step("isub", (forward, part), part)
            yield alu_step("imm", (Literal(unit.lo * stride),), Special("nowrite"))
            yield alu_step("iand", (forward, part), Special("nowrite"))
            yield alu_step("iadd", (forward, total), total)


def _word(at: int, word: int, target: Target) -> PeOperand:
    return PeOperand("grf1", (at,) * target.cycles, word=word)


def _long(at: int, target: Target) -> PeOperand:
    return PeOperand("grf1", (at,) * target.cycles)
