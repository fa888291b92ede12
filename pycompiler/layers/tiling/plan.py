"""The steps of MNCoreTiles: a copy of the tiles' own places, then halo and zeros axis by axis.

The exchange of an axis works on the result. A later axis also exchanges the halo of the axes before
it, so corners come right. Per axis there is one pass for each level that the tiles lie on, minor
levels first. The first pass gives each tile the places of its neighbour. Where the neighbour lies
in another unit of the next level, that level's pass then brings its places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...graph.digits import parts
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Layout, Level
from ...machine import IntArray, Target
from ..base import layout_of
from ..switch.pass_moves import Moves
from .axes import (
    ExtendedAxis,
    Group,
    TiledAxis,
    TileDigits,
    addresses,
    input_shape,
    other_axes,
    tile_digits,
    tiled_axes,
    zero_words,
)

#: A bit for every chosen unit of a level. Levels that are left out have all their units chosen.
Units = Mapping[Level, int]


@dataclass(frozen=True, eq=False)
class Exchange:
    """A pass over ``level`` in parts: only the chosen units of a part write."""

    level: Level
    parts: Sequence[tuple[Moves, Units]]


@dataclass(frozen=True, eq=False)
class Zeros:
    """The long words ``at`` of the chosen ``units``, or one ``word`` of them, become 0."""

    at: IntArray
    units: Units
    word: int | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """``copies`` are pairs of result and source addresses; the other steps follow in order."""

    copies: IntArray
    steps: tuple[Exchange | Zeros, ...]


def plan(node: MNNode, graph: MNGraph, target: Target) -> Plan:
    """Return the steps of a node whose layouts its layer accepts."""
    source, result = (graph.values[name] for name in (node.inputs[0], node.outputs[0]))
    ours, theirs = layout_of(source), layout_of(result)
    axes = tiled_axes(node, graph)
    found = {axis: _digits(theirs, axis) for axis in axes}
    fixed_to, fixed_from = np.zeros(1, np.int64), np.zeros(1, np.int64)
    left, right = parts(ours, input_shape(node, graph)), parts(theirs, result.shape)
    for other in other_axes(node, graph):
        strides = {p.lo: p.stride for p in left[other.source] if p.level is Level.ADDR}
        for part in right[other.result]:
            if part.level is Level.ADDR:
                step = np.arange(part.size, dtype=np.int64)
                fixed_to = _outer(fixed_to, step * part.stride)
                fixed_from = _outer(fixed_from, step * strides[part.lo])
    goal, origin = fixed_to, fixed_from
    for axis in axes:
        to, fro = _own(axis, found[axis], ours, theirs)
        goal, origin = _outer(goal, to), _outer(origin, fro)
    copies = np.unique(np.stack([goal, origin], axis=1), axis=0)
    steps: list[Exchange | Zeros] = []
    for extended in other_axes(node, graph):
        if extended.reach > extended.size:
            steps += _extension(extended, theirs, goal, target)
    for number, axis in enumerate(axes):
        others = fixed_to
        for place, beside in enumerate(axes):
            if place != number:
                index = range(beside.reach) if place < number else beside.own
                at = addresses(theirs, beside.inner, np.array(index, dtype=np.int64))
                others = _outer(others, _outer(found[beside].local, at))
        reach = addresses(theirs, axis.inner, np.arange(axis.reach, dtype=np.int64))
        steps += _exchanges(axis, found[axis], others, reach, target)
        steps += _zeros(axis, found[axis], others, reach, target)
    return Plan(copies, tuple(steps))


def exchanges_l2bs(node: MNNode, graph: MNGraph) -> bool:
    """Whether halos come from other L2Bs."""
    layout = layout_of(graph.values[node.outputs[0]])
    groups = [g for axis in tiled_axes(node, graph) for g in _digits(layout, axis).groups]
    return any(group.level is Level.L2B for group in groups)


def _digits(layout: Layout, axis: TiledAxis) -> TileDigits:
    found = tile_digits(layout, axis)
    assert found is not None
    return found


def _outer(one: IntArray, other: IntArray) -> IntArray:
    return (one[:, None] + other).reshape(-1)


def _own(
    axis: TiledAxis, digits: TileDigits, ours: Layout, theirs: Layout
) -> tuple[IntArray, IntArray]:
    """Return the addresses of the tiles' own places in the result and in the source."""
    place = np.array(axis.own, dtype=np.int64)
    tile = np.arange(digits.local.size, dtype=np.int64)
    index = (tile[:, None] * axis.places + place - axis.before).reshape(-1)
    to = (digits.local[:, None] + addresses(theirs, axis.inner, place)).reshape(-1)
    inside = index < axis.size
    return to[inside], addresses(ours, axis.source, index[inside])


# -- halo ------------------------------------------------------------------------------------


def _exchanges(
    axis: TiledAxis, digits: TileDigits, others: IntArray, reach: IntArray, target: Target
) -> Iterator[Exchange]:
    """Yield the passes that bring the halo of an axis."""
    halo = [
        (r, away)
        for r in range(axis.reach)
        if (away := (r - axis.before) // axis.places) and (axis.ring or abs(away) < axis.count)
    ]
    if not halo:
        return
    count = digits.local.size
    groups = digits.groups or (Group(Level.MAB, ()),)
    rows = [(tile, r, away) for tile in range(count) for r, away in halo]
    goal = np.array([digits.local[tile] + reach[r] for tile, r, _ in rows])
    origin = np.array(
        [
            digits.local[(tile + away) % count] + reach[r - away * axis.places]
            for tile, r, away in rows
        ]
    )
    carry = np.array([(tile + away) // count for tile, _, away in rows])
    last = len(groups) == 1 and not axis.ring
    moves = _moves(groups[0], goal, origin, carry, others, last, target)
    yield Exchange(groups[0].level, [(moves, {})])
    for number, group in enumerate(groups[1:], 1):
        below = groups[:number]
        tiles = count * np.arange(int(np.prod([g.size for g in below])), dtype=np.int64)
        last = number == len(groups) - 1 and not axis.ring
        passes: list[tuple[Moves, Units]] = []
        for (step, chosen), found in _from_afar(rows, tiles, count).items():
            at = np.array([digits.local[tile] + reach[r] for tile, r in found])
            amount = np.full(at.size, step)
            moves = _moves(group, at, at, amount, others, last, target)
            covers = _covers(np.frombuffer(chosen, dtype=bool), below, target)
            passes += [(moves, units) for units in covers]
        if passes:
            yield Exchange(group.level, passes)


def _from_afar(
    rows: Sequence[tuple[int, int, int]], tiles: IntArray, count: int
) -> dict[tuple[int, bytes], list[tuple[int, int]]]:
    """Return the rows that come from so many units away to the same ones of ``tiles``."""
    found: dict[tuple[int, bytes], list[tuple[int, int]]] = {}
    for tile, r, away in rows:
        over = (tile + tiles + away) // (count * tiles.size)
        for step in np.unique(over[over != 0]).tolist():
            found.setdefault((step, (over == step).tobytes()), []).append((tile, r))
    return found


def _moves(
    group: Group,
    goal: IntArray,
    origin: IntArray,
    carry: IntArray,
    others: IntArray,
    last: bool,
    target: Target,
) -> Moves:
    """Return the moves that bring ``origin`` of the unit ``carry`` tiles further up to ``goal``.

    The last group has no neighbours behind its ends. In the others, the ends are neighbours, and
    the next pass brings what they should have.
    """
    value = group.values(target)
    unit = np.arange(value.size, dtype=np.int64)
    moved = value + carry[:, None]
    source = unit - group.units[value] + group.units[moved % group.size]
    # Where the digits of a level do not use all its units, the others may have no neighbours.
    kept = (source >= 0) & (source < value.size)
    if last:
        kept &= (moved >= 0) & (moved < group.size)

    def spread(per_row: IntArray, per_move: IntArray) -> IntArray:
        every: IntArray = np.broadcast_to(per_row, kept.shape)[kept]
        return np.asarray(every[:, None] + per_move).reshape(-1)

    none = np.zeros_like(others)
    return Moves(
        spread(unit, none),
        spread(goal[:, None], others),
        spread(source, none),
        spread(origin[:, None], others),
    )


# -- zeros -----------------------------------------------------------------------------------


def _zeros(
    axis: TiledAxis, digits: TileDigits, others: IntArray, reach: IntArray, target: Target
) -> Iterator[Zeros]:
    """Yield the places of an axis that no element of it has."""
    if axis.ring:
        return
    count = digits.local.size
    tiles = count * np.arange(int(np.prod([g.size for g in digits.groups])), dtype=np.int64)
    alike: dict[bytes, list[int]] = {}
    for tile in range(count):
        for r in range(axis.reach):
            index = (tile + tiles) * axis.places + r - axis.before
            outside = (index < 0) | (index >= axis.size)
            if outside[tile + tiles < axis.count].any():
                at = int(digits.local[tile] + reach[r])
                alike.setdefault(outside.tobytes(), []).append(at)
    for chosen, found in alike.items():
        rows = np.sort(_outer(np.array(found), others))
        for units in _covers(np.frombuffer(chosen, dtype=bool), digits.groups, target):
            yield Zeros(rows, units)


def _extension(
    axis: ExtendedAxis, layout: Layout, goal: IntArray, target: Target
) -> Iterator[Zeros]:
    """Yield the zeros that make an axis longer; ``goal`` are the long words in use."""
    levels, alike = zero_words(axis, layout)
    digits = [sub for sub in layout.axes[axis.result] if sub.level is Level.ADDR]
    for (which, chosen), addresses_here in alike.items():
        mine = np.zeros_like(goal)
        for sub in digits:
            mine += goal // sub.stride % sub.size * sub.stride
        rows = np.unique(goal[np.isin(mine, addresses_here)])
        for product in _tuples(chosen):
            bits: dict[Level, int] = {}
            for level, own in zip(levels, product, strict=True):
                unit = np.arange(target.level_range[level.value])
                value = sum(
                    unit // sub.stride % sub.size * sub.stride
                    for sub in layout.axes[axis.result]
                    if sub.level is level
                )
                inside = np.flatnonzero(np.isin(value, own)).tolist()
                if len(inside) < unit.size:
                    bits[level] = sum(1 << number for number in inside)
            yield Zeros(rows, bits, which)


def _tuples(chosen: frozenset[tuple[int, ...]]) -> Iterator[tuple[list[int], ...]]:
    """Yield products of sets of numbers, one set per place, that together hold these tuples."""
    if chosen == {()}:
        yield ()
        return
    below: dict[int, set[tuple[int, ...]]] = {}
    for first, *rest in chosen:
        below.setdefault(first, set()).add(tuple(rest))
    alike: dict[frozenset[tuple[int, ...]], list[int]] = {}
    for first, found in sorted(below.items()):
        alike.setdefault(frozenset(found), []).append(first)
    for rests, firsts in alike.items():
        for product in _tuples(rests):
            yield (firsts, *product)


def _covers(chosen: np.ndarray, groups: Sequence[Group], target: Target) -> Iterator[Units]:
    """Yield sets of units, level by level, that together hold exactly the ``chosen`` tiles."""
    table = chosen.reshape([group.size for group in reversed(groups)])
    for values in _products(table):
        out: dict[Level, int] = {}
        for group, own in zip(reversed(groups), values, strict=True):
            if len(own) < group.size:
                inside = np.isin(group.values(target), own)
                out[group.level] = sum(1 << unit for unit in np.flatnonzero(inside).tolist())
        yield out


def _products(table: np.ndarray) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield products of sets of indices, one set per axis, that cover the table without overlap."""
    if table.ndim == 0:
        yield ()
        return
    alike: dict[bytes, list[int]] = {}
    for index, row in enumerate(table):
        alike.setdefault(row.tobytes(), []).append(index)
    for indices in alike.values():
        row = table[indices[0]]
        if row.any():
            for rest in _products(row):
                yield (tuple(indices), *rest)
