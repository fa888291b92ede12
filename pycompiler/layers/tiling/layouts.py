"""Layouts of the input and the result of MNCoreTiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from ...graph.digits import Part, all_ranges, copied_digits, merged, parts, primes
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import UNIT_LEVELS, Layout, Layouts, Level, SubAxis, Ways
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from ..copied_digits import levels, meets
from ..default_layout import built, closed
from .axes import (
    TILE_LEVELS,
    TiledAxis,
    coordinates,
    input_shape,
    other_axes,
    tile_digits,
    tiled_axes,
    zero_words,
)

#: The first axis of pixels; before it stand the batch and the channels.
PIXELS = 2


@dataclass(frozen=True)
class _Spread:
    """The digits of all axes.

    ``others`` are those of the axes that stay, by axis of the input. ``tiles`` are the digits of
    tiles on units, minor first, by axis of the input. ``steps`` orders the places of tiles among
    the digits in Addr, by axis of the input: those with small steps are minor.
    """

    others: dict[int, list[Part]]
    tiles: dict[int, list[SubAxis]]
    steps: dict[int, int] = field(default_factory=dict)

    def free(self, level: Level, target: Target) -> list[SubAxis]:
        """Return the prime digits on a level that no axis has."""
        used = [part for found in self.others.values() for part in found]
        used += [Part(1, d.size, d.level, d.stride) for found in self.tiles.values() for d in found]
        return [
            SubAxis(size, level, stride)
            for stride, size in primes(target.level_range[level.value])
            if not any(meets(part, level, stride, size) for part in used)
        ]


def ways(node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
    """Yield layouts of input and result: close to the hints, then others."""
    source, result = (graph.values[name] for name in (node.inputs[0], node.outputs[0]))
    axes = tiled_axes(node, graph)
    others, levels = other_axes(node, graph), _levels(node, graph, target)
    found: list[_Spread] = []
    if result.name in hints:
        own = parts(hints[result.name], result.shape)
        tiles = {a.source: _units(own[a.tiles], levels) for a in axes}
        steps = {a.source: _step(own[a.inner]) for a in axes}
        kept = {o.source: _whole(hints[result.name], o.result, o.reach) for o in others}
        found.append(_Spread(kept, tiles, steps))
    if source.name in hints:
        own = parts(hints[source.name], source.shape)
        tiles = {a.source: _units(own[a.source], levels) for a in axes}
        steps = {a.source: _step(own[a.source]) for a in axes}
        kept = {o.source: _whole(hints[source.name], o.source, o.reach) for o in others}
        found.append(_Spread(kept, tiles, steps))
    if not found:
        found.append(_fresh(node, graph, target))
    yield from _made(found, node, graph, target, hints)


def late_ways(node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
    """Yield layouts with the outermost units for an axis that stays: no halo crosses these."""
    if other_axes(node, graph):
        yield from _made([_apart(node, graph, target)], node, graph, target, hints)


def _made(
    found: Sequence[_Spread], node: MNNode, graph: MNGraph, target: Target, hints: Layouts
) -> Ways:
    """Yield the layouts of spreads: as near to them as tiles can be, and with more units."""
    axes, levels = tiled_axes(node, graph), _levels(node, graph, target)
    done: list[_Spread] = []
    for spread in found:
        near = replace(spread, tiles={a.source: _fitting(spread.tiles[a.source], a) for a in axes})
        for one in (near, _filled(near, axes, levels, target), _gathered(near, target)):
            if one not in done:
                done.append(one)
                made = _laid_out(one, node, graph, target, hints)
                if made is not None:
                    yield made


def _whole(layout: Layout, axis: int, size: int) -> list[Part]:
    """Return the parts of an axis that hold ``size`` elements; digits of Addr are added."""
    shape = tuple(size if number == axis else 1 for number in range(len(layout.axes)))
    found = parts(layout, shape)[axis]
    held = prod(part.size for part in found)
    more = [Part(held, -(-size // held), Level.ADDR, 1 << 30)] if held < size else []
    return [*found, *more]


def _units(found: Sequence[Part], levels: Sequence[Level]) -> list[SubAxis]:
    """Return the digits on units of these levels, minor first, cut into prime factors."""
    out: list[SubAxis] = []
    for part in sorted(found):
        if part.level in levels:
            size = 1 << (part.size - 1).bit_length()
            out += [SubAxis(d.size, part.level, part.stride * d.stride) for d in primes(size)]
    return out


def _step(found: Sequence[Part]) -> int:
    return min((part.stride for part in found if part.level is Level.ADDR), default=0)


def _fitting(digits: Sequence[SubAxis], axis: TiledAxis) -> list[SubAxis]:
    """Return the first digits that the tiles of an axis can use, in the order of the levels."""
    out: list[SubAxis] = []
    for digit in digits:
        if prod(d.size for d in out) < axis.count:
            out.append(digit)
    # The sort keeps the order of digits of one level.
    return sorted(out, key=lambda digit: TILE_LEVELS.index(digit.level))


def _levels(node: MNNode, graph: MNGraph, target: Target) -> Sequence[Level]:
    """Return the levels whose free units tiles may get: PEs only if no other axis fills them.

    A product wants its contracted axis on words and PEs.
    """
    others = max((axis.reach for axis in other_axes(node, graph)), default=1)
    return TILE_LEVELS[1:] if others >= target.level_range[Level.PE.value] else TILE_LEVELS


def _filled(
    spread: _Spread, axes: Sequence[TiledAxis], levels: Sequence[Level], target: Target
) -> _Spread:
    """Give free units to the tiles: PEs and MABs to the last axes, then L1Bs, then L2Bs."""
    made = replace(spread, tiles={axis: list(found) for axis, found in spread.tiles.items()})
    for axis in reversed(axes):
        if axis.count == 1:
            continue
        own = made.tiles[axis.source]
        for level in levels:
            missing = -(-axis.count // prod(d.size for d in own))
            digits = made.free(level, target)
            # Products give the lowest MABs to their columns.
            if level is Level.MAB:
                digits = digits[max(0, len(digits) - (missing - 1).bit_length()) :]
            for digit in digits:
                if missing > 1:
                    own.append(digit)
                    missing = -(-missing // digit.size)
        made.tiles[axis.source] = _fitting(own, axis)
    return made


def _gathered(spread: _Spread, target: Target) -> _Spread:
    """Give free MABs to the uppermost digits that the last of the other axes have in Addr.

    Products want the contracted axis whole in every MAB. The halo is exchanged in fewer steps while
    each MAB has a part of it, and their results have their columns on MABs like that.
    """
    others = {axis: list(found) for axis, found in spread.others.items()}
    free = spread.free(Level.MAB, target)
    for found in (others[axis] for axis in reversed(others)):
        last = max(found, default=None)
        if last is None or last.level is not Level.ADDR:
            continue
        rest, taken = last.size, list[SubAxis]()
        while free and rest % free[0].size == 0:
            taken.append(free.pop(0))
            rest //= taken[-1].size
        if taken:
            found[found.index(last)] = last._replace(size=rest)
            lo = last.lo * rest
            for digit in taken:
                found.append(Part(lo, digit.size, Level.MAB, digit.stride))
                lo *= digit.size
            break
    return replace(spread, others=others)


def _fresh(node: MNNode, graph: MNGraph, target: Target) -> _Spread:
    """Give words and PEs to the last axis that stays, L2Bs to the first, MABs to the tiles."""
    source = graph.values[node.inputs[0]]
    axes = tiled_axes(node, graph)
    whole = {axis.source: axis.reach for axis in other_axes(node, graph)}
    rest = dict(whole)
    others: dict[int, list[Part]] = {old: [] for old in rest}

    def give(level: Level, stride: int, size: int, axis: int) -> None:
        others[axis].append(Part(prod(p.size for p in others[axis]), size, level, stride))
        rest[axis] = -(-rest[axis] // size)

    # Readers want the pixels in Addr, those of axes without tiles too. So these get what is left.
    order = [old for old in reversed(rest) if old < PIXELS] + [old for old in rest if old >= PIXELS]
    words = source.dtype.words_per_long
    inner = next((old for old in order if rest[old] % words == 0), None)
    if inner is not None:
        for stride, size in primes(words):
            give(Level.W, stride, size, inner)
    spread = _Spread(others, {a.source: [] for a in axes})

    def hand_out(levels: Sequence[Level], order: Sequence[int]) -> None:
        for level in levels:
            for digit in spread.free(level, target):
                axis = next((old for old in order if rest[old] > 1), None)
                if axis is not None:
                    give(level, digit.stride, digit.size, axis)

    hand_out((Level.PE,), order)
    outer = list(rest)[:1]
    hand_out((Level.L2B, Level.L1B), outer)
    for axis in outer:
        others[axis] = _outer_highest(others[axis])
    spread = _filled(spread, axes, _levels(node, graph, target), target)
    hand_out(tuple(reversed(UNIT_LEVELS)), order)
    for axis in rest:
        others[axis] = closed(others[axis], whole[axis])
    return spread


def _apart(node: MNNode, graph: MNGraph, target: Target) -> _Spread:
    """Give the outermost units to the last axis that stays, so that halos do not cross them."""
    source = graph.values[node.inputs[0]]
    axes, stay = tiled_axes(node, graph), other_axes(node, graph)
    others: dict[int, list[Part]] = {axis.source: [] for axis in stay}
    inner = stay[-1]
    rest, lo = inner.reach, 1
    ranges = [(Level.PE, target.level_range["PE"])]
    if source.dtype.words_per_long > WORDS_PER_LONG:
        ranges.insert(0, (Level.W, source.dtype.words_per_long))
    for level in (Level.L2B, Level.L1B):
        ranges.append((level, target.level_range[level.value]))
    for level, size in ranges:
        for stride, digit in primes(size):
            if rest > 1:
                others[inner.source].append(Part(lo, digit, level, stride))
                rest, lo = -(-rest // digit), lo * digit
    for axis in stay:
        others[axis.source] = closed(others[axis.source], axis.reach)
    return _Spread(others, {axis.source: [] for axis in axes})


def _outer_highest(found: Sequence[Part]) -> list[Part]:
    """Return the digits of an axis with those of L1Bs below those of L2Bs, as products have them.

    An inner level can then leave its digits to Addr.
    """
    levels = (Level.L1B, Level.L2B)
    inner = [part for part in found if part.level not in levels]
    ordered = [part for level in levels for part in found if part.level is level]
    out: list[Part] = []
    for part in (*inner, *ordered):
        out.append(part._replace(lo=prod(p.size for p in out)))
    return out


def _laid_out(
    spread: _Spread, node: MNNode, graph: MNGraph, target: Target, hints: Layouts
) -> Layouts | None:
    """Return the layouts of a spread; None if they are not legal."""
    source, result = (graph.values[name] for name in (node.inputs[0], node.outputs[0]))
    ours = {axis.source: list(spread.others[axis.source]) for axis in other_axes(node, graph)}
    theirs = {axis.result: ours[axis.source] for axis in other_axes(node, graph)}
    steps = spread.steps
    for axis in tiled_axes(node, graph):
        digits, step = spread.tiles[axis.source], steps.get(axis.source, 0)
        local = -(-axis.count // prod(d.size for d in digits))
        inside = [Part(1, axis.places, Level.ADDR, step)]
        reach = [Part(1, axis.reach, Level.ADDR, step)]
        # Tiles of one PE lie outside of everything else.
        tiles = [Part(1, local, Level.ADDR, 1 << 30)] if local > 1 else []
        for digit in merged(digits):
            lo = prod(part.size for part in tiles)
            tiles.append(Part(lo, digit.size, digit.level, digit.stride))
        if axis.count > 1:
            theirs[axis.tiles] = tiles
        theirs[axis.inner] = reach
        ours[axis.source] = inside + [p._replace(lo=p.lo * axis.places) for p in tiles]
    like = hints.get(source.name) or hints.get(result.name) or Layout(())
    out: dict[str, Layout] = {}
    for value, placed in ((source, ours), (result, theirs)):
        made = built(value.shape, _dense(placed), like, value.dtype, target)
        if made is None:
            return None
        out[value.name] = made
    return out


def _dense(placed: Mapping[int, Sequence[Part]]) -> dict[int, list[Part]]:
    """Return the parts with dense strides in Addr, in the order of the strides that they have."""
    local = [
        (part.stride, -axis, part.lo)
        for axis, found in placed.items()
        for part in found
        if part.level is Level.ADDR and part.size > 1
    ]
    strides: dict[tuple[int, int], int] = {}
    stride = 1
    for _, axis, lo in sorted(local):
        strides[-axis, lo] = stride
        stride *= next(
            p.size for p in placed[-axis] if p.lo == lo and p.level is Level.ADDR and p.size > 1
        )
    return {
        axis: [
            part._replace(stride=strides[axis, part.lo]) if part.level is Level.ADDR else part
            for part in found
            if part.size > 1
        ]
        for axis, found in placed.items()
    }


def refusals(node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
    """Yield the reasons why tiles cannot be made in the layouts that a node has."""
    source, result = (graph.values[name] for name in (node.inputs[0], node.outputs[0]))
    ours, theirs = layout_of(source), layout_of(result)
    left, right = parts(ours, input_shape(node, graph)), parts(theirs, result.shape)
    ranges = all_ranges(target.level_range, source.dtype)
    for level in (Level.W, *UNIT_LEVELS):
        have, want = (copied_digits(layout, level, ranges) for layout in (ours, theirs))
        if not want <= have:
            yield f"`{source.name}` without the copies on {level.value} of `{result.name}`"
    for other in other_axes(node, graph):
        if levels(left[other.source]) != levels(right[other.result]):
            yield f"axis {other.result} of `{result.name}` on other units than in `{source.name}`"
        _, words = zero_words(other, theirs)
        # Words shorter than 32 bits cannot be written alone.
        if source.dtype.words_per_long > WORDS_PER_LONG and any(w is not None for w, _ in words):
            yield f"zeros within long words of axis {other.result}"
    for axis in tiled_axes(node, graph):
        if any(part.level is not Level.ADDR for part in right[axis.inner]):
            yield f"the places of tiles of axis {axis.source} on units"
        yield from _misplaced(axis, source.name, ours, theirs)


def _misplaced(axis: TiledAxis, name: str, ours: Layout, theirs: Layout) -> Iterator[str]:
    """Yield the reasons why the tiles of an axis of a value do not lie as its elements do."""
    digits = tile_digits(theirs, axis)
    if digits is None:
        yield f"the tiles of axis {axis.source} in layout {theirs}"
        return
    tiles = digits.local.size * prod(group.size for group in digits.groups)
    if axis.ring and (tiles != axis.count or axis.count * axis.places != axis.size):
        yield f"the ring of axis {axis.source} in tiles that it does not fill"
    # An element lies in the unit of its tile, and all PEs have it at the same address.
    index = np.arange(axis.size, dtype=np.int64)
    tile, place = index // axis.places, index % axis.places
    found = coordinates(ours, axis.source, index)
    wanted = coordinates(theirs, axis.tiles, tile) if axis.count > 1 else {}
    at, _ = found.pop(Level.ADDR, 0 * index), wanted.pop(Level.ADDR, None)
    if found.keys() != wanted.keys() or any((found[lv] != wanted[lv]).any() for lv in found):
        yield f"axis {axis.source} of `{name}` on other units than its tiles"
        return
    first = tile % digits.local.size * axis.places + place
    local = coordinates(ours, axis.source, first)
    if (at != local.pop(Level.ADDR, 0 * index)).any() or local:
        yield f"the tiles of axis {axis.source} at different addresses"
