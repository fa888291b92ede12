"""Layouts near the one that a reader wants, which the values above it may have instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...errors import GraphError
from ...graph.digits import Part, PrimeDigit, all_ranges, copied_digits, make_layout, parts, primes
from ...graph.graph import MNValue
from ...graph.layout import Layout, Level
from ...graph.verify import layout_ranges
from ...machine import Target

#: The levels of units that one pass reaches without leaving an L1B, innermost first.
NEAR = (Level.PE, Level.MAB)


def unfolded(
    layout: Layout, value: MNValue, target: Target, level: Level = Level.MAB
) -> Iterator[Layout]:
    """Yield layouts that hold parts of an axis in the units where ``layout`` holds copies.

    The parts come from Addr. Each layout does this for one axis; the last axis comes first. One
    pass over the level turns such a layout into ``layout``.
    """
    ranges = all_ranges(target.level_range, value.dtype)
    free = sorted(copied_digits(layout, level, ranges))
    copies = {lv: copied_digits(layout, lv, ranges) for lv in ranges}
    for axis, found in reversed(list(enumerate(parts(layout, value.shape)))):
        out, left = _moved(found, level, free)
        if len(left) < len(free):
            placed = {**dict(enumerate(parts(layout, value.shape))), axis: out}
            kept = {**copies, level: frozenset(left)}
            yield from _made(placed, kept, value, ranges, target)


def packed(layout: Layout, value: MNValue, target: Target) -> Iterator[Layout]:
    """Yield layouts that hold parts of an axis in the PEs or MABs where ``layout`` holds nothing.

    Three channels in the words of 16 fill one PE of four; the other three have padding only, which
    DRAM sends too. The parts come from Addr. Each layout does this for one axis and one level; the
    last axis comes first. One pass over the level turns such a layout into ``layout``.
    """
    ranges = all_ranges(target.level_range, value.dtype)
    copies = {lv: copied_digits(layout, lv, ranges) for lv in ranges}
    for level in NEAR:
        free = _idle(layout, value, level, ranges)
        for axis, found in reversed(list(enumerate(parts(layout, value.shape)))):
            out, left = _moved(found, level, free)
            if len(left) < len(free):
                placed = {**dict(enumerate(parts(layout, value.shape))), axis: out}
                yield from _made(placed, copies, value, ranges, target)


def _idle(
    layout: Layout, value: MNValue, level: Level, ranges: Mapping[Level, int]
) -> list[PrimeDigit]:
    """Return the digits of a level that select neither parts of the value nor copies."""
    copied = copied_digits(layout, level, ranges)
    used = [part for found in parts(layout, value.shape) for part in found if part.level is level]
    return [
        digit
        for digit in primes(ranges[level])
        if digit not in copied
        and all(
            digit.stride * digit.size <= part.stride or part.stride * part.size <= digit.stride
            for part in used
        )
    ]


def _moved(
    found: Sequence[Part], level: Level, free: Sequence[PrimeDigit]
) -> tuple[list[Part], list[PrimeDigit]]:
    """Return the parts of an axis with parts of Addr on free digits of ``level``; what is left."""
    out: list[Part] = []
    left = list(free)
    for part in sorted(found):
        if part.level is not Level.ADDR:
            out.append(part)
            continue
        lo, size = part.lo, part.size
        while left and size % left[0].size == 0 and size > 1:
            stride, digit = left.pop(0)
            out.append(Part(lo, digit, level, stride))
            lo, size = lo * digit, size // digit
        if size > 1:
            out.append(Part(lo, size, Level.ADDR, 1))
    return out, left


def _made(
    placed: dict[int, list[Part]],
    copies: Mapping[Level, frozenset[PrimeDigit]],
    value: MNValue,
    ranges: Mapping[Level, int],
    target: Target,
) -> Iterator[Layout]:
    """Yield the layout of these parts, with Addr filled without gaps, if it is possible."""
    stride = 1
    for number in reversed(range(len(value.shape))):
        dense = []
        for part in sorted(placed[number]):
            if part.level is Level.ADDR:
                part = Part(part.lo, part.size, Level.ADDR, stride)
                stride *= part.size
            dense.append(part)
        placed[number] = dense
    try:
        made = make_layout(len(value.shape), placed, copies, ranges)
        made.check(value.shape, value.dtype, layout_ranges(target), target.words("lm0"))
    except (GraphError, ValueError):
        return
    yield made
