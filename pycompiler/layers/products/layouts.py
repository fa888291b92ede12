"""Layouts of a product's operands: unit digits for batch, rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from ...graph.digits import Part, PrimeDigit, all_ranges, merged, parts, primes
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import UNIT_LEVELS, Broadcast, Layout, Level, SubAxis
from ...machine import Target
from ...pfvm.windows import GROUPED
from ..base import layout_of
from .roles import Precision, Roles, bias_of, precision_of, roles_of


@dataclass
class Spread:
    """Unit digits of batch axes, n and m, minor first.

    Without Addr digits, those that no unit has are a run below the units. Batch axes and m may have
    Addr digits of stride 0, which stand between and above the units.
    """

    batch: list[list[SubAxis]]
    n: list[SubAxis]
    m: list[SubAxis]
    #: digits of the contracted axis: all L1Bs or none
    k: list[SubAxis] = field(default_factory=list)


@dataclass(frozen=True)
class Way:
    """What a spread prefers; without a preference n takes all units that it can use."""

    #: k takes the L1Bs
    contracted: bool = False
    #: n takes only MABs until m has enough digits
    rows_first: bool = False
    #: most units that n takes
    columns: int | None = None
    #: digits of L2Bs that n takes before the rows do, if it takes no L1Bs
    l2bs: int = 0


def fits(node: MNNode, layouts: Mapping[str, Layout], target: Target) -> bool:
    """Whether the vectors fit LM0 and the other operands fit LM1."""
    words = {name: layout.num_lw(target.cycles) for name, layout in layouts.items()}
    others = sum(size for name, size in words.items() if name != node.inputs[0])
    return words[node.inputs[0]] <= target.words("lm0") and others <= target.words("lm1")


def kept_units(
    roles: Roles, node: MNNode, hints: Mapping[str, Layout], shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[Spread]:
    """Yield the digits that the batch axes and m already have in the first operand."""
    return _units_of_rows(node.inputs[0], roles.a[0], roles.a[1], hints, shapes, roles)


def kept_result_units(
    roles: Roles, node: MNNode, hints: Mapping[str, Layout], shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[Spread]:
    """Yield the digits that the batch axes and m have in the layout wanted for the result."""
    return _units_of_rows(node.outputs[0], roles.c[0], roles.c[1], hints, shapes, roles)


def _units_of_rows(
    name: str,
    batch: Sequence[int | None],
    m: int | None,
    hints: Mapping[str, Layout],
    shapes: Mapping[str, tuple[int, ...]],
    roles: Roles,
) -> Iterator[Spread]:
    """Yield the units as uppermost digits, and, if they are not, at the places that they have."""
    if name not in hints:
        yield Spread([[] for _ in batch], [], [])
        return
    found = parts(hints[name], shapes[name])

    def digits(axis: int | None, levels: Sequence[Level]) -> list[SubAxis]:
        return [
            SubAxis(digit.size, part.level, part.stride * digit.stride)
            if part.level in levels
            else SubAxis(digit.size, Level.ADDR, 0)
            for part in (found[axis] if axis is not None else ())
            for digit in primes(_even(part))
        ]

    def spread(units: Callable[[list[SubAxis]], list[SubAxis]]) -> Spread:
        own = [units(digits(axis, (Level.L2B, Level.L1B, Level.MAB))) for axis in batch]
        return Spread(own, [], units(digits(m, (Level.L2B, Level.L1B))))

    plain = spread(lambda digits: [digit for digit in digits if digit.level is not Level.ADDR])
    yield plain
    # Windows leave their axes in Addr, and their neighbours exchange halos.
    placed = plain if roles.windows else spread(_placed)
    if placed != plain:
        yield placed


def _placed(digits: list[SubAxis]) -> list[SubAxis]:
    """Leave out the Addr digits if they lie below all units."""
    units = [digit for digit in digits if digit.level is not Level.ADDR]
    return units if digits[len(digits) - len(units) :] == units else digits


def _rows(roles: Roles) -> list[int]:
    """Return the batch axes along which the matrix is the same, except those of a convolution."""
    return [axis for axis, own in enumerate(roles.b[0]) if own is None and not roles.windows]


def _even(part: Part) -> int:
    """Return the size of a part, rounded up to a power of two if the axis cuts it short."""
    size = 1
    while size < part.size:
        size *= 2
    return size


def spread_units(
    roles: Roles,
    kind: Precision,
    target: Target,
    kept: Spread | None,
    way: Way,
) -> Spread:
    """Give the digits of MABs, L1Bs and L2Bs to batch, n and m; those of ``kept`` first."""
    free: list[SubAxis] = [
        SubAxis(digit.size, level, digit.stride)
        for level in (Level.MAB, Level.L1B, Level.L2B)
        for digit in primes(target.level_range[level.value])
    ]
    out = Spread([[] for _ in roles.batch], [], [])

    def rest(size: int, digits: list[SubAxis]) -> int:
        return -(-size // prod(d.size for d in digits if d.level is not Level.ADDR))

    def take(into: list[SubAxis], size: int, wanted: Sequence[SubAxis], least: int) -> None:
        for digit in wanted:
            if digit in free and rest(size, into) > least and _add(into, digit):
                free.remove(digit)

    def keep(into: list[SubAxis], size: int, wanted: Sequence[SubAxis], least: int) -> None:
        between = any(digit.level is Level.ADDR for digit in wanted)
        for digit in wanted:
            if digit in free and rest(size, into) > least:
                into.append(digit)
                free.remove(digit)
            elif between:
                into.append(SubAxis(digit.size, Level.ADDR, 0))

    if way.contracted:
        packed = kind.packed
        own = [digit for digit in free if digit.level is Level.L1B]
        if roles.k % (packed * prod(digit.size for digit in own)) == 0:
            out.k = own
            free = [digit for digit in free if digit not in own]
    # A tap is an offset of the address, so windows leave their axes in Addr.
    whole = {axis for axis, window in roles.windows.items() if not window.trivial}
    for axis, size in enumerate(roles.batch if kept is not None else ()):
        assert kept is not None
        if axis not in whole:
            keep(out.batch[axis], size, kept.batch[axis], 1)
    if kept is not None:
        # Rows of all axes along which the matrix is the same meet it together.
        others = prod(rest(roles.batch[axis], out.batch[axis]) for axis in _rows(roles))
        keep(out.m, roles.m, kept.m, -(-target.cycles // others))
    blocks = -(-roles.n // kind.rows)
    narrow = bool(out.k) or way.rows_first or way.columns is not None
    least = -(-blocks // way.columns) if way.columns is not None else 1
    take(out.n, blocks, [digit for digit in free if not narrow or digit.level is Level.MAB], least)
    if way.l2bs:
        outer = [digit for digit in reversed(free) if digit.level is Level.L2B]
        take(out.n, blocks, outer[: way.l2bs], least)
    # Neighbours in an image exchange halos, which costs least between MABs. All others take the
    # digits that are left from the outermost level inwards, outer axes first: views join axes so.
    apart = [axis for axis in range(len(roles.batch)) if axis not in whole]
    for axis in (axis for axis in apart if axis not in roles.windows):
        before = len(out.batch[axis])
        take(out.batch[axis], roles.batch[axis], list(reversed(free)), 1)
        taken = out.batch[axis][before:]
        if len({digit.level for digit in taken}) > 1:
            # Outer levels hold higher digits: an inner level can then leave its digits to Addr.
            out.batch[axis][before:] = taken[::-1]
    for axis in (axis for axis in reversed(apart) if axis in roles.windows):
        take(out.batch[axis], roles.batch[axis], list(free), 1)
    take(out.m, roles.m, list(reversed(free)), target.cycles)
    if way.rows_first:
        # Outer L2Bs first: then a group's DRAM has only the part of the matrix that it needs.
        inner = [digit for digit in free if digit.level is not Level.L2B]
        outer = [digit for digit in reversed(free) if digit.level is Level.L2B]
        take(out.n, blocks, inner + outer, 1)
    return out


def _add(into: list[SubAxis], digit: SubAxis) -> bool:
    """Add a unit digit above all others, or in place of the uppermost Addr digit of its size."""
    places = [place for place, own in enumerate(into) if own.level is Level.ADDR]
    if not places:
        into.append(digit)
        return True
    same = [place for place in places if into[place].size == digit.size]
    if same:
        into[same[-1]] = digit
    return bool(same)


def inner_digits(kind: Precision, dtype: MNDtype, target: Target) -> list[SubAxis]:
    """Return the digits of the contracted axis that lie across the words and PEs of a vector."""
    packed = SubAxis(dtype.words_per_long, Level.W)
    across = SubAxis(target.counts["pe"], Level.PE)
    long = kind.words // dtype.words_per_long
    return [packed, SubAxis(long, Level.ADDR, 0), across] if long > 1 else [packed, across]


def result_digits(kind: Precision, dtype: MNDtype, target: Target) -> list[SubAxis]:
    """Return the digits of the columns that lie across the words and PEs of a result."""
    packed, across = SubAxis(dtype.words_per_long, Level.W), SubAxis(target.counts["pe"], Level.PE)
    long = kind.result_words(dtype)
    return [packed, SubAxis(long, Level.ADDR, 0), across]


def operand_layouts(
    node: MNNode, graph: MNGraph, spread: Spread, target: Target
) -> dict[str, Layout]:
    """Return the layouts of the operands for a spread."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    over = prod(digit.size for digit in spread.k)
    rows = kind.rows

    def contracted(name: str) -> list[SubAxis]:
        blocks = -(-roles.k // (kind.packed * over))
        inner = inner_digits(kind, graph.values[name].dtype, target)
        return [*inner, SubAxis(blocks, Level.ADDR, 0), *spread.k]

    def outer(size: int, digits: Sequence[SubAxis], step: int) -> list[SubAxis]:
        left = SubAxis(-(-size // (step * prod(d.size for d in digits))), Level.ADDR, 0)
        between = any(digit.level is Level.ADDR for digit in digits)
        return [*digits, left] if between else [left, *digits]

    def columns(name: str) -> list[SubAxis]:
        return [
            *result_digits(kind, graph.values[name].dtype, target),
            *outer(roles.n, spread.n, rows),
        ]

    # Rows that no column has take no room. Two rows of halves are read at once.
    some = min(rows, -(-roles.n // 2) * 2)
    n_b = [SubAxis(some, Level.ADDR, 0), *outer(roles.n, spread.n, rows)]
    m = outer(roles.m, spread.m, 1)
    batch = [outer(size, spread.batch[i], 1) for i, size in enumerate(roles.batch)]

    def made(name: str, subs: dict[int, list[SubAxis]], order: list[int]) -> Layout:
        value = graph.values[name]
        return lay_out(len(value.shape), subs, order, value.dtype, target)

    def read(index: int) -> list[SubAxis]:
        window = roles.windows.get(index)
        if window is None or window.trivial:
            return batch[index]
        return [SubAxis(window.reach, Level.ADDR, 0)]

    a, b, c = roles.a, roles.b, roles.c
    one, other, out = node.inputs[0], node.inputs[1], node.outputs[0]
    subs_a = {axis: read(i) for i, axis in enumerate(a[0]) if axis is not None}
    subs_a[a[2]] = contracted(one)
    subs_b = {axis: batch[i] for i, axis in enumerate(b[0]) if axis is not None}
    subs_b[b[1]] = contracted(other)
    for window in roles.windows.values():
        subs_b[window.axis] = [SubAxis(window.taps, Level.ADDR, 0)]
    subs_c = {axis: batch[i] for i, axis in enumerate(c[0])}
    if a[1] is not None:
        subs_a[a[1]] = m
    if b[2] is not None:
        subs_b[b[2]] = n_b
    if c[1] is not None:
        subs_c[c[1]] = m
    if c[2] is not None:
        subs_c[c[2]] = columns(out)
    found = {
        one: made(one, subs_a, [a[2], *subs_a]),
        out: made(out, subs_c, [*([c[2]] if c[2] is not None else []), *subs_c]),
    }
    if other != one:
        # Rows of halves lie side by side: the register takes two of them at once.
        first = b[1] if b[2] is None or graph.values[other].dtype is not MNDtype.HALF else b[2]
        found[other] = made(other, subs_b, [first, *subs_b])
    bias = bias_of(node)
    if bias is not None:
        subs = {len(graph.values[bias].shape) - 1: columns(bias)}
        if node.op == GROUPED:
            subs[0] = batch[-1]
        found[bias] = made(bias, subs, list(subs))
    return found


def lay_out(
    rank: int,
    subs: Mapping[int, Sequence[SubAxis]],
    order: Sequence[int],
    dtype: MNDtype,
    target: Target,
) -> Layout:
    """Return the layout of axes whose digits are given minor first; free digits hold copies.

    Addr digits of stride 0 receive their strides here, axis by axis in ``order``, each digit
    outside the digits before it.
    """
    ranges = all_ranges(target.level_range, dtype)
    places = tuple((axis, tuple(subs[axis])) for axis in dict.fromkeys(order))
    return _laid_out(rank, places, tuple(ranges.items()))


@lru_cache(maxsize=16384)
def _laid_out(
    rank: int,
    places: Sequence[tuple[int, Sequence[SubAxis]]],
    ranges: Sequence[tuple[Level, int]],
) -> Layout:
    """Do the work of :func:`lay_out`; many proposals of a product have equal operands."""
    axes: list[tuple[SubAxis, ...]] = [() for _ in range(rank)]
    stride = 1
    used: dict[Level, list[PrimeDigit]] = {}
    for axis, subs in places:
        out: list[SubAxis] = []
        for sub in subs:
            if sub.size <= 1:
                continue
            if sub.level is not Level.ADDR:
                own = (PrimeDigit(sub.stride * d.stride, d.size) for d in primes(sub.size))
                used.setdefault(sub.level, []).extend(own)
            elif not sub.stride:
                sub, stride = sub._replace(stride=stride), stride * sub.size
            out.append(sub)
        axes[axis] = tuple(reversed(merged(out)))
    copies: list[Broadcast] = []
    counts = dict(ranges)
    for level in (Level.W, *reversed(UNIT_LEVELS)):
        digits = primes(counts[level])
        free = [d for d in digits if d not in used.get(level, [])]
        if len(free) == len(digits):
            copies.append(Broadcast(level))
        else:
            copies += [Broadcast(level, d.size, d.stride) for d in free]
    return Layout(tuple(axes), tuple(copies))


def wanted_layouts(node: MNNode, graph: MNGraph, target: Target) -> dict[str, Layout] | None:
    """Return the layouts of all operands that match the result's layout; None if there are none.

    The actual layouts of the operands may differ in digits that no index reaches.
    """
    roles = roles_of(node, graph)
    spread = Spread([[] for _ in roles.batch], [], [])

    def units(name: str, axis: int | None) -> list[SubAxis]:
        return unit_digits(layout_of(graph.values[name]), axis)

    def rows(axis: int | None) -> list[SubAxis]:
        digits = unit_digits(layout_of(graph.values[out]), axis, Level.ADDR)
        return units(out, axis) if roles.windows else _placed(digits)

    out = node.outputs[0]
    spread.batch = [rows(axis) for axis in roles.c[0]]
    spread.m, spread.n = rows(roles.c[1]), units(out, roles.c[2])
    spread.k = units(node.inputs[0], roles.a[2])
    if spread.k and len(spread.k) != len(primes(target.level_range["L1B"])):
        return None
    return operand_layouts(node, graph, spread, target)


def unit_digits(layout: Layout, axis: int | None, *others: Level) -> list[SubAxis]:
    """Return the digits that an axis has on MABs, L1Bs and L2Bs, minor first.

    Digits on the levels ``others`` come too, without their strides.
    """
    if axis is None:
        return []
    units = (Level.MAB, Level.L1B, Level.L2B)
    return [
        SubAxis(digit.size, sub.level, sub.stride * digit.stride if sub.level in units else 0)
        for sub in reversed(layout.axes[axis])
        if sub.level in (*units, *others)
        for digit in primes(sub.size)
    ]
