"""The fewest words that a change of layout must bring into the units of each level.

Both layouts put digits of the index on digits of the machine. An element stays in its unit if these
are equal on all levels down to that of the unit. Each digit of the machine on which the layouts
differ is an equation between two digits of the index: a row of a matrix over the field of as many
elements as the digit has values. Elements that stay are its kernel, so the rank says how many must
move. A row has two entries at most, so the rank is that of a graph. Copies in the result are one
more digit each; where the source has copies, any of them will do.

Digits of the index that the two layouts cut at different places have no common form. Their
equations are left out, and so the rank is too small. Then elements are counted one by one, if there
are not too many; else the bound is smaller than it could be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod

from ..cost.moves import dram_rate
from ..graph.digits import PrimeDigit, Segment, all_ranges, copied_digits, primes, segments
from ..graph.dtypes import MNDtype
from ..graph.layout import UNIT_LEVELS, Layout, Level
from ..machine import LONGS_PER_WIDE, Target
from .arrivals import arrivals

#: The units of the machine, from the outermost.
GROUP = "group"
UNITS = (GROUP, *(level.value for level in UNIT_LEVELS))

#: A digit of the index, or of the copies; None is one without a common form.
_Name = tuple[object, ...] | None
#: What an index that is 0 everywhere has on a digit.
_ZERO = ("zero",)


@dataclass(frozen=True)
class Crossing:
    """What must come into the units of a level.

    ``rank`` has the rank of the equations by the size of the digits. ``elements`` are pairs of an
    element and a unit that lacks it; one of the units gets ``most`` of them.
    """

    rank: Mapping[int, int]
    elements: int
    most: Fraction


def crossings(
    source: Layout, result: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> dict[str, Crossing]:
    """Return what a change of layout must bring into the units of each level at least."""
    change = _Change(source, result, shape, dtype, target)
    return {unit: change.crossing(unit) for unit in UNITS}


def least_steps(found: Mapping[str, Crossing], dtype: MNDtype, target: Target) -> int:
    """Return the steps that a change of layout takes at least, by the level that needs most.

    A PE takes an access of the widest kind in each cycle, and an L1B a row of L2BM. An L2BM takes
    what a DRAM or a PDM gives.
    """
    counts, near = target.counts, dram_rate(target)
    pe = LONGS_PER_WIDE
    mab = pe * counts["pe"]
    l1b = min(mab * counts["mab"], target.l2bm_row)
    rates = {"PE": pe, "MAB": mab, "L1B": l1b, "L2B": near, GROUP: near * counts["l2b"]}
    cycles = (own.most / (dtype.words_per_long * rates[unit]) for unit, own in found.items())
    return ceil(max(cycles) / target.cycles)


class _Change:
    """A change of layout: the digits of the machine on each level, and what lies on them."""

    def __init__(
        self,
        source: Layout,
        result: Layout,
        shape: tuple[int, ...],
        dtype: MNDtype,
        target: Target,
    ):
        self._given = source, result, shape
        self._segments = segments(source, result, shape)
        self._elements = prod(shape)
        self._padded = prod(segment.size for segment in self._segments)
        self._l2bs = target.l2bs_per_group
        ranges = all_ranges(target.level_range, dtype)
        self._ranges = ranges
        self._copies = {
            level: (copied_digits(source, level, ranges), copied_digits(result, level, ranges))
            for level in UNIT_LEVELS
        }

    def crossing(self, unit: str) -> Crossing:
        """Return what must come into the units of a level."""
        least = self._l2bs if unit == GROUP else 1
        graph, copies, units = _Graph(), 1, 1
        whole, plain = self._padded == self._elements, True
        each: dict[Level, tuple[int, int]] = {}
        for level in UNIT_LEVELS[: max(UNITS.index(unit), 1)]:
            had, wanted = self._copies[level]
            ours, theirs = (_digits(self._segments, level, after=side) for side in (False, True))
            every = {*ours, *theirs, *had, *wanted}
            for digit in every - had:
                here = ("copy", level, digit) if digit in wanted else theirs.get(digit, _ZERO)
                apart = all(_apart(digit, other) for other in every)
                if digit.stride % least == 0 and apart:
                    whole &= graph.join(ours.get(digit, _ZERO), here, digit.size)
                whole &= apart
            plain &= all(_apart(digit, other) for digit in had for other in {*ours, *had})
            plain &= all(d.stride >= least or d.stride * d.size <= least for d in wanted)
            each[level] = self._ranges[level] // least, least
            new = prod(digit.size for digit in wanted if digit.stride % least == 0)
            copies *= new
            reach = prod(digit.size for digit in {*theirs, *wanted})
            units *= min(reach, self._ranges[level] // least)
        rank = Counter(graph.joined)
        stay = Fraction(self._padded * copies, prod(size**times for size, times in rank.items()))
        found = None if whole or not plain else arrivals(*self._given, self._copies, each)
        if found is not None:
            return Crossing(rank, found[0], Fraction(found[1]))
        elements = max(0, self._elements * copies - int(stay))
        return Crossing(rank, elements, Fraction(elements, units))


def _digits(found: Sequence[Segment], level: Level, *, after: bool) -> dict[PrimeDigit, _Name]:
    """Return the digits of a level with what a layout puts on them: the source, or the result."""
    out: dict[PrimeDigit, _Name] = {}
    for segment in found:
        plain = len(segment.source) == len(segment.result) == 1
        for part in segment.result if after else segment.source:
            if part.level is level:
                for stride, size in primes(part.size):
                    name = (segment.axis, segment.lo, stride) if plain else None
                    out[PrimeDigit(part.stride * stride, size)] = name
    return out


def _apart(digit: PrimeDigit, other: PrimeDigit) -> bool:
    """Whether ``digit`` can be told from a coordinate to which ``other`` adds something."""
    above = other.stride % (digit.stride * digit.size) == 0
    return other == digit or above or other.stride * other.size <= digit.stride


class _Graph:
    """Digits of the index that are equal; ``joined`` has the size of each equation that counts."""

    def __init__(self) -> None:
        self.joined: list[int] = []
        self._next: dict[tuple[object, ...], tuple[object, ...]] = {}

    def join(self, one: _Name, other: _Name, size: int) -> bool:
        """Add an equation between two digits of ``size`` values; False if one has no name."""
        if one is None or other is None:
            return False
        ends = [self._end((size, *name)) for name in (one, other)]
        if ends[0] != ends[1]:
            self._next[ends[0]] = ends[1]
            self.joined.append(size)
        return True

    def _end(self, name: tuple[object, ...]) -> tuple[object, ...]:
        while name in self._next:
            name = self._next[name]
        return name
