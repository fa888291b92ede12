"""Layouts for values that have none yet, and layouts built from parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod

from ..errors import GraphError
from ..graph.digits import Part, PrimeDigit, all_ranges, copied_digits, make_layout, primes
from ..graph.dtypes import MNDtype
from ..graph.layout import UNIT_LEVELS, Layout, Level
from ..graph.verify import layout_ranges
from ..machine import Target


def fresh_layout(shape: tuple[int, ...], dtype: MNDtype, target: Target, times: int = 1) -> Layout:
    """Return a layout for a value that has none: one without padding if that is small enough.

    ``times`` is the number of such values that LM will hold.
    """
    whole = whole_layout(shape, dtype, target)
    if small([whole], target, times):
        return whole
    return whole_layout(shape, dtype, target, padded=True)


def small(layouts: Iterable[Layout], target: Target, times: int = 1) -> bool:
    """Whether ``times`` values of each layout take at most a quarter of an LM."""
    most = target.words("lm0") // 4
    return all(layout.num_lw(target.cycles) * times <= most for layout in layouts)


def most_words(layouts: Iterable[Layout], target: Target) -> int:
    """Return the long words of a PE that the largest layout takes."""
    return max(layout.num_lw(target.cycles) for layout in layouts)


def whole_layout(
    shape: tuple[int, ...],
    dtype: MNDtype,
    target: Target,
    *,
    padded: bool | Collection[int] = False,
    times: int = 1,
) -> Layout:
    """Return a layout that gives each digit of the machine to an axis that it divides.

    With ``padded``, a digit that divides no axis goes to the longest axis, or to the longest of the
    axes that ``padded`` names. Units that would leave less than a vector of a PE's ``times`` values
    stay free.
    """
    loose = padded if isinstance(padded, Collection) else range(len(shape) if padded else 0)
    return _whole_layout(shape, dtype, target, tuple(loose), times)


@lru_cache(maxsize=8192)
def _whole_layout(
    shape: tuple[int, ...], dtype: MNDtype, target: Target, loose: tuple[int, ...], times: int
) -> Layout:
    ranges = all_ranges(target.level_range, dtype)
    rest, placed = list(shape), {axis: list[Part]() for axis in range(len(shape))}
    copies: dict[Level, set[PrimeDigit]] = {}
    for level in (Level.W, *reversed(UNIT_LEVELS)):
        chosen: list[tuple[int, PrimeDigit]] = []
        for digit in primes(ranges[level]):
            enough = level is not Level.W and prod(rest) * times <= target.cycles
            axis = _axis_for(digit.size, rest, loose)
            if axis is None or enough:
                copies.setdefault(level, set()).add(digit)
                continue
            chosen.append((axis, digit))
            rest[axis] = -(-rest[axis] // digit.size)
        if level is Level.W and copies.get(level):
            # All words of a long word are packed, or none.
            rest = list(shape)
            copies[level] = set(primes(ranges[level]))
            continue
        for axis, (stride, size) in chosen:
            lo = prod(part.size for part in placed[axis])
            placed[axis].append(Part(lo, size, level, stride))
    stride = 1
    for axis in reversed(range(len(shape))):
        if rest[axis] > 1:
            lo = prod(part.size for part in placed[axis])
            placed[axis].append(Part(lo, rest[axis], Level.ADDR, stride))
            stride *= rest[axis]
    frozen = {level: frozenset(digits) for level, digits in copies.items()}
    return make_layout(len(shape), placed, frozen, ranges)


def _axis_for(size: int, rest: Sequence[int], loose: Sequence[int]) -> int | None:
    """Return the axis that takes a digit: the last one that it divides, or the longest to pad."""
    axis = next((a for a in reversed(range(len(rest))) if rest[a] % size == 0), None)
    if axis is None and loose and prod(rest[a] for a in loose) > 1:
        return max(loose, key=rest.__getitem__)
    return axis


def _copies(layout: Layout, dtype: MNDtype, target: Target) -> dict[Level, frozenset[PrimeDigit]]:
    ranges = all_ranges(target.level_range, dtype)
    return {lv: copied_digits(layout, lv, ranges) for lv in (Level.W, *UNIT_LEVELS)}


def built(
    shape: tuple[int, ...],
    placed: Mapping[int, list[Part]],
    like: Layout,
    dtype: MNDtype,
    target: Target,
) -> Layout | None:
    """Return the layout of these parts with the copies of ``like``; None if it is not legal.

    Digits that the parts use hold no copies.
    """
    given = tuple((axis, tuple(found)) for axis, found in placed.items())
    return _built(shape, given, like, dtype, target)


@lru_cache(maxsize=16384)
def _built(
    shape: tuple[int, ...],
    given: tuple[tuple[int, tuple[Part, ...]], ...],
    like: Layout,
    dtype: MNDtype,
    target: Target,
) -> Layout | None:
    placed = {axis: list(found) for axis, found in given}
    taken: dict[Level, set[PrimeDigit]] = {}
    for part in (part for found in placed.values() for part in found):
        own = {PrimeDigit(part.stride * stride, size) for stride, size in primes(part.size)}
        taken.setdefault(part.level, set()).update(own)
    copies = {
        level: digits - taken.get(level, set())
        for level, digits in _copies(like, dtype, target).items()
    }
    if not any(p.level is Level.W for found in placed.values() for p in found):
        copies[Level.W] = frozenset(primes(dtype.words_per_long))
    try:
        ranges = all_ranges(target.level_range, dtype)
        made = make_layout(len(shape), placed, copies, ranges)
        made.check(shape, dtype, layout_ranges(target), target.words("dram"))
    except (GraphError, ValueError):
        return None
    return made


def dense(placed: Mapping[int, list[Part]]) -> dict[int, list[Part]]:
    """Return the parts with dense strides in Addr, minor parts of the last axis first."""
    out: dict[int, list[Part]] = {}
    stride = 1
    for axis in sorted(placed, reverse=True):
        out[axis] = []
        for part in sorted(placed[axis]):
            if part.level is Level.ADDR:
                part = Part(part.lo, part.size, Level.ADDR, stride)
                stride *= part.size
            out[axis].append(part)
    return out


def closed(found: Sequence[Part], size: int) -> list[Part]:
    """Fill the gaps of parts that were taken out with parts in Addr."""
    out: list[Part] = []
    weight = 1
    for part in sorted(found):
        if part.lo != weight:
            out.append(Part(weight, part.lo // weight, Level.ADDR, 0))
        out.append(part)
        weight = part.lo * part.size
    if weight < size:
        out.append(Part(weight, -(-size // weight), Level.ADDR, 0))
    return out
