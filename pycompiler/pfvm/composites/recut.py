"""Reshapes that leave one PE too much: they cut an index and join it again, step by step.

A Reshape of 6 x 12 x 35 to 6 x 35 x 12 cuts the range of 420 elements at weights that do not divide
each other, so a PE must hold this range as one run. All other ranges of the index may lie on units.
Factors of the range may change their places one after the other: from 12 x 35 over 4 x 35 x 3 to
35 x 12. Then a PE holds a run of 3 x 35 and one of 4 x 35.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd, prod

from ...graph.cut_weights import between, bounds, ranges
from ...graph.digits import primes
from . import in_dram
from .writer import Writer

#: A factor of a range, and its place in the result.
_Factor = tuple[tuple[int, ...], int]


def reshape(write: Writer) -> str | bool:
    """Write a Reshape as several if the run that it leaves in a PE needs more than half of LM.

    In each step a single range of the index is cut differently. All other ranges are axes of their
    own there, so they may lie on units that do not divide them. Digits change their places between
    the steps.
    """
    shape, goal = write.type(0).shape, write.types[write.node.output[0]].shape
    if not prod(shape) or write.target is None:
        return False
    if not write.has_room(shape) and not in_dram.is_cut_alike(write, shape, goal):
        if not write.row_step:
            return False
        return write.op("Identity", in_dram.reshape(write, write.node.input[0], shape, goal))
    if not write.are_large([_run(write, shape, goal)]):
        return False
    steps = [one for one in _steps(shape, goal, write.rows) if one not in (shape, goal)]
    value = write.node.input[0]
    for sizes in steps:
        value = write.reshape(value, sizes)
    return bool(steps) and write.op("Reshape", value, write.ints(goal))


def _run(write: Writer, shape: tuple[int, ...], goal: tuple[int, ...]) -> int:
    """Return how many elements a PE holds at least if no unit digit may pad an axis; 1 for a chain.

    Any axis may have the digits of all units that divide it, or slices if LM lacks room.
    """
    assert write.target is not None
    found = ranges(shape, goal)
    runs = [high // low for low, high, chain in found if not chain]
    if not runs or not write.has_room(shape):
        return prod(runs)
    rest = [high // low for low, high, chain in found if chain]
    for count in write.target.level_range.values():
        for _, size in primes(count):
            axis = next((axis for axis, left in enumerate(rest) if left % size == 0), None)
            if axis is not None:
                rest[axis] //= size
    return prod(runs) * prod(rest)


def _steps(shape: tuple[int, ...], goal: tuple[int, ...], most: int) -> Iterator[tuple[int, ...]]:
    """Yield shapes that lead from ``shape`` to ``goal``, with runs of at most ``most`` elements.

    A run is longer if it has only two factors and both are prime.
    """
    found = ranges(shape, goal)[::-1]
    axes = [[high // low] for low, high, _ in found]
    for number, (low, high, chain) in enumerate(found):
        if not chain:
            axes[number] = _sizes(low, high, bounds(shape))
    yield tuple(size for sizes in axes for size in sizes)
    for number, (low, high, chain) in enumerate(found):
        if chain:
            continue
        for sizes in _exchanges(axes[number], _sizes(low, high, bounds(goal)), most):
            axes[number] = sizes
            yield tuple(size for sizes in axes for size in sizes)


def _sizes(low: int, high: int, cuts: set[int]) -> list[int]:
    weights = sorted({low, high} | between(cuts, low, high))
    return [b // a for a, b in pairwise(weights)][::-1]


def _exchanges(ours: Sequence[int], theirs: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the sizes of a range after each exchange of two neighbours, until it is ``theirs``."""
    line, left = list[_Factor](), list(theirs)
    for place, size in enumerate(ours):
        for axis, other in enumerate(left):
            factor = gcd(size, other)
            size, left[axis] = size // factor, other // factor
            if factor > 1:
                line.append(((axis, place), factor))
    while True:
        found = next((i for i in range(len(line) - 1) if line[i] > line[i + 1]), None)
        if found is None:
            break
        cut = _cut(line[found : found + 2], most)
        if cut is None:
            line[found : found + 2] = line[found + 1], line[found]
        else:
            line[found : found + 2] = cut
        yield [size for _, size in line]
    yield list(theirs)


def _cut(pair: Sequence[_Factor], most: int) -> list[_Factor] | None:
    """Return the pair with one factor cut in two; None if its run is short or has two primes."""
    if prod(size for _, size in pair) <= most:
        return None
    for which in sorted((0, 1), key=lambda one: -pair[one][1]):
        (key, size), other = pair[which], pair[1 - which][1]
        parts = [d for d in range(2, size) if size % d == 0]
        if parts:
            small = max((d for d in parts if d * other <= most), default=parts[0])
            halves = [(((*key, 0)), size // small), ((*key, 1), small)]
            return [*halves, pair[1]] if which == 0 else [pair[0], *halves]
    return None
