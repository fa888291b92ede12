"""Layouts of two shapes over the same long words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod

from ..graph.cut_weights import between, bounds, common_weights, ranges
from ..graph.digits import Part, joined_parts, parts, primes
from ..graph.dtypes import MNDtype
from ..graph.layout import Layout, Level
from ..machine import Target
from .default_layout import built, dense, whole_layout


def one_run(shape: tuple[int, ...], dtype: MNDtype, target: Target) -> Layout:
    """Return the layout of one run of Addr in every PE, which can be cut anywhere."""
    placed = {a: [Part(1, size, Level.ADDR, 0)] for a, size in enumerate(shape) if size > 1}
    found = built(shape, dense(placed), Layout(()), dtype, target)
    assert found is not None
    return found


def _flat(own: Sequence[Sequence[Part]], sizes: Sequence[int]) -> list[Part]:
    """Return the parts of all axes with their weights in the flat index, minor first."""
    found = (
        p._replace(lo=p.lo * prod(sizes[axis + 1 :])) for axis, mine in enumerate(own) for p in mine
    )
    return sorted(found)


def runs(found: Sequence[Part]) -> list[Part]:
    """Join parts that continue each other: the result does not depend on how axes are cut."""
    out = joined_parts(found)
    # Either shape may cut the topmost part short, so its size is left out.
    return [*out[:-1], Part(out[-1].lo, 0, out[-1].level, out[-1].stride)] if out else []


def same_words(
    ours: Layout, shape: tuple[int, ...], theirs: Layout, result: tuple[int, ...]
) -> bool:
    """Whether all elements have the same index in two shapes and lie at the same place."""
    own, other = parts(ours, shape), parts(theirs, result)
    return all(
        runs(_flat([own[a] for a in left], [shape[a] for a in left]))
        == runs(_flat([other[a] for a in right], [result[a] for a in right]))
        for left, right in stretches(shape, result)
    )


def unpadded(found: Sequence[Part], size: int) -> list[Part] | None:
    """Return parts without the padding of the topmost digits; None if they are not one run."""
    *below, top = sorted(found) or [Part(1, 1, Level.ADDR, 1)]
    while size % top.lo and below:
        under = below.pop()
        if under.level is not top.level or under.stride * under.size != top.stride:
            return None
        top = Part(under.lo, under.size * top.size, top.level, under.stride)
    return None if size % top.lo else [*below, top._replace(size=size // top.lo)]


@lru_cache(maxsize=4096)
def fitted(
    shape: tuple[int, ...],
    result: tuple[int, ...],
    dtype: MNDtype,
    target: Target,
    *,
    padded: bool = False,
) -> Layout:
    """Return a layout of ``shape`` whose digits end where an axis of either shape begins.

    With ``padded``, digits may pad the axis at the top of each stretch of axes that both shapes
    have.
    """
    pieces = ranges(shape, result)[::-1]
    sizes = tuple(high // low for low, high, _ in pieces)
    ends = {*sorted(bounds(shape) & bounds(result) | {1})[1:], prod(shape)}
    tops = [axis for axis, (_, end, _) in enumerate(pieces) if end in ends]
    # What the two shapes cut differently must be one run in Addr: its digits get no units.
    chains = [chain for *_, chain in pieces]
    free = tuple(size if chain else 1 for size, chain in zip(sizes, chains, strict=True))
    times = prod(sizes) // prod(free)
    flat = whole_layout(free, dtype, target, padded=tops if padded else False, times=times)
    placed = dict(enumerate(parts(flat, free)))
    runs_of = (axis for axis, chain in enumerate(chains) if not chain)
    placed |= {axis: [Part(1, sizes[axis], Level.ADDR, 1)] for axis in runs_of}
    cut: list[Part] = []
    for axis, found in dense(placed).items():
        low = prod(sizes[axis + 1 :])
        # What pads an axis lies beyond the beginning of the next one, and is not cut there.
        inner = sorted(between(bounds(shape), low, low * sizes[axis]))
        for part in found:
            piece = Part(part.lo * low, part.size, part.level, part.stride)
            cut += _cut(piece, inner, low * sizes[axis])
    made = built(shape, _by_axis(sorted(cut), shape), flat, dtype, target)
    return made if made is not None else whole_layout(shape, dtype, target)


#: The same addresses as parts of the axes of either shape.
_Both = tuple[list[Part], list[Part]]


def stretches(
    shape: tuple[int, ...], result: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the shortest runs of axes of both shapes that have the same elements, minor first.

    Axes of size 1 are left out.
    """
    marks = [*sorted(bounds(shape) & bounds(result) | {1}), prod(shape)]

    def within(sizes: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
        weights = enumerate(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
        return tuple(a for a, weight in weights if sizes[a] > 1 and low <= weight < high)

    return [(within(shape, a, b), within(result, a, b)) for a, b in pairwise(marks) if a < b]


def reshaped(
    hint: Layout, shape: tuple[int, ...], result: tuple[int, ...], dtype: MNDtype, target: Target
) -> tuple[Layout, Layout] | None:
    """Return layouts of both shapes over the same long words, close to ``hint``.

    An axis that both shapes have keeps its digits, with their padding.
    """
    own = parts(hint, shape)
    changed = False
    pieces: list[tuple[_Both, tuple[int, ...], tuple[int, ...]]] = []
    for ours, theirs in stretches(shape, result):
        one, other = (tuple(s[a] for a in axes) for s, axes in ((shape, ours), (result, theirs)))
        found = [([part], [part]) for part in sorted(own[ours[0]])]
        if one != other:
            found, moved = _recut([own[axis] for axis in ours], one, other)
            changed |= moved
        pieces += ((both, ours, theirs) for both in found)
    placed: list[dict[int, list[Part]]] = [{}, {}]
    stride = 1
    for both, *axes in pieces:
        step = 1
        if changed and both[0][0].level is Level.ADDR:
            step, stride = stride, stride * prod(part.size for part in both[0])
        for out, found_here, sizes, numbers in zip(
            placed, both, (shape, result), axes, strict=True
        ):
            if changed:
                found_here = _in_steps(found_here, step)
            here = tuple(sizes[axis] for axis in numbers)
            for axis, more in _by_axis(found_here, here).items():
                out.setdefault(numbers[axis], []).extend(more)
    made = [
        built(given, {axis: found.get(axis, []) for axis in range(len(given))}, hint, dtype, target)
        for found, given in zip(placed, (shape, result), strict=True)
    ]
    if made[0] is None or made[1] is None:
        return None
    return made[0], made[1]


def _in_steps(found: Sequence[Part], step: int) -> list[Part]:
    """Return parts whose least stride in Addr is ``step``."""
    least = min(part.stride for part in found)
    return [
        part._replace(stride=part.stride // least * step) if part.level is Level.ADDR else part
        for part in found
    ]


def padded_axes(shape: tuple[int, ...], result: tuple[int, ...]) -> list[int]:
    """Return the axes that digits may pad: the first one, and those that both shapes have."""
    first = next((axis for axis, size in enumerate(shape) if size > 1), 0)
    both = _ranges(shape) & _ranges(result)
    ends = ((prod(shape[axis + 1 :]), prod(shape[axis:])) for axis in range(len(shape)))
    return [axis for axis, end in enumerate(ends) if axis == first or end in both]


def _recut(
    own: Sequence[Sequence[Part]], shape: tuple[int, ...], result: tuple[int, ...]
) -> tuple[list[_Both], bool]:
    """Return the parts of axes as parts of other axes with the same elements.

    With them comes whether digits had to change; then strides in Addr are not final. What the two
    shapes cut differently becomes a run in Addr.
    """
    kept, changed = _without_padding(own, shape)
    total = prod(shape)
    ours, theirs = bounds(shape), bounds(result)
    common = [*common_weights(ours, theirs, total), total]
    found = sorted(
        piece
        for p in _flat(kept, shape)
        for piece in _cut(p, [c for c in common if c % p.lo == 0], p.lo * p.size)
    )
    out: list[_Both] = []
    for low, high in pairwise(common):
        within = [p for p in found if low <= p.lo < high]
        cuts = {low} | between(ours | theirs, low, high) | {p.lo for p in within}
        chain = sorted(cuts) + ([] if high == total else [high])
        if all(b % a == 0 for a, b in pairwise(chain)):
            for part in within:
                out += (([p], [p]) for p in _cut(part, sorted(cuts), high))
        else:
            changed = True
            coarser = _coarser(within, low, high, between(ours | theirs, low, high))
            if coarser is not None:
                out += (([p], [p]) for p in coarser)
                continue
            run = Part(low, -(-high // low), Level.ADDR, 1)
            one, other = (sorted({low} | between(marks, low, high)) for marks in (ours, theirs))
            out.append((_cut(run, one, high), _cut(run, other, high)))
    return out, changed


def _without_padding(
    own: Sequence[Sequence[Part]], shape: tuple[int, ...]
) -> tuple[list[Sequence[Part]], bool]:
    """Return the parts of axes without padding, and whether an axis had to go to Addr for that."""
    kept, changed = list(own), False
    for axis, size in enumerate(shape):
        if prod(p.size for p in own[axis]) != size:
            without = unpadded(own[axis], size)
            if without is not None:
                kept[axis] = without
            elif axis:
                kept[axis], changed = [Part(1, size, Level.ADDR, 1)], True
    return kept, changed


def _coarser(within: Sequence[Part], low: int, high: int, inner: set[int]) -> list[Part] | None:
    """Return a run in Addr below the major unit digits of a stretch, cut at ``inner``.

    None if the stretch has no digits on units, or none that can stay.
    """
    if high % low or any(part.level is Level.W for part in within):
        return None
    units = [
        Part(part.lo, digit.size, part.level, part.stride * digit.stride)
        for part in sorted(within)
        if part.level is not Level.ADDR
        for digit in primes(part.size)
    ]
    for first in range(len(units)):
        run, rest = high // low, []
        for digit in units[first:]:
            run = run // digit.size if run % digit.size == 0 else 0
        if run < 2:
            continue
        weight = low * run
        for digit in units[first:]:
            rest.append(Part(weight, digit.size, digit.level, digit.stride))
            weight *= digit.size
        chain = sorted({low, high} | inner | {part.lo for part in rest})
        if all(b % a == 0 for a, b in pairwise(chain)):
            marks = sorted(cut for cut in inner if cut < low * run)
            return [*_cut(Part(low, run, Level.ADDR, 1), marks, low * run), *rest]
    return None


def _ranges(shape: tuple[int, ...]) -> set[tuple[int, int]]:
    """Return where each axis begins and ends in the flat index."""
    sizes = ((prod(shape[axis + 1 :]), size) for axis, size in enumerate(shape))
    return {(weight, weight * size) for weight, size in sizes if size > 1}


def _cut(part: Part, cuts: Sequence[int], end: int) -> list[Part]:
    """Split a part at the weights ``cuts``; ``end`` is the weight where the next part begins."""
    stop = part.lo * part.size
    marks = [part.lo, *(c for c in cuts if part.lo < c < stop), min(stop, max(end, part.lo + 1))]
    return [
        Part(a, -(-b // a), part.level, part.stride * (a // part.lo)) for a, b in pairwise(marks)
    ]


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
