"""Copies and Reshapes of values that LM does not hold as a whole: rows of DRAM are cut anew.

A value has one set of time slices. An operator that needs an axis whole, or that cuts the index
elsewhere, has other slices before it and behind it. Between them the value is in DRAM as rows, and
MNCoreRecut makes other rows of them. A row has the last axes of a value as one; slices are cut
along it, or along the axes in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import gcd, inf, lcm, prod

import numpy as np

from ...graph.cut_weights import bounds
from ...graph.runs import MOST_RUNS as MOST_RUNS
from ...graph.runs import RUNS, Run, followed
from ..device_functions import RECUT
from ..held import Array
from .writer import Writer

Shape = tuple[int, ...]
#: What a view costs that divides rows where no unit begins, beside rows of as many elements.
_VIEW = 3.0
#: What rows may have, with their padding, of the elements of a value that is turned around.
_PADDED_ROWS = 4


def fits_no_slice(write: Writer, shape: Sequence[int], *axes: int) -> bool:
    """Whether LM does not hold a value, nor slices of it that have some axes whole."""
    if not write.row_step or write.has_room(shape):
        return False
    others = prod(max(1, -(-size // 2)) for at, size in enumerate(shape) if at not in axes)
    return not write.is_slice(prod(shape) // others)


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


# -- rows ------------------------------------------------------------------------------------------


def _rows(shape: Sequence[int], axis: int) -> Shape:
    """Return the shape with all axes from ``axis`` on as one."""
    return (*shape[:axis], prod(shape[axis:]))


def _cost(write: Writer, shape: Sequence[int], axis: int, part: int) -> float:
    """Return what rows cost that have ``part`` elements of an axis, with all axes behind it.

    It is the length of the rows with their padding, times that of their view, in elements of the
    value. Infinite if slices of these rows are large.
    """
    inner, step = prod(shape[axis + 1 :]), write.row_step
    length, joined = part * inner, lcm(inner, step)
    padded = -(-length // step) * step
    whole = part == shape[axis]
    front = [size for size in (*shape[:axis], shape[axis] // part) if size > 1]
    if prod(front) > MOST_RUNS:
        return inf
    if not write.has_room(shape):
        least = min(padded, joined) if whole else padded
        if not write.is_slice(prod(min(2, size) for size in front) * least):
            return inf
    run = 1
    if inner > 1 and step % inner and inner % step:
        run = min(length, joined) // gcd(inner, step)
    if not whole and length % step:
        run = max(run, length // gcd(inner, step))
    assert write.target is not None
    l2bs = write.target.level_range["L2B"]
    if front and front[-1] >= l2bs:  # each L2B may have some of the rows
        padded = -(-length // (step // l2bs)) * (step // l2bs)
    view = _VIEW * max(1.0, run / (2 * write.target.words("lm0"))) if run > 1 else 1.0
    return padded / length * view


def _best_rows(write: Writer, shape: Shape) -> Shape:
    """Return the shape of rows with small slices, little padding and a simple view."""
    best, found = inf, _rows(shape, 0)
    for axis, size in enumerate(shape):
        for part in range(size, 1, -1):
            if size % part:
                continue
            cost = _cost(write, shape, axis, part)
            if cost < best:
                best = cost
                front = (size // part,) if part < size else ()
                found = (*shape[:axis], *front, part * prod(shape[axis + 1 :]))
    return found


def _recut(write: Writer, value: str, shape: Sequence[int], goal: Sequence[int]) -> str:
    """Append a Reshape in DRAM."""
    if tuple(shape) == tuple(goal):
        return value
    with write.as_one(RECUT, value, **{RUNS: (0, 0, 0, prod(goal))}):
        return write.op("Reshape", value, write.ints(goal))


def _to_rows(write: Writer, value: str, shape: Shape, rows: Shape, given: Shape) -> str:
    """Append rows of a value; those that come from elsewhere than DRAM begin as ``given``."""
    if value in write.in_rows:
        return _recut(write, *write.in_rows[value], rows)
    value = value if shape == given else write.reshape(value, given)
    return _recut(write, value, given, rows)


def _from_rows(write: Writer, rows: str, sizes: Shape, wanted: Shape, goal: Shape) -> str:
    """Append the value of rows, which leave DRAM as ``wanted``."""
    value = _recut(write, rows, sizes, wanted)
    value = value if wanted == goal else write.reshape(value, goal)
    write.in_rows[value] = rows, sizes
    return value


def reshape(write: Writer, value: str, shape: Shape, goal: Shape) -> str:
    """Append a Reshape by way of DRAM."""
    given, wanted = _best_rows(write, shape), _best_rows(write, goal)
    value = _to_rows(write, value, shape, given, given)
    value = _recut(write, value, given, wanted)
    return _from_rows(write, value, wanted, wanted, goal)


def _boundary(write: Writer, shapes: Sequence[Shape], first: int) -> tuple[float, int]:
    """Return the cost of the best rows of all shapes, and the axis, from ``first`` on, they have.

    The cost is infinite if slices of all these rows are large.
    """
    best, at = inf, first
    for place in range(first, len(shapes[0])):
        costs = [_cost(write, one, place, one[place]) * prod(one) for one in shapes]
        if sum(costs) < best:
            best, at = sum(costs), place
    return best, at


#: A place among values, the first element along an axis there, and the number of elements.
_Stretch = tuple[int, int, int]


def _joined(
    write: Writer,
    rows: Sequence[tuple[str, Sequence[int]]],
    axis: int,
    stretches: Iterable[_Stretch],
    op: Callable[[], str],
) -> str:
    """Append stretches of an axis of rows, one behind the other; ``op`` appends them in ONNX.

    All axes but this one have the same sizes in all rows.
    """
    names, shape = list(dict.fromkeys(name for name, _ in rows)), rows[0][1]
    sizes, inner = [own[axis] for _, own in rows], prod(shape[axis + 1 :])
    parts, made, to = list(stretches), list[Run](), 0
    for row in range(prod(shape[:axis])):
        for place, first, count in parts:
            begin = (row * sizes[place] + first) * inner
            made.append((names.index(rows[place][0]), begin, to, count * inner))
            to += count * inner
    runs = tuple(number for run in followed(made) for number in run)
    with write.as_one(RECUT, *names, **{RUNS: runs}):
        return op()


def _stretches(places: Sequence[int]) -> Iterator[_Stretch]:
    """Yield each run of places of one value."""
    ends = [n for n in range(1, len(places)) if places[n] != places[n - 1] + 1]
    for begin, end in pairwise([0, *ends, len(places)]):
        yield 0, places[begin], end - begin


def _copied(
    write: Writer,
    values: Sequence[tuple[str, Sequence[int]]],
    goal: Sequence[int],
    axis: int,
    stretches: Iterable[_Stretch],
    op: Callable[[list[str], int, int], str],
) -> str:
    """Append a copy along an axis of values by way of DRAM: ``stretches`` of them.

    ``op`` appends it for rows; it gets their names, their axis, and the elements behind the axis.
    The rows of the values and of the result end alike, so that the axis is one of theirs. If slices
    of such rows are large, other rows come from elsewhere and go elsewhere.
    """
    own, result = [tuple(shape) for _, shape in values], tuple(goal)
    best, at = _boundary(write, [*own, result], axis)
    made: list[str] = []
    for (name, _), shape in zip(values, own, strict=True):
        rows = _rows(shape, at)
        given = rows if best < inf else _best_rows(write, shape)
        made.append(_to_rows(write, name, shape, rows, given))
    inner = prod(goal[axis + 1 :]) if at == axis else 1
    given_rows = list(zip(made, own, strict=True))
    value = _joined(write, given_rows, axis, stretches, lambda: op(made, axis, inner))
    rows = _rows(result, at)
    wanted = rows if best < inf else _best_rows(write, result)
    return _from_rows(write, value, rows, wanted, result)


# -- copies ----------------------------------------------------------------------------------------


def cut(write: Writer, value: str, shape: Sequence[int], axis: int, start: int, stop: int) -> str:
    """Append the elements from ``start`` to ``stop`` of an axis by way of DRAM."""
    goal = list(shape)
    goal[axis] = stop - start

    def op(rows: list[str], at: int, inner: int) -> str:
        return _sliced(write, rows[0], (start * inner, stop * inner, at))

    return _copied(write, [(value, shape)], goal, axis, [(0, start, stop - start)], op)


def concat(write: Writer, values: Sequence[tuple[str, Sequence[int]]], axis: int) -> str:
    """Append values one behind the other along an axis by way of DRAM."""
    goal = list(values[0][1])
    goal[axis] = sum(shape[axis] for _, shape in values)
    each = dict(values)

    def op(rows: list[str], at: int, inner: int) -> str:
        made = dict(zip(each, rows, strict=True))
        return write.op("Concat", *(made[name] for name, _ in values), axis=at)

    stretches = [(list(each).index(name), 0, shape[axis]) for name, shape in values]
    return _copied(write, list(each.items()), goal, axis, stretches, op)


def pad(
    write: Writer, value: str, shape: Sequence[int], axis: int, ends: tuple[int, int], filler: str
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
    goal = list(shape)
    runs = 1 + np.count_nonzero(np.diff(places) != 1)
    if runs * prod(shape[:axis]) > MOST_RUNS:
        return None
    goal[axis] = len(places)

    def op(rows: list[str], at: int, inner: int) -> str:
        index = (places[:, None] * inner + np.arange(inner)).reshape(-1).astype(np.int64)
        return write.op("Gather", rows[0], write.constant(index, "index"), axis=at)

    return _copied(write, [(value, shape)], goal, axis, _stretches(places.tolist()), op)


def turns_rows(write: Writer, shape: Sequence[int], axis: int) -> bool:
    """Whether the elements of an axis are whole rows, or several, with little padding."""
    cost, _ = _boundary(write, [tuple(shape)], axis + 1)
    return cost <= _PADDED_ROWS * prod(shape)


def turned(write: Writer, value: str, shape: Sequence[int], axis: int) -> str:
    """Append the elements of an axis from the last to the first, by way of DRAM.

    If they are rows, only rows change their places. Otherwise an axis becomes blocks: PEs turn each
    block around, slice by slice, and then the blocks change their places.
    """
    assert write.target is not None
    size, front = shape[axis], tuple(shape[:axis])
    if turns_rows(write, shape, axis):
        given, (_, at) = tuple(shape), _boundary(write, [tuple(shape)], axis + 1)
        rows = _rows(given, at)
        found = _turned_rows(write, _to_rows(write, value, given, rows, rows), rows, axis)
        return _from_rows(write, found, rows, rows, given)
    inner, block = prod(shape[axis + 1 :]), 1
    step = write.row_step
    while block * inner % step and block * inner < _PADDED_ROWS * step and block < size:
        block *= 2
    most = 1 << write.rows.bit_length() - 1
    parts = [min(block, most)] if block <= most else [block // most, most]
    count = -(-size // block)
    padded = (*front, count * block, *shape[axis + 1 :])
    if padded != tuple(shape):
        value = pad(write, value, shape, axis, (count * block - size, 0), "")
    blocks, wide = (*front, count, block * inner), (*front, count, *parts, *shape[axis + 1 :])
    value = _to_rows(write, value, padded, blocks, _best_rows(write, padded))
    value = _from_rows(write, value, blocks, blocks, wide)
    for number, part in enumerate(parts):
        value = write.pick(value, axis + 1 + number, np.arange(part)[::-1])
    value = value if wide == blocks else write.reshape(value, blocks)
    value = _turned_rows(write, value, blocks, axis)
    rows = (*front, size * inner)
    if padded != tuple(shape):
        whole = (*front, count * block * inner)
        value, kept = _recut(write, value, blocks, whole), (0, 0, size * inner)
        begin = (0, size * inner, axis)
        value = _joined(write, [(value, whole)], axis, [kept], lambda: _sliced(write, value, begin))
    else:
        value = _recut(write, value, blocks, rows)
    return _from_rows(write, value, rows, _best_rows(write, tuple(shape)), tuple(shape))


def _turned_rows(write: Writer, rows: str, shape: Shape, axis: int) -> str:
    numbers = (-1, int(np.iinfo(np.int64).min), axis, -1)
    stretches = ((0, place, 1) for place in reversed(range(shape[axis])))
    return _joined(write, [(rows, shape)], axis, stretches, lambda: _sliced(write, rows, numbers))


def _sliced(write: Writer, rows: str, numbers: Sequence[int]) -> str:
    return write.op("Slice", rows, *(write.ints([number]) for number in numbers))


def tile(write: Writer, value: str, shape: Sequence[int], axis: int, times: int) -> str:
    """Append copies of a value along an axis, by way of DRAM."""
    return concat(write, [(value, tuple(shape))] * times, axis)
