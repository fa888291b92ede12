"""What a change of layout brings into units, counted element by element."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from math import prod

import numpy as np

from ..graph.digits import PrimeDigit
from ..graph.layout import Layout, Level
from ..machine import IntArray

#: The most pairs of an element and a copy that are counted.
_MOST = 1 << 23

#: The digits of a level over which the source and the result have copies.
Copies = Mapping[Level, tuple[Collection[PrimeDigit], Collection[PrimeDigit]]]


def arrivals(
    source: Layout,
    result: Layout,
    shape: tuple[int, ...],
    copies: Copies,
    units: Mapping[Level, tuple[int, int]],
) -> tuple[int, int] | None:
    """Return the pairs of an element and a unit that lacks it, and the most of them in one unit.

    ``units`` has the number of units on each level, and how many coordinates are one unit. The
    copies of a level must lie on digits of their own. None if there are too many pairs.
    """
    wanted = [
        (level, digit)
        for level, (_, each) in units.items()
        for digit in sorted(copies[level][1])
        if digit.stride >= each
    ]
    if prod(shape) * prod(digit.size for _, digit in wanted) > _MOST:
        return None
    index = np.meshgrid(*map(np.arange, shape), indexing="ij", sparse=True)
    ours, theirs = (
        {level: np.broadcast_to(found.get(level, np.int64(0)), shape).ravel() for level in units}
        for found in (source.coordinates(*index), result.coordinates(*index))
    )
    counts = np.zeros(prod(count for count, _ in units.values()), dtype=np.int64)
    for digits in product(*(range(digit.size) for _, digit in wanted)):
        more = dict.fromkeys(units, 0)
        for (level, digit), number in zip(wanted, digits, strict=True):
            more[level] += number * digit.stride
        unit: IntArray = np.zeros(prod(shape), dtype=np.int64)
        absent = np.zeros(prod(shape), dtype=bool)
        for level, (count, each) in units.items():
            place = theirs[level] + more[level]
            absent |= _without(place, copies[level][0]) // each != ours[level] // each
            unit = unit * count + place // each
        counts += np.bincount(unit[absent], minlength=counts.size)
    return int(counts.sum()), int(counts.max(initial=0))


def _without(place: IntArray, digits: Collection[PrimeDigit]) -> IntArray:
    """Return coordinates with 0 on some digits."""
    for digit in digits:
        place = place - place // digit.stride % digit.size * digit.stride
    return place
