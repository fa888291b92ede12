"""Copies inside the PEs: Slice, Concat, Split, Expand and Pad.

The axes that they change must lie in Addr, except for digits inside a block: elements that are
always copied together may lie on units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import gcd, prod

import numpy as np

from ..code.lines import Line, Literal, PeOperand, alu_step
from ..code.nest import Nest, each, whole_runs
from ..graph.digits import Part, parts
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..graph.layout import Layout, Layouts, Level
from ..machine import WORDS_PER_LONG, IntArray, Target
from .base import Cut, Layer, Placement, layout_of, outside_lm
from .copied_digits import below, filled, levels, on_units, shared_out
from .copied_elements import Picked, Selection, concat, expand, pad, pick_slice, split
from .data_movement import Moving
from .default_layout import built, closed, dense, fresh_layout, most_words, small, whole_layout
from .scratch import vector


class Copy(Moving):
    """An operator that copies elements along some axes.

    ``pick`` returns for output ``number`` of a node the places that its elements come from.
    """

    def __init__(
        self,
        op: str,
        pick: Callable[[MNNode, MNGraph, int], Picked],
        attributes: frozenset[str] = frozenset(),
    ):
        self.op, self.pick, self.attributes = op, pick, attributes

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        facts = dict(node.attributes)
        if self.op == "Pad" and facts.get("mode", "constant") != "constant":
            return f"Pad in mode {facts['mode']}"
        return super().unsupported(node, graph, dtypes)

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the digits of unchanged axes, and the digits inside blocks of changed axes."""
        ends = list(dict.fromkeys((*node.inputs, *node.outputs)))
        known = [name for name in ends if name in hints]
        main = max(known or node.inputs, key=lambda name: prod(graph.values[name].shape))
        value, along = graph.values[main], self._along(node, graph, main)
        dtype, blocks = value.dtype, self.blocks(node, graph)
        # Changed axes will lie in Addr, apart from their blocks: give them no units.
        spread = tuple(
            min(blocks.get(where, size), size) if where is not None else size
            for where, size in zip(along, value.shape, strict=True)
        )
        times = prod(value.shape) // max(1, prod(spread))
        hint = hints.get(main) or fresh_layout(spread, dtype, target, times)
        found = self._near(node, graph, target, main, hint)
        room = target.words("lm0")
        if most_words(found.values(), target) > room:
            # No digit of a unit divides what the hint leaves in Addr: pad the other axes.
            wide = whole_layout(spread, dtype, target, padded=True, times=times)
            other = self._near(node, graph, target, main, wide)
            if most_words(other.values(), target) <= room:
                return other
        return found

    def _along(self, node: MNNode, graph: MNGraph, name: str) -> tuple[int | None, ...]:
        """Return the axis of the result along which each axis of an operand or result lies."""
        if name in node.inputs:
            return self.pick(node, graph, 0)[0][node.inputs.index(name)]
        return tuple(range(len(graph.values[node.outputs[0]].shape)))

    def _near(
        self, node: MNNode, graph: MNGraph, target: Target, main: str, hint: Layout
    ) -> Layouts:
        """Return layouts with the digits that ``hint`` has for the value ``main``, if possible."""
        value, along = graph.values[main], self._along(node, graph, main)
        dtype, blocks = value.dtype, self.blocks(node, graph)
        kept: dict[int, list[Part]] = {}
        for axis, where in enumerate(along):
            if where is not None:
                found = parts(hint, value.shape)[axis]
                kept[where] = below(found, blocks[where]) if where in blocks else found
        packed = prod(p.size for found in kept.values() for p in found if p.level is Level.W)
        if packed != dtype.words_per_long:
            sizes = graph.values[node.outputs[0]].shape
            kept = {
                axis: closed(
                    [p for p in found if p.level is not Level.W], blocks.get(axis, sizes[axis])
                )
                for axis, found in kept.items()
            }

        def laid_out(kept: Mapping[int, list[Part]]) -> Layouts:
            found: dict[str, Layout] = {}

            def lay_out(name: str, whither: Sequence[int | None]) -> None:
                shape = graph.values[name].shape
                placed = {
                    axis: filled(kept.get(where, []), shape[axis], where in blocks)
                    if where is not None and shape[axis] > 1
                    else []
                    for axis, where in enumerate(whither)
                }
                found[name] = self._made(shape, placed, hint, dtype, target)

            for number, name in enumerate(node.outputs):
                lay_out(name, range(len(graph.values[name].shape)))
                along = self.pick(node, graph, number)[0]
                for given, whither in zip(node.inputs, along, strict=True):
                    lay_out(given, whither)
            return found

        layouts = laid_out(kept)
        if not small(layouts.values(), target):
            # Units that changed axes gave back would hold copies: give them to other axes.
            layouts = laid_out(shared_out(kept, blocks, target))
        return layouts

    def blocks(self, node: MNNode, graph: MNGraph) -> dict[int, int]:
        """Return for every changed axis the size of its blocks.

        The elements of a block stay neighbours: whole blocks are copied to places of whole blocks.
        """
        out: dict[int, int] = {}
        for number, name in enumerate(node.outputs):
            along, picked = self.pick(node, graph, number)
            for axis, chosen in picked.items():
                sizes = [
                    graph.values[given].shape[to.index(axis)]
                    for given, to in zip(node.inputs, along, strict=True)
                    if axis in to
                ]
                source, index = np.asarray(chosen.source), np.asarray(chosen.index)
                step = np.where(source[1:] < 0, 0, 1)
                follows = (source[1:] == source[:-1]) & (index[1:] == index[:-1] + step)
                starts = np.flatnonzero(np.append(True, ~follows))
                begun = index[starts][source[starts] >= 0]
                edges = (graph.values[name].shape[axis], *sizes, *starts.tolist(), *begun.tolist())
                out[axis] = gcd(out.get(axis, 0), *edges)
        return out

    def _made(
        self,
        shape: tuple[int, ...],
        placed: Mapping[int, list[Part]],
        hint: Layout,
        dtype: MNDtype,
        target: Target,
    ) -> Layout:
        cleaned = {axis: [p for p in found if p.size > 1] for axis, found in placed.items()}
        made = built(shape, dense(cleaned), hint, dtype, target)
        if made is None:
            made = built(shape, dense(cleaned), Layout(()), dtype, target)
        assert made is not None
        return made

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that do not change."""
        changed = {
            axis
            for number in range(len(node.outputs))
            for axis in self.pick(node, graph, number)[1]
        }
        along, _ = self.pick(node, graph, 0)
        for axis, size in enumerate(graph.values[node.outputs[0]].shape):
            if size == 1 or axis in changed:
                continue
            places = [(name, axis) for name in node.outputs]
            for name, own in zip(node.inputs, along, strict=True):
                places += ((name, index) for index, to in enumerate(own) if to == axis)
            yield Cut(tuple(dict.fromkeys(places)))

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Read one LM, write the other."""
        banks = tuple(Location.LM0 for _ in dict.fromkeys(node.inputs))
        return Placement(banks, tuple(Location.LM1 for _ in node.outputs))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield changed axes with unit digits outside of blocks, and axes that do not agree."""
        yield from outside_lm((*node.inputs, *node.outputs), graph)
        read = {graph.values[name].location for name in node.inputs}
        if any(graph.values[name].location in read for name in node.outputs):
            yield "an input and an output in one LM"
        blocks = self.blocks(node, graph)
        for number, name in enumerate(node.outputs):
            out = graph.values[name]
            theirs = parts(layout_of(out), out.shape)
            along, picked = self.pick(node, graph, number)
            for index, given in enumerate(node.inputs):
                value = graph.values[given]
                ours = parts(layout_of(value), value.shape)
                for axis, where in enumerate(along[index]):
                    if where is None:
                        continue
                    if where in picked:
                        one, other = on_units(ours[axis]), on_units(theirs[where])
                        if one != other:
                            yield f"axis {where} of `{name}` on other units than in `{given}`"
                        if any(blocks[where] % (p.lo * p.size) for p in one):
                            yield f"axis {where} of `{name}` on units"
                    elif levels(ours[axis]) != levels(theirs[where]):
                        yield f"axis {where} of `{name}` on other units than in `{given}`"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: a copy per vector."""
        for number, name in enumerate(node.outputs):
            along, picked = self.pick(node, graph, number)
            for index, rows in copied_addresses(node, graph, number, along, picked).items():
                given = None if index < 0 else graph.values[node.inputs[index]]
                if given is None:
                    yield from _constant(node, graph, target)
                copy = partial(_copied, given, graph.values[name], target)
                yield each(whole_runs(rows, target.cycles), copy)


def _copied(
    given: MNValue | None, out: MNValue, target: Target, part: Sequence[tuple[int, int]]
) -> Nest:
    """Yield the copy of a vector, ``part``: pairs of a result's and a source's long word."""
    goals, sources = zip(*part, strict=True)
    here = _filler(target) if given is None else vector(given, sources)
    yield alu_step("lpassa", (here,), vector(out, goals))


def _constant(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Line]:
    """Yield steps that put the filler of a Pad into a register, by words if the words differ."""
    dtype = graph.values[node.outputs[0]].dtype
    value = dict(node.attributes).get("constant_value", 0)
    if isinstance(value, tuple):
        value = value[0] if value else 0
    words = _words(value, dtype)
    goals = [_filler(target, word) for word in range(WORDS_PER_LONG)]
    if len(set(words)) == 1:
        goals, words = [_filler(target)], words[:1]
    for bits, goal in zip(words, goals, strict=True):
        yield alu_step("imm", (Literal(bits),), goal)


def _words(value: object, dtype: MNDtype) -> tuple[int, ...]:
    """Return the 32-bit words of a long word whose elements are all ``value``."""
    if dtype is MNDtype.FLOAT:
        bits = int(np.float32(float(str(value))).view(np.uint32))
    elif dtype is MNDtype.DOUBLE:
        bits = int(np.float64(float(str(value))).view(np.uint64))
    elif dtype is MNDtype.HALF:
        # The planner keeps halves away from any other filler.
        assert float(str(value)) == 0
        bits = 0
    elif dtype is MNDtype.SINGLE_BOOL:
        bits = 0xFFFFFFFF if value else 0
    else:
        bits = int(str(value))
    shifts = (32, 0) if dtype.words_per_long == 1 else (0, 0)
    return tuple(bits >> shift & 0xFFFFFFFF for shift in shifts)


def _filler(target: Target, word: int | None = None) -> PeOperand:
    return PeOperand("grf1", (0,) * target.cycles, word=word)


def copied_addresses(
    node: MNNode,
    graph: MNGraph,
    number: int,
    along: tuple[tuple[int | None, ...], ...],
    picked: dict[int, Selection],
) -> dict[int, list[tuple[int, int]]]:
    """Return for each input (-1: the constant) the pairs of result and input addresses."""
    out = graph.values[node.outputs[number]]
    theirs = parts(layout_of(out), out.shape)
    rows: dict[int, list[tuple[int, int]]] = {}
    for index in (-1, *range(len(node.inputs))):
        at, meets = np.zeros(1, np.int64), np.zeros(1, np.int64)
        constant = np.zeros(1, bool)
        for axis in range(len(out.shape)):
            own: list[Part] = []
            if index >= 0:
                value = graph.values[node.inputs[index]]
                where = [a for a, to in enumerate(along[index]) if to == axis]
                own = parts(layout_of(value), value.shape)[where[0]] if where else []
            if axis in picked:
                chosen = picked[axis]
                indices = np.arange(out.shape[axis], dtype=np.int64)
                source = np.asarray(chosen.source)
                mine = source == index if index >= 0 else np.ones(source.shape, bool)
                inner = np.asarray(chosen.index)[mine]
                to, fro = places_at(theirs[axis], indices[mine]), places_at(own, inner)
                missing = source[mine] < 0
            else:
                digits = [p for p in theirs[axis] if p.level is Level.ADDR]
                to, fro = np.zeros(1, np.int64), np.zeros(1, np.int64)
                for part in digits:
                    same = [p for p in own if p.lo == part.lo]
                    step = np.arange(part.size, dtype=np.int64)
                    to = (to[:, None] + step * part.stride).reshape(-1)
                    fro = (fro[:, None] + step * (same[0].stride if same else 0)).reshape(-1)
                missing = np.zeros(to.shape, bool)
            at = (at[:, None] + to).reshape(-1)
            meets = (meets[:, None] + fro).reshape(-1)
            constant = (constant[:, None] | missing).reshape(-1)
        keep = constant if index < 0 else ~constant
        pairs = sorted(set(zip(at[keep].tolist(), meets[keep].tolist(), strict=True)))
        if pairs:
            rows[index] = pairs if index >= 0 else [(a, 0) for a in sorted({a for a, _ in pairs})]
    return rows


def places_at(found: Sequence[Part], index: IntArray) -> IntArray:
    """Return the addresses of indices of an axis."""
    total = np.zeros_like(index)
    for part in found:
        if part.level is not Level.ADDR:
            continue
        total = total + index // part.lo % part.size * part.stride
    return total


LAYERS: tuple[Layer, ...] = (
    Copy("Concat", concat, frozenset({"axis"})),
    Copy("Split", split, frozenset({"axis", "num_outputs", "split"})),
    Copy("Slice", pick_slice, frozenset({"starts", "ends", "axes", "steps"})),
    Copy("Expand", expand, frozenset({"shape"})),
    Copy("Pad", pad, frozenset({"pads", "axes", "mode", "constant_value"})),
)
