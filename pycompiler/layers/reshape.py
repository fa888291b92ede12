"""Layouts of two shapes over the same long words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, prod

from ..graph.digits import Part, parts
from ..graph.dtypes import MNDtype
from ..graph.layout import Layout, Level
from ..machine import Target
from .default_layout import built, whole_layout


def flat(shape: tuple[int, ...]) -> dict[int, list[Part]]:
    """Return parts that put all elements into Addr, in the order of the flat index."""
    out: dict[int, list[Part]] = {}
    for axis, size in enumerate(shape):
        stride = prod(shape[axis + 1 :])
        out[axis] = [Part(1, size, Level.ADDR, stride)] if size > 1 else []
    return out


def flat_parts(layout: Layout, shape: tuple[int, ...]) -> list[Part]:
    """Return the parts of all axes with their weights in the flat index, minor first."""
    out: list[Part] = []
    for axis, found in enumerate(parts(layout, shape)):
        weight = prod(shape[axis + 1 :])
        out += [Part(p.lo * weight, p.size, p.level, p.stride) for p in found]
    return sorted(out)


def runs(found: Sequence[Part]) -> list[Part]:
    """Join parts that continue each other: the result does not depend on how axes are cut."""
    out: list[Part] = []
    for part in found:
        last = out[-1] if out else None
        if (
            last is not None
            and last.level is part.level
            and last.lo * last.size == part.lo
            and last.stride * last.size == part.stride
        ):
            out[-1] = Part(last.lo, last.size * part.size, last.level, last.stride)
        else:
            out.append(part)
    # Either shape may cut the topmost part short, so its size is left out.
    return [*out[:-1], Part(out[-1].lo, 0, out[-1].level, out[-1].stride)] if out else []


def fitted(
    shape: tuple[int, ...], result: tuple[int, ...], dtype: MNDtype, target: Target
) -> Layout:
    """Return a layout of ``shape`` whose digits end where an axis of either shape begins."""
    total = prod(shape)
    marks = [*_common(_bounds(shape), _bounds(result), total), total]
    sizes = tuple(b // a for a, b in pairwise(marks))[::-1]
    flat = whole_layout(sizes, dtype, target)
    pieces = [
        Part(p.lo * prod(sizes[axis + 1 :]), p.size, p.level, p.stride)
        for axis, found in enumerate(parts(flat, sizes))
        for p in found
    ]
    cut = [piece for part in sorted(pieces) for piece in _cut(part, sorted(_bounds(shape)), total)]
    made = built(shape, _by_axis(cut, shape), flat, dtype, target)
    return made if made is not None else whole_layout(shape, dtype, target)


def reshaped(
    hint: Layout,
    shape: tuple[int, ...],
    result: tuple[int, ...],
    dtype: MNDtype,
    target: Target,
) -> tuple[Layout, Layout] | None:
    """Return layouts of both shapes over the same long words, close to ``hint``.

    An axis that both shapes have keeps its digits, even if they pad it.
    """
    own: dict[int, list[Part]] = dict(enumerate(parts(hint, shape)))
    both = _ranges(shape) & _ranges(result)
    loose = padded_axes(shape, result)
    changed = False
    for axis, size in enumerate(shape):
        if axis not in loose and prod(p.size for p in own[axis]) != size:
            own[axis] = [Part(1, size, Level.ADDR, 0)]
            changed = True
    flat = sorted(
        Part(p.lo * prod(shape[axis + 1 :]), p.size, p.level, p.stride)
        for axis, found in own.items()
        for p in found
    )
    total = prod(shape)
    ours, theirs = _bounds(shape), _bounds(result)
    common = [*_common(ours, theirs, total), total]
    pieces: list[Part] = []
    for low, high in pairwise(common):
        within = [p for p in flat if low <= p.lo < high]
        cuts = {low} | {c for c in ours | theirs if low < c < high} | {p.lo for p in within}
        chain = sorted(cuts) + ([] if high == total else [high])
        if all(b % a == 0 for a, b in pairwise(chain)):
            for part in within:
                pieces += _cut(part, sorted(cuts), total if high == total else high)
        elif (low, high) in both:
            pieces += within
        else:
            changed = True
            pieces += _cut(
                Part(low, -(-high // low), Level.ADDR, 0),
                sorted({low} | _inner(ours, low, high)),
                high,
            )
            if not _same_cuts(ours, theirs, low, high):
                # Digits in Addr can be cut in both ways.
                return _both_ways(flat, common, shape, result, hint, dtype, target)
    if changed:
        pieces = _strides(pieces)
    return _pair(pieces, pieces, shape, result, hint, dtype, target)


def padded_axes(shape: tuple[int, ...], result: tuple[int, ...]) -> list[int]:
    """Return the axes that digits may pad: the first one, and those that both shapes have."""
    first = next((axis for axis, size in enumerate(shape) if size > 1), 0)
    both = _ranges(shape) & _ranges(result)
    ends = ((prod(shape[axis + 1 :]), prod(shape[axis:])) for axis in range(len(shape)))
    return [axis for axis, end in enumerate(ends) if axis == first or end in both]


def _both_ways(
    flat: Sequence[Part],
    common: Sequence[int],
    shape: tuple[int, ...],
    result: tuple[int, ...],
    hint: Layout,
    dtype: MNDtype,
    target: Target,
) -> tuple[Layout, Layout] | None:
    """Return layouts in which each stretch that the shapes cut differently is a run in Addr."""
    total = prod(shape)
    ours, theirs = _bounds(shape), _bounds(result)
    one: list[Part] = []
    other: list[Part] = []
    stride = 1
    both = _ranges(shape) & _ranges(result)
    for low, high in pairwise(common):
        within = [p for p in flat if low <= p.lo < high]
        cuts = {low} | _inner(ours | theirs, low, high) | {p.lo for p in within}
        chain = sorted(cuts) + ([] if high == total else [high])
        even = all(b % a == 0 for a, b in pairwise(chain))
        if even or (low, high) in both:
            for part in within:
                whole = _cut(part, sorted(cuts), total if high == total else high)
                for piece in whole if even else [part]:
                    if piece.level is Level.ADDR:
                        piece = Part(piece.lo, piece.size, Level.ADDR, stride)
                        stride *= piece.size
                    one.append(piece)
                    other.append(piece)
            continue
        run = Part(low, -(-high // low), Level.ADDR, stride)
        one += _cut(run, sorted({low} | _inner(ours, low, high)), high)
        other += _cut(run, sorted({low} | _inner(theirs, low, high)), high)
        stride *= run.size
    return _pair(one, other, shape, result, hint, dtype, target)


def _pair(
    one: Sequence[Part],
    other: Sequence[Part],
    shape: tuple[int, ...],
    result: tuple[int, ...],
    hint: Layout,
    dtype: MNDtype,
    target: Target,
) -> tuple[Layout, Layout] | None:
    made = [
        built(given, _by_axis(found, given), hint, dtype, target)
        for found, given in ((one, shape), (other, result))
    ]
    if made[0] is None or made[1] is None:
        return None
    return made[0], made[1]


def _common(ours: set[int], theirs: set[int], total: int) -> list[int]:
    """Return the weights at which the index can be split in both shapes."""
    both = sorted({1} | (ours & theirs))
    more = set(both)
    for low, high in pairwise([*both, total]):
        inner = sorted(_inner(ours | theirs, low, high)) + ([] if high == total else [high])
        for index in range(len(inner)):
            found = gcd(*inner[index:])
            if found > low and all(c % found == 0 or found % c == 0 for c in (low, *inner)):
                more.add(found)
    return sorted(c for c in more if c < total)


def _ranges(shape: tuple[int, ...]) -> set[tuple[int, int]]:
    """Return where each axis begins and ends in the flat index."""
    sizes = ((prod(shape[axis + 1 :]), size) for axis, size in enumerate(shape))
    return {(weight, weight * size) for weight, size in sizes if size > 1}


def _bounds(shape: tuple[int, ...]) -> set[int]:
    return {prod(shape[axis + 1 :]) for axis in range(len(shape))}


def _inner(cuts: set[int], low: int, high: int) -> set[int]:
    return {c for c in cuts if low < c < high}


def _same_cuts(ours: set[int], theirs: set[int], low: int, high: int) -> bool:
    return _inner(ours, low, high) == _inner(theirs, low, high)


def _cut(part: Part, cuts: Sequence[int], end: int) -> list[Part]:
    """Split a part at the weights ``cuts``; ``end`` is the weight where the next part begins."""
    stop = part.lo * part.size
    marks = [part.lo, *(c for c in cuts if part.lo < c < stop), min(stop, max(end, part.lo + 1))]
    return [
        Part(a, -(-b // a), part.level, part.stride * (a // part.lo)) for a, b in pairwise(marks)
    ]


def _strides(found: Sequence[Part]) -> list[Part]:
    out, stride = [], 1
    for part in sorted(found):
        if part.level is Level.ADDR:
            part = Part(part.lo, part.size, Level.ADDR, stride)
            stride *= part.size
        out.append(part)
    return out


def _by_axis(found: Sequence[Part], shape: tuple[int, ...]) -> dict[int, list[Part]]:
    out: dict[int, list[Part]] = {}
    for axis, size in enumerate(shape):
        weight = prod(shape[axis + 1 :])
        out[axis] = [
            Part(p.lo // weight, p.size, p.level, p.stride)
            for p in found
            if weight <= p.lo < weight * size
        ]
    return out
