"""The edit that lets a group of nodes work on tiles with a halo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..graph.draft import Edit
from ..graph.graph import Attribute, MNGraph, MNNode, TensorType
from ..layers.crop import CROP
from ..machine import IntArray
from ..pfvm.device_functions import TILE_FACTS, TILE_RINGS, TILES
from ..pfvm.names import reserved
from .stencil_places import Group, Margin, Reach, Tile


class StencilCut:
    """Makes the edit."""

    def __init__(
        self,
        group: Group,
        tiles: Mapping[int, Tile],
        reach: Reach,
        graph: MNGraph,
        taken: set[str],
    ):
        self._group, self._tiles, self._reach, self._graph = group, tiles, reach, graph
        self._names_in_use, self._edit, self._near = taken, Edit(), graph.nodes[0]
        self._none = np.zeros((2, group.rank), np.int64)
        #: The tiles that nodes make, what they make from place 0 on, where that is not its first
        #: element, and the tiles that are cut.
        self._made, self._whole = dict[str, str](), dict[str, str]()
        self._cuts: dict[str, str] = {}
        self._parts: dict[tuple[str, Sequence[int], Sequence[int]], str] = {}

    def edit(self) -> Edit:
        """Return it."""
        names = {node.name for node in self._group.nodes}
        for node in self._graph.nodes:
            out, self._near, self._put_in = node.outputs[0], node, self._edit.before
            if node.name in names:
                margin = self._reach.made[out]
                for name in dict.fromkeys(node.inputs):
                    if name in (*self._group.windows, *self._made, *self._group.spread):
                        self._edit.inputs[node.name, name] = self._taken(name, margin, out)
                _, shape = self._shapes(out, [*self._tiles], margin)
                own = self._made[out] = self._value(f"{out}.tiled", out, shape)
                self._edit.outputs[node.name, out] = own
                if out in self._group.outer or out in self._reach.cut:
                    self._put_in = self._edit.behind
                    nothing = self._none[0]
                    self._join(self._part(own, margin, nothing, self._none, [*self._tiles]), out)
            elif out in self._group.moved:
                self._join(self._taken(out, self._none), out)
                self._edit.gone.add(node.name)
        return self._edit

    def _put(self, op: str, sources: Sequence[str], result: str, **facts: Attribute) -> str:
        """Append a node, and return the name of its result."""
        made = MNNode(f"{result}.{op}", op, tuple(sources), (result,), tuple(facts.items()))
        self._put_in[self._near.name].append(made.near(self._near))
        return result

    def _shape(self, name: str) -> Sequence[int]:
        return (self._edit.values.get(name) or self._graph.values[name]).type.shape

    def _value(self, name: str, like: str, shape: Sequence[int]) -> str:
        """Make a value like another one, and return its name."""
        made = self._edit.values.get(like) or self._graph.values[like]
        name = reserved(name, self._names_in_use)
        own = TensorType(made.type.elem, tuple(shape))
        self._edit.values[name] = replace(made, name=name, type=own)
        return name

    def _reaches(self, axis: int, margin: Margin) -> int:
        """Return the places of a tile with a margin."""
        return int(margin[:, axis].sum()) + self._tiles[axis].places

    def _shapes(
        self, name: str, axes: Sequence[int], margin: Margin
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Return the shape of tiles of axes, and with one element along other axes of tiles."""
        shape, own, wide = self._graph.values[name].shape, list[int](), list[int]()
        missing = self._group.rank - len(shape)
        for axis, size in enumerate((1,) * missing + shape):
            count, part = self._tiles[axis].count if axis in self._tiles else 1, [size]
            if axis in axes:
                part = [count, self._reaches(axis, margin)][count == 1 :]
            own += part if axis >= missing else []
            wide += part if axis in axes or count == 1 else [1, size]
        return own, wide

    def _taken(self, name: str, need: Margin, reader: str = "") -> str:
        """Return what a node whose result has a margin needs of a value: a part of its tiles."""
        source, shift = self._group.source(name), self._group.shift(name, reader)
        axes = [*self._tiles]
        if name in self._group.spread:
            axes = [axis for axis in axes if self._group.along(name)[axis]]
        elif source in self._made and (
            source not in self._reach.cut or not (shift.any() or need.any())
        ):
            return self._part(self._made[source], self._reach.made[source], shift, need, axes)
        margin = self._reach.cut[source]
        if source not in self._cuts:
            self._cuts[source] = self._cut(source, axes, margin)
        return self._part(self._cuts[source], margin, shift, need, axes)

    def _cut(self, name: str, axes: Sequence[int], margin: Margin) -> str:
        """Cut axes of a value. If it is spread over others, it has one element there."""
        own, wide = self._shapes(name, axes, margin)
        missing = self._group.rank - len(self._graph.values[name].shape)
        source, rows = self._whole.get(name, name), list[Sequence[int]]()
        for axis in axes:
            tile, before = self._tiles[axis], int(margin[0, axis])
            if tile.wraps:
                source = self._wrapped(source, axis - missing, *margin[:, axis].tolist())
                before = 0
            ring = axis in self._group.rings() and not tile.wraps
            places = self._reaches(axis, margin)
            rows.append((axis - missing, tile.count, tile.places, before, places, int(ring)))
        if axes:
            facts = dict(zip((*TILE_FACTS, TILE_RINGS), zip(*rows, strict=True), strict=True))
            if not any(facts[TILE_RINGS]):
                del facts[TILE_RINGS]
            source = self._put(TILES, [source], self._value(f"{name}.tiles", name, own), **facts)
        if own == wide and axes:
            return source
        return self._put("Reshape", [source], self._value(f"{name}.wide", name, wide))

    def _wrapped(self, name: str, axis: int, before: int, behind: int) -> str:
        """Return a value with what lies around a ring at its ends, as far as tiles need it."""
        shape = [*self._shape(name)]
        size, parts = shape[axis], [name]
        if before:
            parts.insert(0, self._slice(name, (axis,), (size - before,), (size,)))
        if behind:
            parts.append(self._slice(name, (axis,), (0,), (behind,)))
        if len(parts) == 1:
            return name
        shape[axis] = size + before + behind
        return self._put("Concat", parts, self._value(f"{name}.around", name, shape), axis=axis)

    def _part(
        self, tiles: str, margin: Margin, shift: IntArray, need: Margin, axes: Sequence[int]
    ) -> str:
        """Return the places at a shift, with the margin that is needed, of each tile."""
        starts = (margin[0] + shift - need[0])[[*axes]].tolist()
        ends = [at + self._reaches(a, need) for at, a in zip(starts, axes, strict=True)]
        inner = [a + sum(t.count > 1 for o, t in self._tiles.items() if o <= a) for a in axes]
        if not any(starts) and ends == [self._reaches(axis, margin) for axis in axes]:
            return tiles
        key = tiles, tuple(starts), tuple(ends)
        if key not in self._parts:
            self._parts[key] = self._slice(tiles, inner, starts, ends)
        return self._parts[key]

    def _slice(
        self, name: str, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> str:
        shape = [*self._shape(name)]
        for axis, start, end in zip(axes, starts, ends, strict=True):
            shape[axis] = end - start
        facts = {
            "starts": (*starts,),
            "ends": (*ends,),
            "axes": (*axes,),
            "steps": (1,) * len(axes),
        }
        return self._put("Slice", [name], self._value(f"{name}.window", name, shape), **facts)

    def _join(self, tiled: str, result: str) -> None:
        """Make a result of its tiles."""
        whole = [*self._graph.values[result].shape]
        for axis, tile in self._tiles.items():
            whole[axis] = tile.count * tile.places
        joined = result
        if whole != [*self._graph.values[result].shape]:
            joined = self._value(f"{result}.whole", result, whole)
        self._put("Reshape", [tiled], joined)
        if self._group.origins.get(result, self._none[0]).any():
            self._whole[result] = joined
        elif joined != result:
            self._put(CROP, [joined], result)
