"""Operators that only say where elements are: views, and copies inside the PEs.

A *view* (Reshape, Transpose, Squeeze ...) gives the same long words another layout. A *copy*
(Slice, Concat, Split, Expand, Pad) works where the axes it changes lie in Addr alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod

import numpy as np

from ..errors import GraphError
from ..graph.digits import Part, agrees, all_ranges, copied_digits, make_layout, parts, primes
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import UNIT_LEVELS, Layout, Level
from ..graph.verify import layout_ranges
from ..machine import IntArray, Target
from ..tolerance import MOVE
from .base import Cut, Frame, Layer, Placement, layout_of
from .fragment import Fragment, Instruction, Line, Literal, PeOperand, Special, Step
from .scratch import vector

_MOVED = frozenset(
    {MNDtype.FLOAT, MNDtype.SINGLE_BOOL, MNDtype.INT, MNDtype.LONG, MNDtype.HALF, MNDtype.UINT}
)


class _Moving(Layer):
    dtypes = _MOVED
    error = MOVE
    anchored = True

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Tie no axes: the operands have layouts of their own."""
        return Frame((), ())

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Why the node cannot run on the device."""
        found = super().unsupported(node, graph, dtypes)
        if found is None and len(set(dtypes)) > 1:
            return f"{self.op} with a parameter that is no constant"
        return found


# -- layouts ---------------------------------------------------------------------------------


def fresh_layout(shape: tuple[int, ...], dtype: MNDtype, target: Target, times: int = 1) -> Layout:
    """Return a layout for a value nobody has laid out: without padding if that is small enough.

    ``times`` is how many such values there will be in LM.
    """
    whole = whole_layout(shape, dtype, target)
    if whole.num_lw(target.cycles) * times * 4 <= target.words("lm0"):
        return whole
    return whole_layout(shape, dtype, target, padded=True)


def whole_layout(
    shape: tuple[int, ...], dtype: MNDtype, target: Target, *, padded: bool = False
) -> Layout:
    """Return a layout in which digits of the machine go to axes they divide.

    ``padded`` gives a digit that divides no axis to the longest.
    """
    ranges = all_ranges(target.level_range, dtype)
    rest, placed = list(shape), {axis: list[Part]() for axis in range(len(shape))}
    copies: dict[Level, set[tuple[int, int]]] = {}
    for level in (Level.W, *reversed(UNIT_LEVELS)):
        chosen: list[tuple[int, tuple[int, int]]] = []
        for digit in primes(ranges[level]):
            enough = level is not Level.W and prod(rest) <= target.cycles
            axis = next((a for a in reversed(range(len(rest))) if rest[a] % digit[1] == 0), None)
            if axis is None and padded and prod(rest) > 1:
                axis = max(range(len(rest)), key=lambda a: rest[a])
            if axis is None or enough:
                copies.setdefault(level, set()).add(digit)
                continue
            chosen.append((axis, digit))
            rest[axis] = -(-rest[axis] // digit[1])
        if level is Level.W and copies.get(level):
            # Words are packed wholly or not at all.
            rest = list(shape)
            copies[level] = set(primes(ranges[level]))
            continue
        for axis, (stride, size) in chosen:
            lo = prod(part.size for part in placed[axis])
            placed[axis].append(Part(lo, size, level, stride))
    stride = 1
    for axis in reversed(range(len(shape))):
        if rest[axis] > 1:
            lo = prod(part.size for part in placed[axis])
            placed[axis].append(Part(lo, rest[axis], Level.ADDR, stride))
            stride *= rest[axis]
    frozen = {level: frozenset(digits) for level, digits in copies.items()}
    return make_layout(len(shape), placed, frozen, ranges)


def _copies(
    layout: Layout, dtype: MNDtype, target: Target
) -> dict[Level, frozenset[tuple[int, int]]]:
    ranges = all_ranges(target.level_range, dtype)
    return {lv: copied_digits(layout, lv, ranges) for lv in (Level.W, *UNIT_LEVELS)}


def _built(
    shape: tuple[int, ...],
    placed: Mapping[int, list[Part]],
    like: Layout,
    dtype: MNDtype,
    target: Target,
) -> Layout | None:
    """Return the layout of these parts with the copies of ``like``; None if it is not legal."""
    copies = _copies(like, dtype, target)
    if not any(p.level is Level.W for found in placed.values() for p in found):
        copies[Level.W] = frozenset(primes(dtype.words_per_long))
    try:
        ranges = all_ranges(target.level_range, dtype)
        made = make_layout(len(shape), placed, copies, ranges)
        made.check(shape, dtype, layout_ranges(target), target.words("dram"))
    except (GraphError, ValueError):
        return None
    return made


def _dense(placed: Mapping[int, list[Part]]) -> dict[int, list[Part]]:
    """Give the parts in Addr strides without holes, minor parts of the last axis first."""
    out: dict[int, list[Part]] = {}
    stride = 1
    for axis in sorted(placed, reverse=True):
        out[axis] = []
        for part in sorted(placed[axis]):
            if part.level is Level.ADDR:
                part = Part(part.lo, part.size, Level.ADDR, stride)
                stride *= part.size
            out[axis].append(part)
    return out


# -- views -----------------------------------------------------------------------------------


class View(_Moving):
    """An operator whose result has the long words of its input."""

    def __init__(self, op: str, attributes: frozenset[str] = frozenset()):
        self.op, self.attributes = op, attributes

    def layouts(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> dict[str, Layout]:
        """Keep what the input has as far as the result can be cut out of it."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        dtype = source.dtype
        tries = [hints[source.name]] if source.name in hints else []
        tries += [_fitted(source.shape, result.shape, dtype, target)]
        tries += [fresh_layout(source.shape, dtype, target)]
        tries += [whole_layout(source.shape, dtype, target)]
        for hint in tries:
            if self.op == "Transpose":
                return {source.name: hint, result.name: _transposed(node, hint)}
            same = _same_axes_of(hint, source.shape, result.shape)
            if same is not None:
                return {source.name: hint, result.name: same}
            found = _reshaped(hint, source.shape, result.shape, dtype, target)
            if found is not None:
                return {source.name: found[0], result.name: found[1]}
        # One run of Addr in every PE can be cut anywhere.
        flat = _flat(source.shape), _flat(result.shape)
        like = Layout(())
        layouts = [
            _built(v.shape, p, like, dtype, target)
            for v, p in zip((source, result), flat, strict=True)
        ]
        assert layouts[0] is not None
        assert layouts[1] is not None
        return {source.name: layouts[0], result.name: layouts[1]}

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Take over the input's words."""
        return Placement((Location.LM0,), (Location.LM0,), 0)

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield layouts under which elements would have to move."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if (source.location, source.addr) != (result.location, result.addr):
            yield "operands that are not the same long words"
        ours, theirs = layout_of(source), layout_of(result)
        same: Layout | None
        if self.op == "Transpose":
            same = _transposed(node, ours)
        else:
            same = _same_axes_of(ours, source.shape, result.shape)
        if same is not None and agrees(same, theirs, result.shape, result.dtype, target):
            return
        if self.op == "Transpose":
            yield f"`{result.name}` in layout {theirs}"
            return
        one, other = (
            _flat_parts(layout, v.shape) for layout, v in ((ours, source), (theirs, result))
        )
        if _runs(one) != _runs(other):
            yield f"`{result.name}` in layout {theirs}"

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Count nothing."""
        return 0

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return no code."""
        return Fragment(())

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that source and result have alike."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if self.op == "Transpose":
            rank = len(source.shape)
            order = _ints(node, "perm") or tuple(reversed(range(rank)))
            pairs = [(old, new) for new, old in enumerate(order) if source.shape[old] > 1]
        else:
            ours, theirs = (_weights(value.shape) for value in (source, result))
            pairs = [(axis, theirs[key]) for key, axis in ours.items() if key in theirs]
        for old, new in pairs:
            yield Cut(((source.name, old), (result.name, new)))


def _weights(shape: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Return the axes longer than 1 by size and weight in the flat index."""
    found = ((size, prod(shape[axis + 1 :]), axis) for axis, size in enumerate(shape))
    return {(size, weight): axis for size, weight, axis in found if size > 1}


def _transposed(node: MNNode, layout: Layout) -> Layout:
    order = dict(node.attributes).get("perm")
    axes = tuple(reversed(range(len(layout.axes))))
    if isinstance(order, tuple):
        axes = tuple(int(axis) for axis in order)
    return Layout(tuple(layout.axes[axis] for axis in axes), layout.broadcast)


def _same_axes_of(layout: Layout, shape: tuple[int, ...], result: tuple[int, ...]) -> Layout | None:
    """Return the layout of ``result`` if it only has other axes of size 1 than ``shape``."""
    if [size for size in shape if size > 1] != [size for size in result if size > 1]:
        return None
    kept = iter([axis for axis, size in zip(layout.axes, shape, strict=True) if size > 1])
    axes = [next(kept) if size > 1 else () for size in result]
    # Words that only an axis of size 1 packs hold no copies: they stay digits nothing meets.
    pairs = zip(layout.axes, shape, strict=True)
    idle = tuple(s for axis, size in pairs if size == 1 for s in axis if s.level is Level.W)
    if idle:
        if not axes:
            return None
        axes[0] = (*idle, *axes[0])
    return Layout(tuple(axes), layout.broadcast)


def _flat(shape: tuple[int, ...]) -> dict[int, list[Part]]:
    out: dict[int, list[Part]] = {}
    for axis, size in enumerate(shape):
        stride = prod(shape[axis + 1 :])
        out[axis] = [Part(1, size, Level.ADDR, stride)] if size > 1 else []
    return out


def _flat_parts(layout: Layout, shape: tuple[int, ...]) -> list[Part]:
    """Return the parts of all axes with their weights in the flat index, minor first."""
    out: list[Part] = []
    for axis, found in enumerate(parts(layout, shape)):
        weight = prod(shape[axis + 1 :])
        out += [Part(p.lo * weight, p.size, p.level, p.stride) for p in found]
    return sorted(out)


def _runs(found: Sequence[Part]) -> list[Part]:
    """Join parts that continue each other, so that how an axis is cut does not matter."""
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
    # The topmost part may be cut short by either shape.
    return [*out[:-1], Part(out[-1].lo, 0, out[-1].level, out[-1].stride)] if out else []


def _fitted(
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
    made = _built(shape, _by_axis(cut, shape), flat, dtype, target)
    return made if made is not None else whole_layout(shape, dtype, target)


def _reshaped(
    hint: Layout,
    shape: tuple[int, ...],
    result: tuple[int, ...],
    dtype: MNDtype,
    target: Target,
) -> tuple[Layout, Layout] | None:
    """Return layouts of both shapes over the same long words, close to ``hint``."""
    own: dict[int, list[Part]] = dict(enumerate(parts(hint, shape)))
    first = next((axis for axis, size in enumerate(shape) if size > 1), 0)
    changed = False
    for axis, size in enumerate(shape):
        if axis != first and prod(p.size for p in own[axis]) != size:
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
        else:
            changed = True
            pieces += _cut(
                Part(low, -(-high // low), Level.ADDR, 0),
                sorted({low} | _inner(ours, low, high)),
                high,
            )
            if not _same_cuts(ours, theirs, low, high):
                # Address digits can be cut both ways.
                return _both_ways(flat, pieces, common, shape, result, hint, dtype, target)
    if changed:
        pieces = _strides(pieces)
    return _pair(pieces, pieces, shape, result, hint, dtype, target)


def _both_ways(
    flat: Sequence[Part],
    done: Sequence[Part],
    common: Sequence[int],
    shape: tuple[int, ...],
    result: tuple[int, ...],
    hint: Layout,
    dtype: MNDtype,
    target: Target,
) -> tuple[Layout, Layout] | None:
    """Put the stretches that the shapes cut differently into Addr, in one run each."""
    total = prod(shape)
    ours, theirs = _bounds(shape), _bounds(result)
    one: list[Part] = []
    other: list[Part] = []
    stride = 1
    del done
    for low, high in pairwise(common):
        within = [p for p in flat if low <= p.lo < high]
        cuts = {low} | _inner(ours | theirs, low, high) | {p.lo for p in within}
        chain = sorted(cuts) + ([] if high == total else [high])
        if all(b % a == 0 for a, b in pairwise(chain)):
            for part in within:
                for piece in _cut(part, sorted(cuts), total if high == total else high):
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
        _built(given, _by_axis(found, given), hint, dtype, target)
        for found, given in ((one, shape), (other, result))
    ]
    if made[0] is None or made[1] is None:
        return None
    return made[0], made[1]


def _common(ours: set[int], theirs: set[int], total: int) -> list[int]:
    """Return weights below which the index splits alike in both shapes."""
    both = sorted({1} | (ours & theirs))
    more = set(both)
    for low, high in pairwise([*both, total]):
        inner = sorted(_inner(ours | theirs, low, high)) + ([] if high == total else [high])
        for index in range(len(inner)):
            found = gcd(*inner[index:])
            if found > low and all(c % found == 0 or found % c == 0 for c in (low, *inner)):
                more.add(found)
    return sorted(c for c in more if c < total)


def _bounds(shape: tuple[int, ...]) -> set[int]:
    return {prod(shape[axis + 1 :]) for axis in range(len(shape))}


def _inner(cuts: set[int], low: int, high: int) -> set[int]:
    return {c for c in cuts if low < c < high}


def _same_cuts(ours: set[int], theirs: set[int], low: int, high: int) -> bool:
    return _inner(ours, low, high) == _inner(theirs, low, high)


def _cut(part: Part, cuts: Sequence[int], end: int) -> list[Part]:
    """Split a part at weights; ``end`` is where what follows begins."""
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


# -- copies ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Selection:
    """For each index of a result's axis: which input, and which index of its axis; -1 for none."""

    source: tuple[int, ...]
    index: tuple[int, ...]


#: For each input the axis of the result that each of its axes is (or None), and selections by
#: axis of the result.
Picked = tuple[tuple[tuple[int | None, ...], ...], dict[int, Selection]]


class Copy(_Moving):
    """An operator that copies elements along some axes.

    ``pick`` says for output ``number`` of a node where its elements come from.
    """

    def __init__(
        self,
        op: str,
        pick: Callable[[MNNode, MNGraph, int], Picked],
        attributes: frozenset[str] = frozenset(),
    ):
        self.op, self.pick, self.attributes = op, pick, attributes

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Why the node cannot run on the device."""
        facts = dict(node.attributes)
        if self.op == "Pad" and facts.get("mode", "constant") != "constant":
            return f"Pad in mode {facts['mode']}"
        if self.op == "Pad" and dtypes and dtypes[0] not in (MNDtype.FLOAT, MNDtype.INT):
            return f"Pad of {dtypes[0].value}"
        return super().unsupported(node, graph, dtypes)

    def layouts(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> dict[str, Layout]:
        """Keep the other axes; those that change go to Addr."""
        names = list(dict.fromkeys(node.inputs))
        known = [name for name in names if name in hints]
        main = max(known or names, key=lambda name: prod(graph.values[name].shape))
        value = graph.values[main]
        dtype = value.dtype
        touched = {
            axis
            for number in range(len(node.outputs))
            for axis in self.pick(node, graph, number)[1]
        }
        along = self.pick(node, graph, 0)[0][node.inputs.index(main)]
        # What changes will be in Addr: no unit should be given to it.
        spread = tuple(
            1 if where in touched else size for where, size in zip(along, value.shape, strict=True)
        )
        times = prod(value.shape) // max(1, prod(spread))
        hint = hints.get(main) or fresh_layout(spread, dtype, target, times)
        out = graph.values[node.outputs[0]]
        kept: dict[int, list[Part]] = {}
        for axis, where in enumerate(along):
            if where is not None and where not in touched:
                kept[where] = parts(hint, value.shape)[axis]
        packed = prod(p.size for found in kept.values() for p in found if p.level is Level.W)
        if packed != dtype.words_per_long:
            kept = {
                axis: _renumbered([p for p in found if p.level is not Level.W], out.shape[axis])
                for axis, found in kept.items()
            }
        layouts: dict[str, Layout] = {}
        for number, name in enumerate(node.outputs):
            shape = graph.values[name].shape
            placed = {
                axis: [Part(1, shape[axis], Level.ADDR, 0)]
                if axis in touched
                else kept.get(axis, [])
                for axis in range(len(shape))
            }
            layouts[name] = self._made(shape, placed, hint, dtype, target)
            along_all, _ = self.pick(node, graph, number)
            for index, given in enumerate(node.inputs):
                own = graph.values[given].shape
                placed = {}
                for axis, where in enumerate(along_all[index]):
                    if where is None or own[axis] == 1:
                        placed[axis] = []
                    elif where in touched:
                        placed[axis] = [Part(1, own[axis], Level.ADDR, 0)]
                    else:
                        placed[axis] = kept.get(where, [])
                layouts[given] = self._made(own, placed, hint, dtype, target)
        return layouts

    def _made(
        self,
        shape: tuple[int, ...],
        placed: Mapping[int, list[Part]],
        hint: Layout,
        dtype: MNDtype,
        target: Target,
    ) -> Layout:
        cleaned = {axis: [p for p in found if p.size > 1] for axis, found in placed.items()}
        made = _built(shape, _dense(cleaned), hint, dtype, target)
        if made is None:
            made = _built(shape, _dense(cleaned), Layout(()), dtype, target)
        assert made is not None
        return made

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that stay as they are."""
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
        """Yield changed axes that are not in Addr, and others that do not agree."""
        banks = (Location.LM0, Location.LM1)
        values = [graph.values[name] for name in (*node.inputs, *node.outputs)]
        if any(value.location not in banks for value in values):
            yield "an operand that is not in LM"
        read = {graph.values[name].location for name in node.inputs}
        if any(graph.values[name].location in read for name in node.outputs):
            yield "an input and an output in one LM"
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
                        if any(p.level is not Level.ADDR for p in (*ours[axis], *theirs[where])):
                            yield f"axis {where} of `{name}` on units"
                    elif _levels(ours[axis]) != _levels(theirs[where]):
                        yield f"axis {where} of `{name}` on other units than in `{given}`"

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Count the steps."""
        return sum(isinstance(line, Step) for line in self.emit(node, graph, target).lines)

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the code: a copy per vector."""
        lines: list[Line] = []
        for number, name in enumerate(node.outputs):
            out = graph.values[name]
            along, picked = self.pick(node, graph, number)
            for index, rows in _copied(node, graph, number, along, picked).items():
                for start in range(0, len(rows), target.cycles):
                    part = rows[start : start + target.cycles]
                    part += [part[-1]] * (target.cycles - len(part))
                    there = vector(out, tuple(at for at, _ in part))
                    if index < 0:
                        bits = _bits(dict(node.attributes).get("constant_value", 0), out.dtype)
                        source = Instruction("alu", "imm", (Literal(bits),), (Special("nowrite"),))
                        lines.append(Step((source,)))
                        copy = Instruction("alu", "lpassa", (Special("aluf"),), (there,))
                        lines.append(Step((copy,)))
                        continue
                    given = graph.values[node.inputs[index]]
                    here: PeOperand = vector(given, tuple(at for _, at in part))
                    lines.append(Step((Instruction("alu", "lpassa", (here,), (there,)),)))
        return Fragment(tuple(lines))


def _bits(value: object, dtype: MNDtype) -> int:
    if isinstance(value, tuple):
        value = value[0] if value else 0
    if dtype is MNDtype.FLOAT:
        return int.from_bytes(struct.pack(">f", float(str(value))), "big")
    return int(str(value)) & 0xFFFFFFFF


def _renumbered(found: Sequence[Part], size: int) -> list[Part]:
    """Close the gaps that digits left which were taken out: what is missing goes to Addr."""
    out: list[Part] = []
    weight = 1
    for part in sorted(found):
        if part.lo != weight:
            out.append(Part(weight, part.lo // weight, Level.ADDR, 0))
        out.append(part)
        weight = part.lo * part.size
    if weight < size:
        out.append(Part(weight, -(-size // weight), Level.ADDR, 0))
    return out


def _levels(found: Sequence[Part]) -> list[tuple[int, int, Level, int]]:
    return [
        (p.lo, p.size, p.level, 0 if p.level is Level.ADDR else p.stride) for p in sorted(found)
    ]


def _copied(
    node: MNNode,
    graph: MNGraph,
    number: int,
    along: tuple[tuple[int | None, ...], ...],
    picked: dict[int, Selection],
) -> dict[int, list[tuple[int, int]]]:
    """For each input (-1: the constant), pairs of result and input addresses."""
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
                to, fro = _at(theirs[axis], indices[mine]), _at(own, inner)
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


def _at(found: Sequence[Part], index: IntArray) -> IntArray:
    total = np.zeros_like(index)
    for part in found:
        total = total + index // part.lo % part.size * part.stride
    return total


def _same_axes(node: MNNode, graph: MNGraph) -> tuple[tuple[int | None, ...], ...]:
    rank = len(graph.values[node.outputs[0]].shape)
    return tuple(tuple(range(rank)) for _ in node.inputs)


def _axis(node: MNNode, graph: MNGraph, default: int = 0) -> int:
    rank = len(graph.values[node.outputs[0]].shape)
    found = dict(node.attributes).get("axis", default)
    assert isinstance(found, int)
    return found % rank


def _concat(node: MNNode, graph: MNGraph, number: int) -> Picked:
    axis = _axis(node, graph)
    source: list[int] = []
    index: list[int] = []
    for which, name in enumerate(node.inputs):
        size = graph.values[name].shape[axis]
        source += [which] * size
        index += range(size)
    return _same_axes(node, graph), {axis: Selection(tuple(source), tuple(index))}


def _split(node: MNNode, graph: MNGraph, number: int) -> Picked:
    axis = _axis(node, graph)
    before = sum(graph.values[name].shape[axis] for name in node.outputs[:number])
    size = graph.values[node.outputs[number]].shape[axis]
    chosen = Selection((0,) * size, tuple(range(before, before + size)))
    return _same_axes(node, graph), {axis: chosen}


def _ints(node: MNNode, name: str) -> tuple[int, ...] | None:
    found = dict(node.attributes).get(name)
    return None if found is None else tuple(int(v) for v in found)  # type: ignore[union-attr]


def _slice(node: MNNode, graph: MNGraph, number: int) -> Picked:
    shape = graph.values[node.inputs[0]].shape
    starts, ends = _ints(node, "starts") or (), _ints(node, "ends") or ()
    axes = _ints(node, "axes") or tuple(range(len(starts)))
    steps = _ints(node, "steps") or (1,) * len(starts)
    picked: dict[int, Selection] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = shape[axis % len(shape)]
        low = -1 if step < 0 else 0
        high = size - 1 if step < 0 else size
        first = min(max(start + size if start < 0 else start, 0), high)
        last = min(max(end + size if end < 0 else end, low), size)
        chosen = tuple(range(first, last, step))
        if chosen != tuple(range(size)):
            picked[axis % len(shape)] = Selection((0,) * len(chosen), chosen)
    return _same_axes(node, graph), picked


def _expand(node: MNNode, graph: MNGraph, number: int) -> Picked:
    shape, wide = (graph.values[n].shape for n in (node.inputs[0], node.outputs[0]))
    skipped = len(wide) - len(shape)
    along = (tuple(axis + skipped for axis in range(len(shape))),)
    picked = {
        axis: Selection((0,) * size, (0,) * size)
        for axis, size in enumerate(wide)
        if size > 1 and (axis < skipped or shape[axis - skipped] == 1)
    }
    return along, picked


def _pad(node: MNNode, graph: MNGraph, number: int) -> Picked:
    shape = graph.values[node.inputs[0]].shape
    pads = _ints(node, "pads") or ()
    axes = _ints(node, "axes") or tuple(range(len(shape)))
    picked: dict[int, Selection] = {}
    for place, axis in enumerate(axes):
        before, after = pads[place], pads[place + len(axes)]
        if not before and not after:
            continue
        size = shape[axis % len(shape)]
        index = range(-before, size + after)
        picked[axis % len(shape)] = Selection(
            tuple(0 if 0 <= i < size else -1 for i in index),
            tuple(i if 0 <= i < size else 0 for i in index),
        )
    return _same_axes(node, graph), picked


LAYERS: tuple[Layer, ...] = (
    View("Reshape", frozenset({"shape", "allowzero"})),
    View("Flatten", frozenset({"axis"})),
    View("Squeeze", frozenset({"axes"})),
    View("Unsqueeze", frozenset({"axes"})),
    View("Transpose", frozenset({"perm"})),
    Copy("Concat", _concat, frozenset({"axis"})),
    Copy("Split", _split, frozenset({"axis", "num_outputs", "split"})),
    Copy("Slice", _slice, frozenset({"starts", "ends", "axes", "steps"})),
    Copy("Expand", _expand, frozenset({"shape"})),
    Copy("Pad", _pad, frozenset({"pads", "axes", "mode", "constant_value"})),
)
