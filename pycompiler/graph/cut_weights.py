"""The weights of the flat index at which axes begin, and those that suit two shapes.

A digit of a layout ends where an axis of either shape begins, or at a weight that goes together
with all such weights. Between two of these *common* weights, the shapes may still cut the index at
weights that do not divide each other (3 x 2 against 2 x 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, lcm, prod


def bounds(shape: Sequence[int]) -> set[int]:
    """Return the weights in the flat index at which the axes of a shape begin."""
    return {prod(shape[axis + 1 :]) for axis in range(len(shape))}


def between(cuts: set[int], low: int, high: int) -> set[int]:
    """Return the weights in ``cuts`` between ``low`` and ``high``."""
    return {c for c in cuts if low < c < high}


def common_weights(ours: set[int], theirs: set[int], total: int) -> list[int]:
    """Return the weights at which the index can be split in both shapes."""
    both = sorted({1} | (ours & theirs))
    more = set(both)
    for low, high in pairwise([*both, total]):
        cuts = sorted(between(ours | theirs, low, high)) + ([] if high == total else [high])
        for index in range(len(cuts)):
            for weight in (gcd(*cuts[index:]), lcm(*cuts[: index + 1])):
                inside = low < weight < high
                if inside and all(c % weight == 0 or weight % c == 0 for c in (low, *cuts)):
                    more.add(weight)
    return sorted(c for c in more if c < total)


def is_chain(low: int, high: int, cuts: set[int]) -> bool:
    """Whether each weight of ``cuts`` from ``low`` to ``high`` divides the next one."""
    return all(b % a == 0 for a, b in pairwise(sorted({low, high} | between(cuts, low, high))))


def ranges(shape: Sequence[int], result: Sequence[int]) -> list[tuple[int, int, bool]]:
    """Return the ranges between common weights, minor first, and whether each is a chain.

    Digits of a chain may lie on units. Anything else must be one run in Addr.
    """
    total = prod(shape)
    cuts = bounds(shape) | bounds(result)
    marks = [*common_weights(bounds(shape), bounds(result), total), total]
    return [(low, high, is_chain(low, high, cuts)) for low, high in pairwise(marks)]
