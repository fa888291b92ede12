"""The axes that MNCoreTiles cuts, and the places of their tiles under a layout.

A tile has ``reach`` places. Place ``r`` of tile ``t`` is element ``t * places + r - before`` of the
axis, and 0 if the axis has no such element. So ``places`` elements are a tile's own. The others are
its *halo*: elements that are its neighbours' own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Layout, Level, SubAxis
from ...machine import IntArray, Target
from ...pfvm.device_functions import TILE_FACTS, TILE_RINGS

#: The levels that tiles may lie on, in the order of their digits: minor first.
TILE_LEVELS = (Level.PE, Level.MAB, Level.L1B, Level.L2B)


@dataclass(frozen=True)
class TiledAxis:
    """Axis ``source`` of the input, with ``size`` elements, that is cut into ``count`` tiles.

    ``tiles`` is the axis of the tiles in the result. The places of a tile are the axis behind it.
    With one tile there is no axis of tiles: ``tiles`` is the axis of the places. The ends of a
    ``ring`` are neighbours: its tiles take all elements, and no place is 0.
    """

    source: int
    tiles: int
    size: int
    count: int
    places: int
    before: int
    reach: int
    ring: bool = False

    @property
    def inner(self) -> int:
        """The axis of the places of a tile in the result."""
        return self.tiles + (self.count > 1)

    @property
    def own(self) -> range:
        """The places of a tile that are its own, as far as the tile reaches."""
        return range(self.before, min(self.reach, self.before + self.places))


@dataclass(frozen=True)
class ExtendedAxis:
    """Axis ``source`` of the input, axis ``result`` of the result, that zeros make longer.

    Elements ``size`` to ``reach`` are zeros. The axis may lie on any digits.
    """

    source: int
    result: int
    size: int
    reach: int


def _axes(node: MNNode, graph: MNGraph) -> Iterator[TiledAxis | ExtendedAxis]:
    """Yield every axis of the input; one that does not change is extended by nothing."""
    facts = dict(node.attributes)
    columns = [tuple(int(v) for v in facts[name]) for name in TILE_FACTS]  # type: ignore[union-attr]
    given = {axis: numbers for axis, *numbers in zip(*columns, strict=True)}
    rings = facts.get(TILE_RINGS, (0,) * len(given))
    ends = dict(zip(given, rings, strict=True))  # type: ignore[arg-type]
    place = 0
    for axis, size in enumerate(graph.values[node.inputs[0]].shape):
        count, places, before, reach = given.get(axis, (1, size, 0, size))
        if count == 1 and not before and reach >= size:
            yield ExtendedAxis(axis, place, size, reach)
        else:
            ring = bool(ends.get(axis, 0))
            yield TiledAxis(axis, place, size, count, places, before, reach, ring)
        place += 1 + (count > 1)


def tiled_axes(node: MNNode, graph: MNGraph) -> tuple[TiledAxis, ...]:
    """Return the axes that a node cuts, in the order in which their halos are exchanged."""
    return tuple(axis for axis in _axes(node, graph) if isinstance(axis, TiledAxis))


def other_axes(node: MNNode, graph: MNGraph) -> tuple[ExtendedAxis, ...]:
    """Return the axes that are not cut, with those that zeros make longer."""
    return tuple(axis for axis in _axes(node, graph) if isinstance(axis, ExtendedAxis))


def whole_words(node: MNNode, graph: MNGraph, dtype: MNDtype) -> bool:
    """Whether the zeros behind an axis can take whole long words of ``dtype``."""
    words = dtype.words_per_long
    return all(
        axis.size == axis.reach or axis.size % words == 0 for axis in other_axes(node, graph)
    )


def input_shape(node: MNNode, graph: MNGraph) -> tuple[int, ...]:
    """Return the shape of the input with the zeros at the ends of axes that are not cut."""
    return tuple(
        axis.size if isinstance(axis, TiledAxis) else axis.reach for axis in _axes(node, graph)
    )


@dataclass(frozen=True)
class Group:
    """The digits of tiles on one level, minor first."""

    level: Level
    digits: tuple[SubAxis, ...]

    @cached_property
    def size(self) -> int:
        """The number of values of the digits together."""
        return prod(digit.size for digit in self.digits)

    @cached_property
    def units(self) -> IntArray:
        """What each value of the digits adds to the number of the unit."""
        return _sums(self.digits)

    def values(self, target: Target) -> IntArray:
        """Return for every unit of the level the value of the digits."""
        number = np.arange(target.level_range[self.level.value], dtype=np.int64)
        value, weight = np.zeros_like(number), 1
        for digit in self.digits:
            value += number // digit.stride % digit.size * weight
            weight *= digit.size
        return value


@dataclass(frozen=True)
class TileDigits:
    """The digits of an axis of tiles: ``local`` are the addresses of tiles in one PE.

    The tiles of a PE are neighbours. Above them stand the digits on units, minor group first.
    """

    local: IntArray
    groups: tuple[Group, ...]


def tile_digits(layout: Layout, axis: TiledAxis) -> TileDigits | None:
    """Return the digits of the tiles in a layout of the result.

    None if they do not lie as the layer needs them: first Addr, then each level at most once, from
    PEs to L2Bs.
    """
    if axis.count == 1:
        return TileDigits(np.zeros(1, np.int64), ())
    subs = [sub for sub in reversed(layout.axes[axis.tiles]) if sub.size > 1]
    local: list[SubAxis] = []
    groups: list[Group] = []
    for sub in subs:
        if sub.level is Level.ADDR:
            if groups:
                return None
            local.append(sub)
        elif sub.level not in TILE_LEVELS:
            return None
        elif groups and groups[-1].level is sub.level:
            groups[-1] = Group(sub.level, (*groups[-1].digits, sub))
        elif groups and TILE_LEVELS.index(groups[-1].level) > TILE_LEVELS.index(sub.level):
            return None
        else:
            groups.append(Group(sub.level, (sub,)))
    return TileDigits(_sums(local), tuple(groups))


def _sums(digits: tuple[SubAxis, ...] | list[SubAxis]) -> IntArray:
    """Return what each combination of digits, minor first, adds to the coordinate."""
    out = np.zeros(1, dtype=np.int64)
    for digit in digits:
        steps = np.arange(digit.size, dtype=np.int64) * digit.stride
        out = (steps[:, None] + out).reshape(-1)
    return out


def coordinates(layout: Layout, axis: int, index: IntArray) -> dict[Level, IntArray]:
    """Return what indices of an axis add to the coordinate of each level."""
    out: dict[Level, IntArray] = {}
    rest = index
    for sub in reversed(layout.axes[axis]):
        out[sub.level] = out.get(sub.level, 0 * index) + rest % sub.size * sub.stride
        rest = rest // sub.size
    return {level: found for level, found in out.items() if found.any()}


def addresses(layout: Layout, axis: int, index: IntArray) -> IntArray:
    """Return what indices of an axis add to the address."""
    return coordinates(layout, axis, index).get(Level.ADDR, 0 * index)


#: A word of a long word (None: all words), and the units that have it, as numbers by level.
WordOfUnits = tuple[int | None, frozenset[tuple[int, ...]]]


def zero_words(
    axis: ExtendedAxis, layout: Layout
) -> tuple[list[Level], dict[WordOfUnits, list[int]]]:
    """Return the words that the zeros of an axis take in the result.

    The result is the levels of the units, and what the zeros add to the address for each word of
    units.
    """
    index = np.arange(axis.size, axis.reach, dtype=np.int64)
    found = coordinates(layout, axis.result, index)
    at, word = (found.pop(level, 0 * index) for level in (Level.ADDR, Level.W))
    words = _sums([sub for sub in reversed(layout.axes[axis.result]) if sub.level is Level.W])
    levels = list(found)
    places: dict[tuple[int, int], set[tuple[int, ...]]] = {}
    for number in range(index.size):
        unit = tuple(int(found[level][number]) for level in levels)
        places.setdefault((int(at[number]), int(word[number])), set()).add(unit)
    out: dict[WordOfUnits, list[int]] = {}
    for (address, which), units in sorted(places.items()):
        whole = all(places.get((address, other)) == units for other in words.tolist())
        if not whole or not which:
            out.setdefault((None if whole else which, frozenset(units)), []).append(address)
    return levels, out
