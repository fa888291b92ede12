"""Writes to slices of a captured program: each is one choice between new and old values.

torch writes ``x[1:, 2:] += y`` as slices of slices that are written back, twice. Here a write knows
its place in the whole tensor. Reads beside it are reads of the old values, and reads inside a row
or column those of the new ones, so no chain of writes lies between a step and the next. A view
picks rows and columns first, which leaves the least to move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node

_ATEN = torch.ops.aten
_SLICE, _SELECT = _ATEN.slice.Tensor, _ATEN.select.int
_WRITES = (_ATEN.slice_scatter.default, _ATEN.select_scatter.default)
#: The most times as many elements that may be computed so that what is written needs no steps, and
#: the most operators that are computed of a whole tensor for a part of it.
_MOST = 4


@dataclass(frozen=True)
class _Part:
    """Places of a tensor, a range of each of its axes. ``kept`` are the axes that a view has."""

    of: Node
    places: tuple[range, ...]
    kept: tuple[bool, ...]

    def along(self, dim: int, chosen: slice | int) -> _Part:
        """Return a slice, or one place, of an axis of the view."""
        axes = [axis for axis, kept in enumerate(self.kept) if kept]
        axis = axes[dim % len(axes)]
        places, kept = list(self.places), list(self.kept)
        if isinstance(chosen, int):
            chosen %= len(places[axis])
            kept[axis], chosen = False, slice(chosen, chosen + 1)
        places[axis] = places[axis][chosen]
        return replace(self, places=tuple(places), kept=tuple(kept))

    def within(self, other: _Part) -> bool:
        """Whether all places are among those of another part of the same tensor."""
        pairs = zip(self.places, other.places, strict=True)
        return all(all(place in theirs for place in ours) for ours, theirs in pairs)

    def beside(self, other: _Part) -> bool:
        """Whether no place is among those of another part of the same tensor."""
        pairs = zip(self.places, other.places, strict=True)
        return any(all(place not in theirs for place in ours) for ours, theirs in pairs)


@dataclass(frozen=True)
class _Write:
    """A tensor with new values at a part of an old one.

    ``everywhere`` has the new values too, and any others around them.
    """

    part: _Part
    new: Node
    everywhere: Node | None = None


def join_writes(graph: Graph) -> None:
    """Write each part of a tensor at once, and read around writes, in place."""
    if any(node.target in _WRITES for node in graph.nodes):
        _Writes(graph).join()


def _whole(node: Node) -> _Part:
    shape = node.meta["val"].shape
    return _Part(node, tuple(map(range, shape)), (True,) * len(shape))


class _Writes:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.parts: dict[Node, _Part] = {}
        self.writes: dict[Node, _Write] = {}

    def join(self) -> None:
        for node in list(self.graph.nodes):
            value = node.meta.get("val")
            if node.op != "call_function" or not isinstance(value, torch.Tensor):
                continue
            if not all(isinstance(size, int) for size in value.shape):
                continue
            if node.target is _ATEN.copy.default:
                given = node.args[1].meta["val"]
                if (given.shape, given.dtype) == (value.shape, value.dtype):
                    node.replace_all_uses_with(node.args[1])
            elif node.target in (_SLICE, _SELECT):
                self._read(node)
            elif node.target in _WRITES and value.dtype != torch.bool and not value.is_complex():
                self._write(node)

    def _part(self, node: Node) -> _Part:
        return self.parts.get(node) or _whole(node)

    def _read(self, node: Node) -> None:
        whole: Any = node.args[0]
        before = self._part(whole)
        part = self._seen(before.along(*_chosen(node)))
        chained = before.of is not whole and not all(part.kept)
        if (part.of is before.of and not chained) or not all(part.places):
            self.parts[node] = part
        else:
            with self.graph.inserting_before(node):
                node.replace_all_uses_with(self._view(part, node))

    def _seen(self, part: _Part) -> _Part:
        """Return where the values of a part were before writes, or as what they were written."""
        while part.of in self.writes:
            write = self.writes[part.of]
            if part.beside(write.part):
                part = replace(part, of=write.part.of)
                continue
            axes = [axis for axis, kept in enumerate(write.part.kept) if kept]
            # A grid that was written is read as one: stencils cut it into tiles once.
            if all(write.part.kept) or not part.within(write.part):
                break
            if sum(part.kept) != sum(part.kept[a] for a in axes):
                break
            places = [_relative(part.places[axis], write.part.places[axis]) for axis in axes]
            inner = self._part(write.new)
            kept = iter(zip(places, (part.kept[axis] for axis in axes), strict=True))
            found = list(zip(inner.places, inner.kept, strict=True))
            for axis, (own, is_kept) in enumerate(found):
                if is_kept:
                    picked, stays = next(kept)
                    found[axis] = own[picked.start : picked.stop : picked.step], stays
            part = _Part(inner.of, tuple(p for p, _ in found), tuple(k for _, k in found))
        return part

    def _write(self, node: Node) -> None:
        given: Any = node.args
        old, new = given[:2]
        part = _whole(old).along(*_chosen(node))
        inner = self.writes.get(new)
        if not all(part.places):
            return
        seen = self._seen(part)
        if inner is not None and self._part(inner.part.of) == seen:
            part, new = _composed(part, inner.part), inner.new
            seen = self._seen(part)
        if self._part(new) == seen:
            node.replace_all_uses_with(old)
            return
        write = _Write(replace(part, of=old), new)
        if prod(map(_step, part.places)) <= _MOST and all(part.kept):
            write = replace(write, everywhere=self._everywhere(new, write.part, {}))
        with self.graph.inserting_before(node):
            made = self._choice(write, node)
        self.writes[made] = write
        node.replace_all_uses_with(made)

    # -- new nodes ---------------------------------------------------------------------------

    def _view(self, part: _Part, like: Node) -> Node:
        """Append slices and picks that read a part."""
        found = part.of
        for axis in reversed(range(len(part.kept))):
            if not part.kept[axis]:
                found = self._call(like, _SELECT, found, axis, part.places[axis][0])
        kept = [places for places, stays in zip(part.places, part.kept, strict=True) if stays]
        for axis, places in enumerate(kept):
            if places != range(found.meta["val"].shape[axis]):
                bounds = (axis, places[0], places[-1] + 1, places.step)
                found = self._call(like, _SLICE, found, *bounds)
        if found is not part.of:
            self.parts[found] = part
        return found

    def _choice(self, write: _Write, like: Node) -> Node:
        """Append new values at a part of a tensor, and its old ones elsewhere."""
        part, old = write.part, write.part.of
        sizes = old.meta["val"].shape
        found = write.everywhere or write.new
        for axis, kept in enumerate(part.kept):
            if not kept:
                found = self._call(like, _ATEN.unsqueeze.default, found, axis)
        lifted = write.everywhere is not None and max(map(_step, part.places)) == 1
        around = [p if write.everywhere is None else _hull(p) for p in part.places]
        cut = [axis for axis, size in enumerate(sizes) if len(part.places[axis]) < size]
        padded = [axis for axis in cut if len(part.places[axis]) > 1]
        for axis in sorted(cut, key=lambda axis: (axis not in padded, -axis)):
            stays, places = old, part.places[axis]
            if not lifted and axis in padded[1:]:
                # Axis by axis: no choice meets zeros that another one leaves out.
                inner = tuple(
                    around[other] if other in padded and other < axis else range(size)
                    for other, size in enumerate(sizes)
                )
                stays = self._view(_Part(old, inner, (True,) * len(sizes)), like)
            if not lifted and axis in padded:  # else the one row is broadcast
                found = self._widened(found, axis, around[axis], sizes[axis], like)
            shape = [len(places), *[1] * (len(sizes) - 1 - axis)]
            facts = {"dtype": torch.bool, "device": torch.device("cpu"), "pin_memory": False}
            hit = self._call(like, _ATEN.full.default, shape, True, **facts)
            hit = self._widened(hit, 0, places, sizes[axis], like)
            found = self._call(like, _ATEN.where.self, hit, found, stays)
        return found

    def _widened(self, x: Node, axis: int, places: range, size: int, like: Node) -> Node:
        """Append zeros around the places of an axis, and between them."""
        shape, step = list(x.meta["val"].shape), _step(places)
        behind = [0] * (2 * (len(shape) - 1 - axis))
        if step > 1:
            x = self._call(like, _ATEN.unsqueeze.default, x, axis + 1)
            x = self._call(like, _ATEN.constant_pad_nd.default, x, [*behind, 0, step - 1], 0)
            shape[axis] *= step
            x = self._call(like, _ATEN.reshape.default, x, shape)
            x = self._call(like, _SLICE, x, axis, 0, shape[axis] - step + 1, 1)
        pads = [*behind, places[0], size - 1 - places[-1]]
        return self._call(like, _ATEN.constant_pad_nd.default, x, pads, 0) if any(pads) else x

    def _everywhere(self, node: Node, part: _Part, made: dict[Node, Node]) -> Node | None:
        """Append a value with elements between its own, or around them, where none is wanted.

        Slices a step apart become whole ones. What is computed of the places that are written
        becomes a computation of the whole tensor. None if that is not possible.
        """
        own = self._part(node)
        steps = tuple(map(_step, part.places))
        if node in made:
            return made[node]
        if own.of is not node:
            if not all(own.kept):
                return None
            if max(steps) == 1:
                same = own.places == part.places and _whole(own.of).places == _whole(part.of).places
                return own.of if same else None
            if tuple(map(_step, own.places)) != steps:
                return None
            with self.graph.inserting_before(node):
                made[node] = self._view(replace(own, places=(*map(_hull, own.places),)), node)
            return made[node]
        tags = getattr(node.target, "tags", ())
        drawn = torch.Tag.nondeterministic_seeded in tags  # other numbers in a larger tensor
        if torch.Tag.pointwise not in tags or drawn or len(made) > _MOST:
            return None
        shape = node.meta["val"].shape
        args: list[Any] = []
        for one in node.args:
            if isinstance(one, Node) and one.meta["val"].numel() > 1:
                given = one.meta["val"].shape
                if given == shape:
                    found = self._everywhere(one, part, made)
                elif max(steps) == 1:
                    with self.graph.inserting_before(node):
                        found = self._spread(one, part, node)
                else:
                    found = None
                if found is None:
                    return None
                one = found
            args.append(one)
        with self.graph.inserting_before(node):
            made[node] = self._call(node, node.target, *args, **node.kwargs)
        return made[node]

    def _spread(self, x: Node, part: _Part, like: Node) -> Node:
        """Append zeros around an operand that is broadcast along some axes."""
        rank = len(x.meta["val"].shape)
        for axis, places in enumerate(part.places[-rank:] if rank else ()):
            if x.meta["val"].shape[axis] > 1:
                size = part.of.meta["val"].shape[axis - rank]
                x = self._widened(x, axis, places, size, like)
        return x

    def _call(self, like: Node, target: Any, *args: Any, **facts: Any) -> Node:
        node = self.graph.call_function(target, args, facts)
        with like.meta["val"].fake_mode:
            given, known = torch.fx.node.map_arg((args, facts), lambda one: one.meta["val"])
            node.meta = {**like.meta, "val": target(*given, **known)}
        return node


def _chosen(node: Node) -> tuple[int, slice | int]:
    """Return the axis of a slice, a pick or a write, and its places."""
    names = [one.name for one in node.target._schema.arguments]  # type: ignore[union-attr]
    facts = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    dim: Any = facts.get("dim", 0)
    if "index" in facts:
        return dim, facts["index"]
    return dim, slice(facts.get("start"), facts.get("end"), facts.get("step", 1))


def _relative(inner: range, outer: range) -> range:
    """Return the places of a range within another."""
    first, step = (inner[0] - outer[0]) // outer.step, max(1, inner.step // outer.step)
    return range(first, first + step * (len(inner) - 1) + 1, step)


def _composed(outer: _Part, inner: _Part) -> _Part:
    """Return the part that is ``inner`` within ``outer``."""
    own = iter(zip(inner.places, inner.kept, strict=True))
    places, kept = list(outer.places), list(outer.kept)
    for axis, stays in enumerate(outer.kept):
        if stays:
            picked, kept[axis] = next(own)
            places[axis] = places[axis][picked.start : picked.stop : picked.step]
    return replace(outer, places=tuple(places), kept=tuple(kept))


def _step(places: range) -> int:
    return places.step if len(places) > 1 else 1


def _hull(places: range) -> range:
    return range(places[0], places[-1] + 1)
