"""The places at which nodes of a stencil work: origins, margins, and tiles of axes.

Element ``i`` of a value is at place ``i`` plus its *origin*. Each tile has some places as its own.
A value has *margins*: places before and behind those of a tile that the tile has too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from ..cost.pieces import carried_cycles, exchange_cycles, operator_cycles
from ..graph.disjoint_sets import DisjointSets
from ..graph.graph import MNGraph, MNNode
from ..layers.tiling.axes import TILE_LEVELS
from ..machine import IntArray, Target
from .stencil_windows import Shape, Window

#: The tiles of a PE take at most this share of LM0, and at most so many axes are cut.
_SHARE, _AXES = 1 / 4, 4
#: guess: to put what lies around a ring at the ends of an axis costs as much as so many rolls.
_ROLLS = 2.5
#: Halos come from at most so many tiles on each side.
_NEIGHBOURS = 4
#: Places before and behind those of a tile, by axis.
Margin = IntArray


@dataclass
class Group:
    """Elementwise nodes that work on tiles of the same places, and the windows that they read.

    ``moved`` are windows that others read of what the nodes make. ``spread`` are values that have
    one element along some axes, for all places there. ``outer`` are values that others read whole.
    ``origins`` are those of what the nodes make; those of other values are 0.
    """

    rank: int
    nodes: list[MNNode] = field(default_factory=list)
    windows: dict[str, Window] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    spread: set[str] = field(default_factory=set)
    shapes: dict[str, Shape] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)
    origins: dict[str, IntArray] = field(default_factory=dict)

    def rings(self) -> frozenset[int]:
        """Return the axes along which a window reads a value as a ring."""
        return frozenset().union(*(one.rings for one in self.windows.values()))

    def source(self, name: str) -> str:
        """Return the value of which a value is a window."""
        return self.windows[name].source if name in self.windows else name

    def sources(self) -> dict[str, list[Shape]]:
        """Return the offsets of all windows of each value."""
        found: dict[str, list[Shape]] = {}
        for window in self.windows.values():
            found.setdefault(window.source, []).append(window.offset)
        return found

    def zeros(self) -> set[str]:
        """Return the values that windows read beyond their ends: tiles have zeros there."""
        return {window.source for window in self.windows.values() if window.zeros}

    def shift(self, name: str, reader: str = "") -> IntArray:
        """Return at how many places from its own a value is read: by ``reader``, or by others."""
        nothing = np.zeros(self.rank, np.int64)
        if name in self.spread:
            return -self.origins.get(reader, nothing) * self.along(name)
        if name not in self.windows:
            return nothing
        here, there = (self.origins.get(one, nothing) for one in (self.source(name), reader))
        return np.asarray(self.windows[name].offset) + here - there

    def along(self, name: str) -> IntArray:
        """Return for each axis whether a value that is spread has more than one element there."""
        shape = self.shapes[name]
        return np.array([size > 1 for size in (*(1,) * (self.rank - len(shape)), *shape)])

    def find_origins(self) -> None:
        """Let what a Pad puts into a larger value be at its places there, where others let it.

        What nodes hand each other has one origin. A ring has no places around it.
        """
        made, whole = {node.outputs[0] for node in self.nodes}, DisjointSets[str]()
        for node in self.nodes:
            for name in made & {*node.inputs}:
                whole.join(node.outputs[0], name)
        self.origins = dict.fromkeys(made, np.zeros(self.rank, np.int64))
        still = {whole.root(name) for name in (self.outer | self.zeros()) & made}
        for node in reversed(self.nodes):
            for name in self.windows.keys() & {*node.inputs} - made:
                source, back = self.source(name), -self.shift(name, node.outputs[0])
                back[[*self.rings()]] = 0
                if source in made and whole.root(source) not in still and back.max() > 0:
                    found = np.maximum(0, self.origins[source] + back)
                    self.origins |= {n: found for n in made if whole.root(n) == whole.root(source)}


@dataclass(frozen=True)
class Tile:
    """How an axis is cut: the number of tiles, and the places that are a tile's own.

    If it ``wraps``, what lies around a ring is put at the ends of values before they are cut.
    """

    count: int
    places: int
    wraps: bool = False


@dataclass
class Reach:
    """The margins of values: those that nodes ``make``, those of tiles that are ``cut``.

    Tiles are cut from values from outside, and from some that nodes make: these are joined first,
    and neighbours exchange their halos. What other nodes make has the margins that its readers
    need, which several tiles calculate then. ``copies`` are the margins of windows.
    """

    made: dict[str, Margin]
    cut: dict[str, Margin] = field(default_factory=dict)
    copies: list[Margin] = field(default_factory=list)

    @cached_property
    def stacked(self) -> tuple[IntArray, IntArray, IntArray]:
        """The margins of what is made, cut and copied."""
        first = next(iter(self.made.values())).shape
        found = self.made.values(), self.cut.values(), self.copies
        made, cut, copies = (np.array([*own], np.int64).reshape(-1, *first) for own in found)
        return made, cut, copies


def _reach(group: Group, most: int) -> Reach:
    """Return the margins if no value that a node makes has more than ``most`` places as one."""
    none, zeros = np.zeros((2, group.rank), np.int64), group.zeros()
    found = Reach({node.outputs[0]: none for node in group.nodes})

    def read(name: str, need: Margin, reader: str = "") -> None:
        shift, source = group.shift(name, reader), group.source(name)
        found.copies += [need] * bool(shift.any())
        where = found.made if source in found.made else found.cut
        where[source] = np.maximum(where.get(source, none), need + np.outer((-1, 1), shift))

    for name in group.moved:
        read(name, none)
    for node in reversed(group.nodes):
        (out,) = node.outputs
        if out in zeros or found.made[out].max() > most:
            found.cut[out], found.made[out] = found.made[out], none
        for name in dict.fromkeys(node.inputs):
            if name in group.windows or name in found.made or name in group.spread:
                read(name, found.made[out], out)
    return found


def tiles_of(group: Group, graph: MNGraph, target: Target) -> tuple[dict[int, Tile], Reach] | None:
    """Return the tiles of each axis that is cut, with the least time, and margins; None if none."""
    names = {*group.windows, *group.sources(), *group.origins}
    shapes = np.array([graph.values[name].shape for name in names])
    ends = [group.origins[name] + graph.values[name].shape for name in group.origins]
    sizes, least = np.max([*shapes, *ends], axis=0), shapes.min(axis=0)
    offsets = [np.array(own) for own in group.sources().values()]
    apart = any((own.max(axis=0) - own.min(axis=0) >= least).any() for own in offsets)
    cut = np.any(np.concatenate(offsets) != 0, axis=0) | (sizes > least)
    axes, rings = np.flatnonzero(cut).tolist(), group.rings()
    zeros = any(one.zeros and one.offset[axis] for one in group.windows.values() for axis in rings)
    if apart or zeros or len(axes) > _AXES or any(sizes[a] > least[a] for a in rings):
        return None
    depths = {int(margin.max()) for margin in _reach(group, int(sizes.max())).made.values()}
    reaches = [_reach(group, depth) for depth in sorted({0, *depths})]
    counts = _counts([sizes[axis] for axis in axes], target)
    ways = [
        (_tiles(sizes, dict(zip(axes, own, strict=True)), rings, reach), reach)
        for own, reach in product(counts, reaches)
    ]
    costs = [_cycles(group, sizes, *way, target) for way in ways]
    best = min(range(len(ways)), key=costs.__getitem__, default=None)
    return None if best is None or costs[best] is np.inf else ways[best]


def _units(target: Target) -> int:
    return prod(target.level_range[level.value] for level in TILE_LEVELS)


def _counts(sizes: Sequence[int], target: Target) -> list[Shape]:
    """Return the numbers of tiles of axes: powers of two, together on the units."""
    powers = [1 << k for k in range(_units(target).bit_length())]
    found = product(*([n for n in powers if n <= size] for size in sizes))
    return [own for own in found if 1 < prod(own) <= _units(target)]


def _tiles(
    sizes: IntArray, counts: Mapping[int, int], rings: Collection[int], reach: Reach
) -> dict[int, Tile]:
    """Return so many tiles of axes; those of a ring take all its elements, or it wraps."""
    found: dict[int, Tile] = {}
    for axis, count in counts.items():
        size = int(sizes[axis])
        wraps = axis in rings and (count == 1 or size % count > 0)
        if wraps:
            size += max((int(margin[:, axis].sum()) for margin in reach.cut.values()), default=0)
        found[axis] = Tile(count, -(-size // count), wraps)
    return found


def _cycles(
    group: Group, sizes: IntArray, tiles: Mapping[int, Tile], reach: Reach, target: Target
) -> float:
    """Return about how long a group takes; infinite if its tiles cannot be."""
    made, cut, copies = reach.stacked
    axes, every = [*tiles], [*tiles.values()]
    places, count = np.array([tile.places for tile in every]), prod(tile.count for tile in every)
    many = [axis for axis, tile in tiles.items() if tile.count > 1]
    wraps = [axis for axis, tile in tiles.items() if tile.wraps]
    around = np.count_nonzero(cut[:, :, wraps].any(axis=1))
    moves = sum(any(one.offset) for one in group.windows.values())

    def held(margins: IntArray) -> list[int]:
        found: list[int] = np.prod(margins[:, :, axes].sum(axis=1) + places, axis=1).tolist()
        return found

    beyond = cut[:, :, many] > _NEIGHBOURS * np.array([tiles[axis].places for axis in many])
    # Time slices do not cut tiles.
    large = max(held(made) + held(cut)) > target.words("lm0") * _SHARE
    again = around and reach.cut.keys() & reach.made.keys()
    if beyond.any() or large or again or _ROLLS * around > moves:
        return np.inf
    units, outside = _units(target), len(reach.cut.keys() - reach.made.keys())
    crosses = count > units // target.level_range[TILE_LEVELS[-1].value]
    far = int(crosses * np.count_nonzero(cut[:, :, many[0]].any(axis=1)))
    groups = -(-count * target.groups // units)
    return (
        exchange_cycles(int(np.count_nonzero(cut[:, :, many])), far, target)
        + carried_cycles((1 + outside) * int(np.prod(sizes)), groups, target)
        + operator_cycles(held(made), held(copies))
    )
