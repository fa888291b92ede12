"""Compare two layouts of one tensor digit by digit, to find the data that a switch must move.

The *parts* of a layout are its subaxes, each with its weight in the index (``lo``). A *segment* is
a range of an axis between two weights at which both layouts cut the index. If the cuts inside such
a range divide each other, the range splits into digits: segments with one part on each side. If
they do not (3 x 2 against 2 x 3), the range stays one segment with several parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..machine import Target
from .dtypes import MNDtype
from .layout import UNIT_LEVELS, Broadcast, Layout, Level, SubAxis


class PrimeDigit(NamedTuple):
    """``size`` coordinates of a level that lie ``stride`` apart; ``size`` is a prime number."""

    stride: int
    size: int


class Part(NamedTuple):
    """``size`` values of the index digit with weight ``lo`` lie ``stride`` apart on ``level``.

    Parts sort by weight.
    """

    lo: int
    size: int
    level: Level
    stride: int

    def __lt__(self, other: tuple[object, ...]) -> bool:
        assert isinstance(other, Part)
        return (self.lo, self.size, self.stride) < (other.lo, other.size, other.stride)


class Segment(NamedTuple):
    """The digit ``index // lo % size`` of ``axis`` as two layouts divide it, minor parts first."""

    axis: int
    lo: int
    size: int
    source: tuple[Part, ...]
    result: tuple[Part, ...]


def parts(layout: Layout, shape: tuple[int, ...]) -> list[list[Part]]:
    """Return the parts of each axis, minor first; parts of size 1 are left out."""
    return [list(axis_parts) for axis_parts in _parts(layout, shape)]


@lru_cache(maxsize=4096)
def _parts(layout: Layout, shape: tuple[int, ...]) -> tuple[tuple[Part, ...], ...]:
    out: list[tuple[Part, ...]] = []
    for subs, size in zip(layout.axes, shape, strict=True):
        parts, lo = [], 1
        for sub in reversed(subs):
            used = min(sub.size, -(-size // lo))
            if used > 1:
                parts.append(Part(lo, used, sub.level, sub.stride))
            lo *= sub.size
        out.append(tuple(parts))
    return tuple(out)


def segments(source: Layout, result: Layout, shape: tuple[int, ...]) -> list[Segment]:
    """Return the segments of all axes; within an axis the minor segments come first."""
    out: list[Segment] = []
    pairs = zip(_parts(source, shape), _parts(result, shape), shape, strict=True)
    for axis, (ours, theirs, size) in enumerate(pairs):
        if size > 1:
            out += _axis_segments(axis, ours, theirs, size)
    return out


@lru_cache(maxsize=16384)
def _axis_segments(
    axis: int, ours: tuple[Part, ...], theirs: tuple[Part, ...], size: int
) -> tuple[Segment, ...]:
    common = sorted({1} | ({p.lo for p in ours} & {p.lo for p in theirs}))
    out: list[Segment] = []
    for low, high in pairwise([*common, size]):
        ends = _ends(ours, theirs, low, high, size)
        if ends is not None:
            out += [_segment(axis, a, b, ours, theirs) for a, b in pairwise(ends)]
            continue
        for start, stop in pairwise([*_shared_cuts(ours, theirs, low, high, size), high]):
            ends = _ends(ours, theirs, start, stop, size) or [start, stop]
            out += [_segment(axis, a, b, ours, theirs) for a, b in pairwise(ends)]
    return tuple(out)


def _ends(
    ours: Sequence[Part], theirs: Sequence[Part], low: int, high: int, size: int
) -> list[int] | None:
    """Return all weights of a range at which a part begins; None if they do not divide each other.

    The last range may end at the size of the axis, which need not be a multiple of a weight.
    """
    weights = {part.lo for part in (*ours, *theirs)}
    ends = [low, *sorted(weight for weight in weights if low < weight < high), high]
    inner = ends[:-1] if high == size and high not in weights else ends
    return ends if all(b % a == 0 for a, b in pairwise(inner)) else None


def _shared_cuts(
    ours: Sequence[Part], theirs: Sequence[Part], low: int, high: int, size: int
) -> list[int]:
    """Return ``low`` and weights above it at which the parts of both layouts can be cut.

    A part can be cut at every weight that divides it. The weights divide each other.
    """
    cuts = [low]
    for weight in sorted(_cuts_of(ours) & _cuts_of(theirs)):
        divides = high % weight == 0 or high == size
        if low < weight < high and weight % cuts[-1] == 0 and divides:
            cuts.append(weight)
    return cuts


def _cuts_of(parts: Sequence[Part]) -> set[int]:
    return {
        part.lo * factor
        for part in parts
        for factor in range(1, part.size)
        if part.size % factor == 0
    }


def _segment(
    axis: int, low: int, high: int, ours: Sequence[Part], theirs: Sequence[Part]
) -> Segment:
    return Segment(axis, low, -(-high // low), _within(ours, low, high), _within(theirs, low, high))


def _within(parts: Sequence[Part], low: int, high: int) -> tuple[Part, ...]:
    """Return the pieces of ``found`` between two weights; a part that sticks out is cut."""
    out: list[Part] = []
    for part in parts:
        start, stop = max(low, part.lo), min(high, part.lo * part.size)
        if start < stop:
            size = -(-stop // start)
            out.append(Part(start, size, part.level, part.stride * (start // part.lo)))
    return tuple(out)


def primes(count: int) -> list[PrimeDigit]:
    """Return the prime factors of ``count``; a stride is the product of the factors before it."""
    return list(_primes(count))


@lru_cache(maxsize=4096)
def _primes(count: int) -> tuple[PrimeDigit, ...]:
    out, stride, factor = list[PrimeDigit](), 1, 2
    while count > 1:
        while count % factor:
            factor += 1
        out.append(PrimeDigit(stride, factor))
        stride, count = stride * factor, count // factor
    return tuple(out)


def copied_digits(
    layout: Layout, level: Level, ranges: Mapping[Level, int]
) -> frozenset[PrimeDigit]:
    """Return the digits of ``level`` over which ``layout`` holds copies.

    If no digit of the layout uses level W, all words of a long word hold copies, even if the layout
    does not say so.
    """
    return _copied_digits(layout, level, ranges[level])


@lru_cache(maxsize=16384)
def _copied_digits(layout: Layout, level: Level, count: int) -> frozenset[PrimeDigit]:
    if level is Level.W:
        return frozenset() if layout.on(Level.W) else frozenset(primes(count))
    digits: set[PrimeDigit] = set()
    for entry in layout.copies(dict.fromkeys(Level, count)):
        if entry.level is level:
            digits |= {
                PrimeDigit(entry.stride * stride, size) for stride, size in primes(entry.size)
            }
    return frozenset(digits)


def agrees(
    layout: Layout, wanted: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> bool:
    """Whether ``layout`` stores each element and each copy where ``wanted`` does.

    ``layout`` may have more copies than ``wanted``.
    """
    ranges = all_ranges(target.level_range, dtype)
    return _runs(layout, shape) == _runs(wanted, shape) and all(
        copied_digits(wanted, level, ranges) <= copied_digits(layout, level, ranges)
        for level in (Level.W, *UNIT_LEVELS)
    )


@lru_cache(maxsize=4096)
def _runs(layout: Layout, shape: tuple[int, ...]) -> tuple[tuple[Part, ...], ...]:
    """Return the parts of each axis, minor first; parts that continue each other are one."""
    # The topmost part may be cut short by the size of the axis.
    return tuple(
        tuple(p._replace(size=min(p.size, -(-size // p.lo))) for p in joined_parts(sorted(parts)))
        for parts, size in zip(_parts(layout, shape), shape, strict=True)
    )


def joined_parts(parts: Iterable[Part]) -> list[Part]:
    """Return parts, minor first, with those joined that continue each other."""
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        if (
            last is not None
            and last.level is part.level
            and last.lo * last.size == part.lo
            and last.stride * last.size == part.stride
        ):
            out[-1] = last._replace(size=last.size * part.size)
        else:
            out.append(part)
    return out


def make_layout(
    rank: int,
    placed: Mapping[int, list[Part]],
    copies: Mapping[Level, frozenset[PrimeDigit]],
    ranges: Mapping[Level, int],
) -> Layout:
    """Return the layout with these parts per axis (in any order) and these copies.

    ValueError if the parts of an axis leave a weight out.
    """
    axes: list[tuple[SubAxis, ...]] = []
    for axis in range(rank):
        subs: list[SubAxis] = []
        weight = 1
        for part in sorted(placed.get(axis, [])):
            if part.lo != weight:
                raise ValueError(f"axis {axis} has no digit of weight {weight}")
            subs.append(SubAxis(part.size, part.level, part.stride))
            weight *= part.size
        axes.append(tuple(reversed(subs)))
    return Layout(tuple(axes), tuple(copy_entries(copies, ranges)))


def copy_entries(
    copies: Mapping[Level, Collection[PrimeDigit]], ranges: Mapping[Level, int]
) -> Iterator[Broadcast]:
    """Yield the entries of ``B@`` for copies on these digits of levels, inner levels first."""
    for level in (Level.W, *reversed(UNIT_LEVELS)):
        digits = sorted(copies.get(level, ()))
        if digits and len(digits) == len(primes(ranges[level])):
            yield Broadcast(level)
            continue
        for run in merged(SubAxis(d.size, level, d.stride) for d in digits):
            yield Broadcast(level, run.size, run.stride)


def merged(digits: Iterable[SubAxis]) -> list[SubAxis]:
    """Return the digits, minor to major, with neighbours that continue each other joined."""
    out: list[SubAxis] = []
    for digit in digits:
        last = out[-1] if out else None
        continues = last is not None and last.level is digit.level
        if last is not None and continues and last.stride * last.size == digit.stride:
            out[-1] = SubAxis(last.size * digit.size, last.level, last.stride)
        else:
            out.append(digit)
    return out


#: Levels by their names: an Enum takes longer to find them.
_LEVELS = {level.value: level for level in Level}


def all_ranges(level_range: Mapping[str, int], dtype: MNDtype) -> dict[Level, int]:
    """Return the number of coordinates of each unit level, and of level W for ``dtype``."""
    return {_LEVELS[n]: c for n, c in level_range.items()} | {Level.W: dtype.words_per_long}


@lru_cache(maxsize=64)
def machine_digits(target: Target, words: int) -> tuple[SubAxis, ...]:
    """Return all digits of the machine in the order of use: words, PEs, MABs, L1Bs, L2Bs."""
    counts = [(Level.W, words)]
    counts += [(lv, target.level_range[lv.value]) for lv in reversed(UNIT_LEVELS)]
    return tuple(
        SubAxis(digit.size, level, digit.stride)
        for level, count in counts
        for digit in primes(count)
    )
