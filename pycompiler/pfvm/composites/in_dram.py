"""Copies and Reshapes of values that LM does not hold as a whole: rows of DRAM are cut anew.

A value has one set of time slices. An operator that needs an axis whole, or that cuts the index
elsewhere, has other slices before it and behind it. Between them the value is in DRAM as rows, and
MNCoreRecut makes other rows of them. A row is the axis that is cut into slices, with all axes
behind it; all axes in front of it are rows side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, lcm, prod

import numpy as np

from ...graph.cut_weights import bounds
from ..session import Array
from .writer import Writer

Shape = tuple[int, ...]
#: The most runs of elements that one operator moves in DRAM.
MOST_RUNS = 1 << 10


def fits_no_slice(write: Writer, shape: Sequence[int], *axes: int) -> bool:
    """Whether LM does not hold a value, nor slices of it that have some axes whole."""
    if not write.row_step or write.has_room(shape):
        return False
    others = prod(max(1, -(-size // 2)) for at, size in enumerate(shape) if at not in axes)
    return not write.is_slice(prod(shape) // others)


def rows(write: Writer, value: str, shape: Sequence[int], axis: int) -> str:
    """Append rows of all elements from ``axis`` on; one row has no axis in front."""
    return _viewed(write, value, shape, _rows(shape, axis))


def _rows(shape: Sequence[int], axis: int) -> Shape:
    outer, length = prod(shape[:axis]), prod(shape[axis:])
    return (length,) if outer == 1 else (outer, length)


def _viewed(write: Writer, value: str, shape: Sequence[int], goal: Sequence[int]) -> str:
    return value if tuple(shape) == tuple(goal) else write.reshape(value, goal)


def _sliced_axis(write: Writer, shape: Shape) -> int:
    """Return the axis whose slices are small; all axes behind it fit a slice."""
    for axis in range(len(shape)):
        if write.is_slice(2 * prod(shape) // shape[axis]):
            return axis
    return len(shape) - 1


def is_cut_alike(write: Writer, shape: Shape, goal: Shape) -> bool:
    """Whether slices along axes that both shapes have are small."""
    both = sorted(bounds(shape) & bounds(goal) | {1, prod(shape)})
    slices = 1
    for low, high in pairwise(both):
        own, other = (_first(sizes, low, high) for sizes in (shape, goal))
        if own and other and max(own, other) % min(own, other) == 0:
            slices *= max(1, gcd(own, other) // 2)
    return write.is_slice(prod(shape) // slices)


def _first(sizes: Shape, low: int, high: int) -> int:
    """Return the size of the outermost axis within two weights of the flat index."""
    for axis, size in enumerate(sizes):
        weight = prod(sizes[axis + 1 :])
        if size > 1 and low <= weight < high:
            return size
    return 0


def _best_rows(write: Writer, shape: Shape) -> Shape:
    """Return the shape of the rows of a value whose slices are small and have little padding.

    Slices of one long row are as long as whole units, and have all elements behind the axis that is
    cut. If no small slice has both, there are many rows, of as many elements as a divisor gives.
    """
    axis = _sliced_axis(write, shape)
    inner, step = prod(shape[axis + 1 :]), write.row_step
    if axis or write.is_slice(lcm(inner, step)):
        return _rows(shape, axis)
    divisors = [d for d in range(1, shape[0] + 1) if shape[0] % d == 0]
    small = [d for d in divisors if write.is_slice(2 * -(-d * inner // step) * step)]
    best = min(small, key=lambda d: (-(-d * inner // step) * step / (d * inner), -d), default=1)
    return shape[0] // best, best * inner


def reshape(write: Writer, value: str, shape: Shape, goal: Shape) -> str:
    """Append a Reshape by way of DRAM."""
    given, wanted = _best_rows(write, shape), _best_rows(write, goal)
    value = _viewed(write, value, shape, given)
    value = write.in_dram("Reshape", value, write.ints(wanted))
    return _viewed(write, value, wanted, goal)


def cut(write: Writer, value: str, shape: Sequence[int], axis: int, start: int, stop: int) -> str:
    """Append the elements from ``start`` to ``stop`` of an axis by way of DRAM."""
    inner, goal = prod(shape[axis + 1 :]), list(shape)
    goal[axis] = stop - start
    value = rows(write, value, shape, axis)
    last = len(_rows(shape, axis)) - 1
    numbers = (write.ints([n]) for n in (start * inner, stop * inner, last))
    value = write.in_dram("Slice", value, *numbers)
    return _viewed(write, value, _rows(goal, axis), goal)


def concat(write: Writer, values: Sequence[tuple[str, Sequence[int]]], axis: int) -> str:
    """Append values one behind the other along an axis by way of DRAM."""
    made = {name: rows(write, name, shape, axis) for name, shape in dict(values).items()}
    goal = list(values[0][1])
    goal[axis] = sum(shape[axis] for _, shape in values)
    last = len(_rows(goal, axis)) - 1
    value = write.in_dram("Concat", *(made[name] for name, _ in values), axis=last)
    return _viewed(write, value, _rows(goal, axis), goal)


def pad(
    write: Writer,
    value: str,
    shape: Sequence[int],
    axis: int,
    ends: tuple[int, int],
    filler: str,
) -> str:
    """Append a value with ``ends`` more elements before and behind an axis, by way of DRAM."""
    parts = [(value, tuple(shape))]
    for place, size in enumerate(ends):
        if size:
            sizes = (*shape[:axis], size, *shape[axis + 1 :])
            if not filler or filler in write.data:
                one = write.data[filler].reshape(()) if filler else np.zeros(())
                made = write.own(np.broadcast_to(one, sizes), "filler")
            else:
                made = write.op("Expand", filler, write.ints(sizes))
            parts.insert(0 if not place else len(parts), (made, sizes))
    return concat(write, parts, axis)


def pick(write: Writer, value: str, shape: Sequence[int], axis: int, places: Array) -> str | None:
    """Append the elements at some places of an axis, by way of DRAM; None if there are too many."""
    inner, goal = prod(shape[axis + 1 :]), list(shape)
    runs = 1 + np.count_nonzero(np.diff(places) != 1)
    if runs * prod(shape[:axis]) > MOST_RUNS:
        return None
    goal[axis] = len(places)
    index = (places[:, None] * inner + np.arange(inner)).reshape(-1).astype(np.int64)
    value = rows(write, value, shape, axis)
    last = len(_rows(shape, axis)) - 1
    value = write.in_dram("Gather", value, write.constant(index, "index"), axis=last)
    return _viewed(write, value, _rows(goal, axis), goal)


def tile(write: Writer, value: str, shape: Sequence[int], axis: int, times: int) -> str:
    """Append copies of a value along an axis, by way of DRAM."""
    return concat(write, [(value, tuple(shape))] * times, axis)
