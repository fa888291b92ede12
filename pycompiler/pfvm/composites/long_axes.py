"""Copies along axes that do not fit LM: Slice, Split, Pad, Concat and Expand.

The device copies along an axis that lies in Addr. An axis that is too long for that becomes two:
rows and columns. One of them lies in Addr at a time, and the other one on units. An element that is
``first`` places before another one lies ``first // columns`` rows and ``first % columns`` columns
before it, or one row more. So a shift joins two pieces of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import gcd, isqrt, prod

import numpy as np

from . import in_dram
from .tiles import Tiling, tiled
from .writer import Writer

#: A Slice that keeps this part of an axis, from its beginning, has no code (MNCoreCrop).
_CROPPED = 3 / 4
_Ends = tuple[int, int]


def is_long(write: Writer, size: int, *ends: int) -> bool:
    """Whether LM lacks room for an axis that is copied in blocks with these ends."""
    return write.target is not None and size // gcd(size, *ends) > write.target.words("lm0")


def needs_dram(write: Writer, shape: Sequence[int], axis: int, *ends: int) -> bool:
    """Whether a copy along an axis, in blocks with these ends, has no room in LM.

    Then LM does not hold the value, and either slices with the whole axis are too large, or a PE
    does not hold the axis.
    """
    if in_dram.fits_no_slice(write, shape, axis):
        return True
    if write.target is None or not write.row_step or write.has_room(shape):
        return False
    # Of the blocks, only a part lies on units if their number does not divide the blocks.
    units = gcd(shape[axis], *ends, prod(write.target.pe_shape))
    return shape[axis] // units > write.target.words("lm0")


def cut(write: Writer, value: str, shape: Sequence[int], axis: int, start: int, stop: int) -> str:
    """Append the elements from ``start`` to ``stop`` of an axis of any length."""
    size, count = shape[axis], stop - start
    if (start, stop) != (0, size) and needs_dram(write, shape, axis, start, count):
        return in_dram.cut(write, value, shape, axis, start, stop)
    cropped = not start and count >= _CROPPED * size
    if cropped or not is_long(write, size, start, count):
        return write.cut(value, [axis], [start], [stop])
    rows = _Rows.of(write, value, shape, axis, count)
    return rows.flat(rows.shifted(start, count), count)


def is_long_range(write: Writer, shape: Sequence[int], axis: int, chosen: range) -> bool:
    """Whether LM lacks room for a long axis of which evenly spaced elements are taken."""
    size = shape[axis]
    if chosen == range(size):
        return False
    ends = (chosen.start, len(chosen)) if chosen.step == 1 else (1,)
    if needs_dram(write, shape, axis, *ends):
        return True
    if not write.has_room(shape):
        return False
    return is_long(write, size, *ends)


def picked(
    write: Writer, value: str, shape: Sequence[int], axis: int, chosen: range, *, apart: bool
) -> str:
    """Append evenly spaced elements of an axis of any length, in either direction.

    ``apart`` says that the value has other slices for another axis.
    """
    low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]) + 1
    sizes = list(shape)
    if (low, high) != (0, sizes[axis]):
        way = in_dram.cut if apart else cut
        value = way(write, value, sizes, axis, low, high)
        sizes[axis] = high - low
    if chosen.step < 0:
        by_rows = apart and in_dram.turns_rows(write, sizes, axis)
        turn = in_dram.turned if by_rows else _reversed
        value = turn(write, value, sizes, axis)
    step, count = abs(chosen.step), len(chosen)
    if step == 1:
        return value
    value = pad(write, value, sizes, axis, (0, count * step - sizes[axis]))
    value = write.reshape(value, (*sizes[:axis], count, step, *sizes[axis + 1 :]))
    value = write.cut(value, [axis + 1], [0], [1])
    return write.reshape(value, (*sizes[:axis], count, *sizes[axis + 1 :]))


def _reversed(write: Writer, value: str, shape: Sequence[int], axis: int) -> str:
    """Append the elements of an axis of any length from the last to the first."""
    size = shape[axis]
    if needs_dram(write, shape, axis, 1):
        return in_dram.turned(write, value, shape, axis)
    if not is_long(write, size, 1):
        return write.pick(value, axis, np.arange(size)[::-1])
    columns = 1 << isqrt(size).bit_length()
    rows = -(-size // columns)
    value = pad(write, value, shape, axis, (rows * columns - size, 0))
    wide = [*shape[:axis], rows, columns, *shape[axis + 1 :]]
    value = _reversed(write, write.reshape(value, wide), wide, axis)
    value = write.pick(value, axis + 1, np.arange(columns)[::-1])
    value = write.reshape(value, (*shape[:axis], rows * columns, *shape[axis + 1 :]))
    return write.cut(value, [axis], [0], [size])


def split(write: Writer) -> bool:
    """Cut a long axis into pieces one by one."""
    shape = write.type(0).shape
    axis = int(write.attribute("axis", 0)) % len(shape)
    sizes = [write.types[name].shape[axis] for name in write.node.output]
    ends = list(accumulate(sizes))
    long = is_long(write, shape[axis], *ends) and write.has_room(shape)
    if not long and not needs_dram(write, shape, axis, *ends):
        return False
    for name, size, end in zip(write.node.output, sizes, ends, strict=True):
        found = cut(write, write.node.input[0], shape, axis, end - size, end)
        write.op("Identity", found, result=name)
    return True


def concat(write: Writer) -> str | bool:
    """Join inputs along a long axis: each is padded to the whole length, and has its elements."""
    shape = write.types[write.node.output[0]].shape
    axis = int(write.attribute("axis", 0)) % len(shape)
    shapes = [write.types[name].shape for name in write.node.input]
    ends = list(accumulate(one[axis] for one in shapes))
    few = len(shapes) <= in_dram.MOST_RUNS
    if few and needs_dram(write, shape, axis, *ends):
        named = list(zip(write.node.input, shapes, strict=True))
        parts = [(name, own) for name, own in named if prod(own)]
        return write.op("Identity", in_dram.concat(write, parts, axis))
    if not is_long(write, shape[axis], *ends) or not write.has_room(shape):
        return False
    found, total = "", shape[axis]
    for name, own, end in zip(write.node.input, shapes, ends, strict=True):
        if not prod(own):
            continue
        begin = end - own[axis]
        wide = pad(write, name, own, axis, (begin, total - end))
        place = np.arange(total).reshape(-1, *(1,) * (len(shape) - 1 - axis))
        if not found:
            found = wide
        elif write.type(0).elem == "bool":
            found = write.op("Or", found, wide)
        else:
            found = write.op("Where", write.constant(place >= begin, "behind"), wide, found)
    return write.op("Identity", found)


def expand(write: Writer) -> str | bool:
    """Repeat elements along long axes by an operator that broadcasts."""
    name, goal = write.node.input[0], write.types[write.node.output[0]].shape
    given = write.type(0).shape
    given = (*(1,) * (len(goal) - len(given)), *given)
    wide = [size if size != own else 1 for size, own in zip(goal, given, strict=True)]
    if not is_long(write, prod(wide), 1):
        return False
    every = write.constant(np.ones(wide, bool), "every")
    inputs = (every, name) if write.type(0).elem == "bool" else (every, name, name)
    op = "And" if write.type(0).elem == "bool" else "Where"
    return write.op(op, *inputs)


def pad(
    write: Writer, value: str, shape: Sequence[int], axis: int, ends: _Ends, filler: str = ""
) -> str:
    """Append as many elements, equal to ``filler`` (zero), at the ends of an axis of any length."""
    size, before, total = shape[axis], ends[0], shape[axis] + sum(ends)
    goal = (*shape[:axis], total, *shape[axis + 1 :])
    if needs_dram(write, goal, axis, before, before + size):
        return in_dram.pad(write, value, shape, axis, ends, filler)
    if not is_long(write, max(size, total), before, size, total):
        amounts = write.ints(ends)
        return write.op("Pad", value, amounts, filler or _zero(write), write.ints([axis]))
    rows = _Rows.of(write, value, shape, axis, total, filled=bool(filler))
    columns = rows.columns
    front = -(-before // columns)
    first = front * columns - before
    behind = max(0, -(-(first + total) // columns) - front - rows.count)
    sizes = list(rows.shape)
    value = pad(write, rows.value, sizes, axis, (front, behind), filler)
    sizes[axis] += front + behind
    more = _Rows(write, value, sizes, axis)
    return more.flat(more.shifted(first, total), total)


def _zero(write: Writer) -> str:
    return write.own(np.asarray(0), "zero")


class _Rows:
    """A value whose axis is cut into rows (``axis``) and columns (the axis behind it)."""

    def __init__(self, write: Writer, value: str, shape: Sequence[int], axis: int):
        self.write, self.value, self.shape, self.axis = write, value, tuple(shape), axis

    @staticmethod
    def of(
        write: Writer, value: str, shape: Sequence[int], axis: int, count: int, filled: bool = False
    ) -> _Rows:
        """Cut an axis of which ``count`` elements are wanted; zeros may fill the last row.

        With ``filled`` there are no such zeros.
        """
        size = shape[axis]
        # The last row of the result is cropped, which has no code if it is a small part.
        most = min(write.rows, count // 4) if count > write.rows else write.rows
        near = min(most, 1 << isqrt(size).bit_length())
        whole = [d for d in range(2, min(most, 4 * near) + 1) if size % d == 0 and size // d > 1]
        best = min(whole, key=lambda d: max(d, size // d), default=0)
        if filled or (best and max(best, size // best) <= 4 * near):
            columns = best or size
            wide = (*shape[:axis], size // columns, columns, *shape[axis + 1 :])
            return _Rows(write, write.reshape(value, wide), wide, axis)
        rows = -(-size // near)
        pads = [(0, (rows * near - size) * (at == axis)) for at in range(len(shape))]
        wide = (*shape[:axis], rows, near, *shape[axis + 1 :])
        if rows == 1:
            value = write.reshape(write.padded(value, range(len(shape)), pads), wide)
        else:
            value = tiled(write, value, shape, pads, {axis: Tiling(rows, near, near, near, 1)})
        return _Rows(write, value, wide, axis)

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.shape[self.axis]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.shape[self.axis + 1]

    def shifted(self, first: int, count: int) -> _Rows:
        """Append rows of the elements from ``first`` on; behind ``count`` elements come any."""
        row, column = divmod(first, self.columns)
        rows = -(-count // self.columns)
        if not column:
            return self._of_rows(self, row, rows)
        left = self._of_rows(self._of_columns(column, self.columns), row, rows)
        right = self._of_rows(self._of_columns(0, column), row + 1, rows)
        value = self.write.op("Concat", left.value, right.value, axis=self.axis + 1)
        return self._like(value, rows, self.columns)

    def _like(self, value: str, rows: int, columns: int) -> _Rows:
        sizes = (*self.shape[: self.axis], rows, columns, *self.shape[self.axis + 2 :])
        return _Rows(self.write, value, sizes, self.axis)

    def _of_columns(self, start: int, stop: int) -> _Rows:
        value = self.write.cut(self.value, [self.axis + 1], [start], [stop])
        return self._like(value, self.count, stop - start)

    @staticmethod
    def _of_rows(rows: _Rows, start: int, count: int) -> _Rows:
        """Append some rows; behind the last row there are zeros."""
        write, sizes, axis, value = rows.write, list(rows.shape), rows.axis, rows.value
        stop = min(rows.count, start + count)
        if stop <= start:  # only what lies behind the last element is wanted
            start, stop = rows.count - 1, rows.count
        if stop - start < rows.count:
            value = cut(write, value, sizes, axis, start, stop)
        sizes[axis] = stop - start
        if sizes[axis] < count:
            value = pad(write, value, sizes, axis, (0, count - sizes[axis]))
        return rows._like(value, count, rows.columns)

    def flat(self, rows: _Rows, count: int) -> str:
        """Join rows and columns again; return the first ``count`` elements."""
        sizes, axis = rows.shape, rows.axis
        whole = rows.count * rows.columns
        value = self.write.reshape(rows.value, (*sizes[:axis], whole, *sizes[axis + 2 :]))
        return self.write.cut(value, [axis], [0], [count]) if count < whole else value
