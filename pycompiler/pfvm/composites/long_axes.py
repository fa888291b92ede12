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

from ..held import array_of
from . import in_dram
from .tiles import Tiling, tiled
from .writer import REALS, Writer

#: A Slice that keeps this part of an axis, from its beginning, has no code (MNCoreCrop).
_CROPPED = 3 / 4
#: A move by at most this part of an axis brings elements from the next tile only.
_NEAR = 16
_Ends = tuple[int, int]
Shape = tuple[int, ...]
#: Stands for zeros, which a Pad brings.
_ZERO = "0"


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
    return _moved(write, value, shape, axis, start, count)


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
    """Join inputs along a long axis: each is padded to the whole length, and has its elements.

    So are new values between zeros, or between the ends of an old value, on any axis: what stencils
    make of such a choice stays in tiles.
    """
    shape, inputs = write.types[write.node.output[0]].shape, write.node.input
    axis = int(write.attribute("axis", 0)) % len(shape)
    shapes = [write.types[name].shape for name in inputs]
    ends = list(accumulate(one[axis] for one in shapes))
    begins = [0, *ends[:-1]]
    few = len(shapes) <= in_dram.MOST_RUNS
    if few and needs_dram(write, shape, axis, *ends):
        named = list(zip(inputs, shapes, strict=True))
        parts = [(name, own) for name, own in named if prod(own)]
        return write.op("Identity", in_dram.concat(write, parts, axis))
    place = np.arange(shape[axis]).reshape(-1, *(1,) * (len(shape) - 1 - axis))

    def wide(number: int) -> str:
        own = shapes[number]
        around = begins[number], shape[axis] - ends[number]
        return pad(write, inputs[number], own, axis, around)

    if (update := _update(write, shape, axis, begins)) is not None:
        new, old = update
        inside = (begins[new] <= place) & (place < ends[new])
        found = wide(new)
        if old != _ZERO:
            found = write.op("Where", write.constant(inside, "inside"), found, old)
        return write.op("Identity", found)
    if not is_long(write, shape[axis], *ends) or not write.has_room(shape):
        return False
    found = ""
    for number, own in enumerate(shapes):
        if not prod(own):
            continue
        if not found:
            found = wide(number)
        elif write.type(0).elem == "bool":
            found = write.op("Or", found, wide(number))
        else:
            behind = write.constant(place >= begins[number], "behind")
            found = write.op("Where", behind, wide(number), found)
    return write.op("Identity", found)


def _update(
    write: Writer, shape: Shape, axis: int, begins: Sequence[int]
) -> tuple[int, str] | None:
    """Return the number of the only new part of a Concat, and whose ends stand around it.

    These are `_ZERO`, or an old value.
    """
    found = list[str]()
    for name, begin in zip(write.node.input, begins, strict=True):
        data = write.data.get(name)
        zeros = data is not None and not data.any() and not np.signbit(data).any()
        found.append(_ZERO if zeros else _cut_of(write, name, begin, shape, axis))
    around = {*found} - {""}
    update = found.count("") == 1 == len(around) and (around == {_ZERO} or found[0] == found[-1])
    return (found.index(""), max(found)) if update and write.type(0).elem in REALS else None


def _cut_of(write: Writer, name: str, begin: int, shape: Shape, axis: int) -> str:
    """Return the value of a shape whose elements from ``begin`` on, along an axis, this one has."""
    maker = write.makers.get(name)
    if maker is None or maker.op_type != "Slice" or write.types[maker.input[0]].shape != shape:
        return ""
    facts = [array_of(write.held[one]) for one in maker.input[1:] if one in write.held]
    if not len(maker.input) - 1 == len(facts) > 2 or any(fact.size != 1 for fact in facts):
        return ""
    start, _, along, *step = (int(fact.reshape(())) for fact in facts)
    same = along % len(shape) == axis and start % shape[axis] == begin and step in ([], [1])
    return maker.input[0] if same else ""


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
    value = _moved(write, value, shape, axis, -before, total)
    if not filler:
        return value
    place = np.arange(total).reshape(-1, *(1,) * (len(shape) - 1 - axis))
    inside = (before <= place) & (place < before + size)
    if write.type(0).elem == "bool":
        around = write.op("And", write.constant(~inside, "around"), filler)
        return write.op("Or", value, around)
    return write.op("Where", write.constant(inside, "inside"), value, filler)


def _moved(
    write: Writer, value: str, shape: Sequence[int], axis: int, start: int, count: int
) -> str:
    """Append ``count`` elements from a place on, which may be before the first; zeros are outside.

    The axis is cut into rows. Each takes what moves into it from the next one.
    """
    assert write.target is not None
    size = shape[axis]
    if abs(start) * _NEAR <= min(size, count):  # to the neighbour, in as many rows as there are PEs
        least = -(-max(size, count) // prod(write.target.pe_shape))
        columns, row, column = max(least, abs(start)), 0, start
        rows = -(-max(size, count) // columns)
    else:
        # The last row of the result is cropped, which has no code if it is a small part.
        most = min(write.rows, count // 4) if count > write.rows else write.rows
        columns = min(most // 2, 1 << isqrt(max(size, count)).bit_length())
        row = start // columns if start > 0 else -(-start // columns)
        column = start - row * columns
        rows = -(-(size - min(0, column)) // columns)
    before, reach = max(0, -column), columns + abs(column)
    pads = [(0, 0)] * len(shape)
    pads[axis] = before, (rows - 1) * columns + reach - before - size
    wide = [*shape[:axis], rows, reach, *shape[axis + 1 :]]
    if rows == 1:
        value = write.reshape(write.padded(value, range(len(shape)), pads), wide)
    else:
        value = tiled(write, value, shape, pads, {axis: Tiling(rows, columns, columns, reach, 1)})
    if column:
        first = column + before
        value = write.cut(value, [axis + 1], [first], [first + columns])
        wide[axis + 1] = columns
    wanted = -(-count // columns) if row else max(rows, -(-count // columns))
    low, high = max(0, row), max(1, min(row + wanted, rows))
    if (low, high) != (0, rows):
        value = cut(write, value, wide, axis, low, high)
        wide[axis] = high - low
    if (ends := (low - row, row + wanted - high)) != (0, 0):
        value = pad(write, value, wide, axis, ends)
    whole = wanted * columns
    value = write.reshape(value, (*shape[:axis], whole, *shape[axis + 1 :]))
    return write.cut(value, [axis], [0], [count]) if count < whole else value


def _zero(write: Writer) -> str:
    return write.own(np.asarray(0), "zero")
