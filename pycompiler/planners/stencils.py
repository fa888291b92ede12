"""Elementwise operators on shifted slices of one value work on tiles with a halo.

A Slice that is shifted by an element is a layout switch of the whole value. Here each value is cut
into tiles once, with the elements that the neighbours' shifted slices need. The slices of a tile
then lie in the PE that has it, and what the operators make of them is cut in the same way. Zeros of
a Pad are places outside of the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from ..graph.disjoint_sets import DisjointSets
from ..graph.draft import Edit
from ..graph.dtypes import device_dtype
from ..graph.graph import MNGraph, MNNode, TensorType
from ..graph.rewrite import Facts, FlowRewrite
from ..layers.crop import CROP
from ..layers.elementwise import Elementwise
from ..layers.operators import LAYERS
from ..layers.tiling.axes import TILE_LEVELS
from ..machine import Target
from ..pfvm.device_functions import TILE_FACTS, TILE_RINGS, TILES
from ..pfvm.names import reserved
from .stencil_windows import MOVES, Shape, Window, window_of, windows_of

#: The element types of values that are cut.
_CUT = ("float", "double", "bool")
#: The tiles of a PE take at most this share of LM0, and at most so many axes are cut.
_SHARE, _AXES = 1 / 4, 4
#: Halos come from at most so many tiles on each side.
_NEIGHBOURS = 4


@dataclass
class _Group:
    """Elementwise nodes that work on tiles of the same places, and the windows that they read.

    ``moved`` are windows that others read of what the nodes make. ``spread`` are values that have
    one element along some axes, for all places there.
    """

    nodes: list[MNNode] = field(default_factory=list)
    windows: dict[str, Window] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    spread: set[str] = field(default_factory=set)

    def rings(self, source: str) -> frozenset[int]:
        """Return the axes along which windows of a value read it as a ring."""
        own = [one.rings for one in self.windows.values() if one.source == source]
        return frozenset().union(*own)

    def sources(self) -> dict[str, list[Shape]]:
        """Return the offsets of all windows of each value."""
        found: dict[str, list[Shape]] = {}
        for window in self.windows.values():
            found.setdefault(window.source, []).append(window.offset)
        return found


@dataclass(frozen=True)
class _Tile:
    """How an axis is cut: the number of tiles, and the places that are a tile's own."""

    count: int
    places: int


def _tiled(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Cut x with a halo: x[1:] + x[:-1] adds slices of each tile of x."""
    kept = {*facts.exact, *(name for _, name in graph.outputs)}
    taken = {*graph.values, *(node.name for node in graph.nodes)}
    readers, unread, gone = graph.readers(), set[tuple[str, str]](), set[str]()
    whole = set(kept)
    for group in _groups(graph, kept, readers):
        tiles = _tiles_of(group, graph, facts.target)
        if tiles is not None:
            edit = _Cut(group, tiles, graph, readers, kept, taken).edit()
            unread |= set(edit.inputs)
            gone |= edit.gone
            # These are read whole: no Slice, Pad or Concat that makes one may go.
            whole |= {*group.sources(), *group.spread}
            yield edit
    last = Edit()
    for node in reversed(graph.nodes):
        out = node.outputs[0]
        own = readers.get(out, ()) if node.op in MOVES and out not in whole else ()
        if own and all((one.name, out) in unread or one.name in gone for one in own):
            gone.add(node.name)
            last.gone.add(node.name)
    if last.gone:
        yield last


# -- what is cut -----------------------------------------------------------------------------


def _groups(
    graph: MNGraph, kept: set[str], readers: Mapping[str, list[MNNode]]
) -> Iterator[_Group]:
    """Yield the groups in which several windows of one value meet."""
    windows, together = windows_of(graph), DisjointSets[str]()
    pointwise: dict[str, MNNode] = {}
    inside: set[str] = set()
    read: dict[str, list[str]] = {}
    for node in graph.device_nodes():
        if not _is_pointwise(node, graph):
            continue
        (out,) = node.outputs
        shape = graph.values[out].shape
        large = [name for name in node.inputs if prod(graph.values[name].shape) > 1]
        whole = [name for name in large if graph.values[name].shape == shape]
        leaves = [name for name in dict.fromkeys(large) if name not in inside]
        if not whole or any(graph.values[name].type.elem not in _CUT for name in leaves):
            continue
        if any(name in inside for name in large if name not in whole):
            continue
        pointwise[node.name], read[node.name] = node, leaves
        inside.add(out)
        for name in whole:
            together.join(out, name if name in inside else _source(name, windows))
    groups: dict[str, _Group] = {}
    for name, node in pointwise.items():
        group = groups.setdefault(together.root(node.outputs[0]), _Group())
        group.nodes.append(node)
        for leaf in read[name]:
            if graph.values[leaf].shape == graph.values[node.outputs[0]].shape:
                group.windows[leaf] = window_of(leaf, windows, graph)
            else:
                group.spread.add(leaf)
    for name, window in windows.items():
        others = [one for one in readers.get(name, ()) if one.outputs[0] not in windows]
        read_elsewhere = name in kept or any(one.name not in pointwise for one in others)
        if window.source in inside and read_elsewhere:
            group = groups[together.root(window.source)]
            if name not in group.windows:
                group.windows[name] = window
                group.moved.append(name)
    results = {name for _, name in graph.outputs}
    for group in groups.values():
        apart = any(len(set(offsets)) > 1 for offsets in group.sources().values())
        named = {*group.windows, *group.spread, *(node.outputs[0] for node in group.nodes)}
        if apart and named.isdisjoint(kept - results):
            yield group


def _source(name: str, windows: Mapping[str, Window]) -> str:
    return windows[name].source if name in windows else name


def _is_pointwise(node: MNNode, graph: MNGraph) -> bool:
    """Whether each element of the only result is made of those of operands at the same index."""
    layer = LAYERS.get(node.op)
    if not isinstance(layer, Elementwise) or len(node.outputs) != 1 or "" in node.inputs:
        return False
    values = [graph.values[name] for name in (*node.inputs, *node.outputs)]
    shape = values[-1].shape
    if prod(shape) <= 1:
        return False
    return layer.unsupported(node, graph, [device_dtype(one.type.elem) for one in values]) is None


# -- tiles -----------------------------------------------------------------------------------


def _tiles_of(group: _Group, graph: MNGraph, target: Target) -> dict[int, _Tile] | None:
    """Return the tiles of each axis that is cut, with the fewest places for a PE; None if none."""
    names = {*group.windows, *group.sources(), *(node.outputs[0] for node in group.nodes)}
    shapes = [graph.values[name].shape for name in names]
    sizes = [max(own) for own in zip(*shapes, strict=True)]
    least = [min(own) for own in zip(*shapes, strict=True)]
    halos = [_halo(offsets) for offsets in group.sources().values()]
    far = [
        tuple(max(own) for own in zip(*sides, strict=True)) for sides in zip(*halos, strict=True)
    ]
    axes = [a for a, size in enumerate(sizes) if far[0][a] or far[1][a] or size > least[a]]
    beside = any(
        max(own) - min(own) >= least[axis]
        for offsets in group.sources().values()
        for axis, own in enumerate(zip(*offsets, strict=True))
    )
    rings = {axis for source in group.sources() for axis in group.rings(source)}
    zeros = any(one.zeros and group.rings(one.source) for one in group.windows.values())
    if beside or zeros or len(axes) > _AXES or any(sizes[a] > least[a] for a in rings):
        return None
    units = prod(target.level_range[level.value] for level in TILE_LEVELS)
    powers = [1 << k for k in range(units.bit_length())]
    best: tuple[int, dict[int, _Tile]] | None = None
    for counts in product(*([n for n in powers if n <= sizes[axis]] for axis in axes)):
        tiles = {
            axis: _Tile(count, -(-sizes[axis] // count))
            for axis, count in zip(axes, counts, strict=True)
        }
        # The tiles of a ring take all its elements.
        open_ring = any(
            tile.count == 1 or tile.count * tile.places > sizes[axis]
            for axis, tile in tiles.items()
            if axis in rings
        )
        if (
            not 1 < prod(counts) <= units
            or open_ring
            or any(
                tile.count > 1 and max(far[0][axis], far[1][axis]) > _NEIGHBOURS * tile.places
                for axis, tile in tiles.items()
            )
        ):
            continue
        words = max(
            prod(before[axis] + tile.places + behind[axis] for axis, tile in tiles.items())
            for before, behind in halos
        )
        if best is None or words < best[0]:
            best = words, tiles
    # Time slices do not cut tiles.
    return None if best is None or best[0] > target.words("lm0") * _SHARE else best[1]


def _halo(offsets: Sequence[Shape]) -> tuple[Shape, Shape]:
    """Return how many places windows read before and behind those of a tile, by axis."""
    by_axis = list(zip(*offsets, strict=True))
    return tuple(max(0, -min(own)) for own in by_axis), tuple(max(0, *own) for own in by_axis)


class _Cut:
    """The edit that lets a group work on tiles."""

    def __init__(
        self,
        group: _Group,
        tiles: Mapping[int, _Tile],
        graph: MNGraph,
        readers: Mapping[str, list[MNNode]],
        kept: set[str],
        taken: set[str],
    ):
        self._group, self._tiles, self._graph = group, tiles, graph
        self._readers, self._kept = readers, kept
        self._names = {node.name for node in group.nodes}
        self._offsets = group.sources()
        self._rank = len(graph.values[group.nodes[0].outputs[0]].shape)
        self._edit, self._names_in_use = Edit(), taken
        #: The tiles of windows and of spread values, and those with a halo of what windows read.
        self._known: dict[str, str] = {}
        self._cuts: dict[str, str] = {}

    def edit(self) -> Edit:
        """Return it."""
        for node in self._graph.nodes:
            (out, *_) = node.outputs
            if node.name in self._names:
                for name in dict.fromkeys(node.inputs):
                    if name in self._group.windows or name in self._group.spread:
                        self._edit.inputs[node.name, name] = self._taken(name, node)
                self._result(node)
            elif out in self._group.moved:
                taken = self._taken(out, node)
                self._edit.before[node.name] += self._joined(taken, out, node)
                self._edit.gone.add(node.name)
        return self._edit

    def _value(self, name: str, like: str, shape: Sequence[int]) -> str:
        """Make a value like another one, and return its name."""
        made, name = self._graph.values[like], reserved(name, self._names_in_use)
        own = TensorType(made.type.elem, tuple(shape))
        self._edit.values[name] = replace(made, name=name, type=own)
        return name

    def _shape(self, like: str, reach: Mapping[int, int]) -> list[int]:
        """Return a value's shape in tiles that have so many places, or their own."""
        out: list[int] = []
        for axis, size in enumerate(self._graph.values[like].shape):
            tile = self._tiles.get(axis, _Tile(1, size))
            out += [tile.count, reach.get(axis, tile.places)][tile.count == 1 :]
        return out

    def _taken(self, name: str, near: MNNode) -> str:
        """Return the tiles of a window, which a node needs."""
        if name in self._group.spread and name not in self._known:
            self._known[name] = self._spread(name, near)
        if name in self._known:
            return self._known[name]
        window, tiles = self._group.windows[name], self._tiles.items()
        source, (before, behind) = window.source, _halo(self._offsets[window.source])
        reach = {axis: before[axis] + tile.places + behind[axis] for axis, tile in tiles}
        if source not in self._cuts:
            cut = self._value(f"{source}.tiles", source, self._shape(source, reach))
            rings = self._group.rings(source)
            rows = [(a, t.count, t.places, before[a], reach[a], int(a in rings)) for a, t in tiles]
            self._put_tiles(source, cut, rows, near)
            self._cuts[source] = cut
        cut = self._known[name] = self._cuts[source]
        if all(reach[axis] == tile.places for axis, tile in tiles):
            return cut
        taken = self._known[name] = self._value(f"{name}.window", name, self._shape(name, {}))
        starts = tuple(before[axis] + window.offset[axis] for axis in self._tiles)
        ends = tuple(start + tile.places for start, (_, tile) in zip(starts, tiles, strict=True))
        inner = tuple(a + sum(t.count > 1 for other, t in tiles if other <= a) for a in self._tiles)
        ones = (1,) * len(starts)
        along = ("starts", starts), ("ends", ends), ("axes", inner), ("steps", ones)
        self._put(MNNode(f"{taken}.Slice", "Slice", (cut,), (taken,), along), near)
        return taken

    def _spread(self, name: str, near: MNNode) -> str:
        """Return a value that is spread over some axes, with tiles along the others."""
        shape = self._graph.values[name].shape
        missing, rows = self._rank - len(shape), list[tuple[int, ...]]()
        cut, whole = list[int](), list[int]()
        for axis, size in enumerate((*(1,) * missing, *shape)):
            tile = self._tiles.get(axis)
            own = [size]
            if tile is not None and size > 1:
                rows.append((axis - missing, tile.count, tile.places, 0, tile.places, 0))
                own = [tile.count, tile.places][tile.count == 1 :]
            cut += own if axis >= missing else []
            whole += own if tile is None or size > 1 or tile.count == 1 else [1, 1]
        source = name
        if rows:
            source = self._value(f"{name}.cut", name, cut)
            self._put_tiles(name, source, rows, near)
        result = self._value(f"{name}.tiles", name, whole)
        self._put(MNNode(f"{result}.Reshape", "Reshape", (source,), (result,)), near)
        return result

    def _put(self, made: MNNode, near: MNNode) -> None:
        self._edit.before[near.name].append(made.near(near))

    def _put_tiles(self, source: str, cut: str, rows: Sequence[Shape], near: MNNode) -> None:
        *columns, ends = zip(*rows, strict=True)
        facts = (*zip(TILE_FACTS, columns, strict=True), (TILE_RINGS, ends))
        facts = facts if any(ends) else facts[:-1]
        self._put(MNNode(f"{cut}.{TILES}", TILES, (source,), (cut,), facts), near)

    def _result(self, node: MNNode) -> None:
        """Let a node make tiles, and join them for readers outside of the group."""
        (out,), readers = node.outputs, self._readers.get(node.outputs[0], ())
        own = self._value(f"{out}.tiled", out, self._shape(out, {}))
        self._edit.outputs[node.name, out] = own
        inside = [one.name for one in readers if one.name in self._names]
        self._edit.inputs |= {(name, out): own for name in inside}
        if out in self._kept or out in self._offsets or len(inside) < len(readers):
            self._edit.behind[node.name] += self._joined(own, out, node)

    def _joined(self, tiled: str, result: str, near: MNNode) -> list[MNNode]:
        """Return the nodes that make the result of its tiles."""
        whole = [*self._graph.values[result].shape]
        for axis, tile in self._tiles.items():
            whole[axis] = tile.count * tile.places
        if (*whole,) == self._graph.values[result].shape:
            return [MNNode(f"{result}.join", "Reshape", (tiled,), (result,)).near(near)]
        joined = self._value(f"{result}.whole", result, whole)
        return [
            MNNode(f"{result}.join", "Reshape", (tiled,), (joined,)).near(near),
            MNNode(f"{result}.{CROP}", CROP, (joined,), (result,)).near(near),
        ]


TILE_STENCILS = FlowRewrite("tile_stencils", "", _tiled)
