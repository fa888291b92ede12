"""MNCoreWiden and MNCoreNarrow: halves become singles, and singles are rounded to halves.

A value of halves has four of them in a long word, all along one axis. As singles they take two
long words, at twice the address. No element changes its unit, so this costs one step a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..code.lines import PeOperand, single_step
from ..code.nest import Nest, Repeat
from ..graph.digits import agrees, merged
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from ..graph.layout import Layout, Layouts, Level, SubAxis, Ways
from ..machine import WORDS_PER_LONG, Target
from ..tolerance import MOVE, SUM
from .base import Cut, OtherLm, UntiedAxes, layout_of, not_apart
from .default_layout import fresh_layout, most_words

WIDEN, NARROW = "MNCoreWiden", "MNCoreNarrow"
#: The attribute that numbers the axis along which the halves of a long word lie.
AXIS = "axis"


class Conversion(UntiedAxes, OtherLm):
    """Writes halves as singles, where no value changes, or rounds singles to halves."""

    dtypes = frozenset({MNDtype.HALF, MNDtype.FLOAT})
    attributes = frozenset({AXIS})
    anchored = True

    def __init__(self, op: str):
        self.op = op
        # The rounding is that of a product's result, which the bound of products in half covers.
        self.error = MOVE if op == WIDEN else SUM

    def _pair(self, node: MNNode) -> tuple[str, str]:
        """Return the names of the halves and of the singles."""
        source, result = node.inputs[0], node.outputs[0]
        return (source, result) if self.op == WIDEN else (result, source)

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the layout of the input, or of the result; else spread long words over all units.

        A layout whose singles exceed LM is not kept: its halves may fit, and a switch brings them.
        """
        for found in self._near(node, hints):
            if most_words(found.values(), target) <= target.words("lm0"):
                return found
        return self._fresh(node, graph, target)

    def _near(self, node: MNNode, hints: Layouts) -> Ways:
        """Yield the layouts of both operands for each hint from which they follow."""
        halves, singles = self._pair(node)
        for name in (*node.inputs, *node.outputs):
            if name in hints:
                change = widened if name == halves else narrowed
                other = change(hints[name], _axis(node))
                if other is not None:
                    yield {halves: other, singles: other, name: hints[name]}

    def _fresh(self, node: MNNode, graph: MNGraph, target: Target) -> Layouts:
        halves, singles = self._pair(node)
        fresh = packed_layout(graph.values[halves].shape, _axis(node), target)
        wide = widened(fresh, _axis(node))
        assert wide is not None
        return {halves: fresh, singles: wide}

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield the layouts for each hint, also with its addresses in the order that fits."""
        halves, singles = self._pair(node)
        for name in [n for n in (*node.inputs, *node.outputs) if n in hints] or [""]:
            given = {name: hints[name]} if name else {}
            yield self.layouts(node, graph, target, given)
            if name == singles:
                ordered = pairs_first(hints[name], _axis(node))
                packed = None if ordered is None else narrowed(ordered, _axis(node))
                if ordered is not None and packed is not None and ordered != hints[name]:
                    yield {halves: packed, singles: ordered}

    def late_candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts near those of the singles whose long words lie along the axis of halves.

        Then singles need not cross L1Bs or L2Bs before they are rounded.
        """
        halves, singles = self._pair(node)
        if singles not in hints:
            return
        axis, pes = _axis(node), target.level_range[Level.PE.value]
        for ordered in words_along(hints[singles], axis, pes):
            packed = narrowed(ordered, axis)
            if packed is not None:
                yield {halves: packed, singles: ordered}

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield all axes: each slice has long words of its own."""
        source, result = node.inputs[0], node.outputs[0]
        for axis, size in enumerate(graph.values[source].shape):
            if size > 1:
                yield Cut(((source, axis), (result, axis)))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and layouts that do not go together."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        yield from not_apart(source, result)
        halves, singles = (graph.values[name] for name in self._pair(node))
        if (halves.dtype, singles.dtype) != (MNDtype.HALF, MNDtype.FLOAT):
            yield f"{source.dtype.value} as {result.dtype.value}"
        wide = widened(layout_of(halves), _axis(node))
        if wide is None:
            yield f"`{halves.name}` in layout {halves.layout}"
            return
        # The source may have copies that the result lacks: each unit converts what it holds.
        ends = (wide, layout_of(singles))
        has, needs = ends if source is halves else reversed(ends)
        if not agrees(has, needs, singles.shape, singles.dtype, target):
            yield f"`{singles.name}` in layout {singles.layout}"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: the MAU passes halves on as singles, or rounds singles that it reads."""
        halves, singles = (graph.values[name] for name in self._pair(node))
        times, count = _ratio(), layout_of(halves).num_lw(1)
        room = layout_of(singles).num_lw(target.cycles) // times

        def convert(turn: int) -> Nest:
            words = _vector(turn * target.cycles, count, room, target.cycles)
            narrow = PeOperand(halves.location.memory, words, halves.name)
            wide = PeOperand(
                singles.location.memory,
                tuple(times * word for word in words),
                singles.name,
                words=times * WORDS_PER_LONG,
            )
            if self.op == WIDEN:
                yield single_step("mau", "hvpassa", (narrow,), wide)
            else:
                read = wide._replace(reduce=True)
                yield single_step("mau", "hvpassar", (read,), narrow)

        yield Repeat(-(-count // target.cycles), convert)


def _vector(start: int, count: int, room: int, cycles: int) -> tuple[int, ...]:
    """Return the long words of halves of the step from long word ``start`` of ``count`` on.

    Singles have ``room`` for so many of them. That may be less than a whole number of vectors, and
    what lies behind belongs to another value. So the last vector repeats long words of others.
    """
    first = start if start + cycles <= room else max(0, count - cycles)
    return tuple(first + step if first + step < room else step % count for step in range(cycles))


def _axis(node: MNNode) -> int:
    return int(str(dict(node.attributes)[AXIS]))


def _ratio() -> int:
    return MNDtype.HALF.words_per_long // MNDtype.FLOAT.words_per_long


def packed_layout(shape: tuple[int, ...], axis: int, target: Target) -> Layout:
    """Return a layout of halves whose long words lie along ``axis``, spread over the units."""
    words = MNDtype.HALF.words_per_long
    longs = tuple(-(-size // words) if n == axis else size for n, size in enumerate(shape))
    found = fresh_layout(longs, MNDtype.LONG, target)
    axes = [
        (*subs, SubAxis(words, Level.W)) if n == axis else subs for n, subs in enumerate(found.axes)
    ]
    return Layout(tuple(axes), tuple(b for b in found.broadcast if b.level is not Level.W))


def widened(layout: Layout, axis: int) -> Layout | None:
    """Return the layout of singles made of halves in ``layout``; None if ``axis`` is not packed."""
    low = next(iter(merged(reversed(layout.axes[axis]))), None)
    if low != SubAxis(MNDtype.HALF.words_per_long, Level.W):
        return None
    times = _ratio()
    axes = [
        tuple(
            sub._replace(stride=sub.stride * times) if sub.level is Level.ADDR else sub
            for sub in subs
            if sub.level is not Level.W
        )
        for subs in layout.axes
    ]
    pair = (SubAxis(times, Level.ADDR, 1), SubAxis(MNDtype.FLOAT.words_per_long, Level.W))
    axes[axis] = (*axes[axis], *pair)
    return replace(layout, axes=tuple(axes))


def narrowed(layout: Layout, axis: int) -> Layout | None:
    """Return the layout of halves that :func:`widened` turns into ``layout``; None if none does."""
    times = _ratio()
    *above, last = layout.axes[axis] or (SubAxis(1, Level.ADDR),)
    if last != SubAxis(MNDtype.FLOAT.words_per_long, Level.W) or not above:
        return None
    low = above.pop()
    if low.level is not Level.ADDR or low.stride != 1 or low.size % times:
        return None
    if low.size > times:
        above.append(SubAxis(low.size // times, Level.ADDR, times))
    axes = []
    for number, subs in enumerate(layout.axes):
        out = []
        for sub in above if number == axis else subs:
            if sub.level is Level.ADDR:
                if sub.stride % times:
                    return None
                sub = sub._replace(stride=sub.stride // times)
            out.append(sub)
        axes.append(tuple(out))
    axes[axis] = (*axes[axis], SubAxis(MNDtype.HALF.words_per_long, Level.W))
    return replace(layout, axes=tuple(axes))


def pairs_first(layout: Layout, axis: int) -> Layout | None:
    """Return ``layout`` with its addresses dense, so that two long words along ``axis`` are pairs.

    The units stay. None if the elements of ``axis`` do not lie in long words, or if its next digit
    is on units.
    """
    times = _ratio()
    subs = layout.axes[axis]
    if len(subs) < 2 or subs[-1] != SubAxis(MNDtype.FLOAT.words_per_long, Level.W):
        return None
    low = subs[-2]
    if low.level is not Level.ADDR or low.size % times:
        return None
    # Digits of one size and stride do not differ, so each is found by its place.
    places = [
        (sub.stride, number, place)
        for number, own in enumerate(layout.axes)
        for place, sub in enumerate(own)
        if sub.level is Level.ADDR and (number, place) != (axis, len(subs) - 2)
    ]
    axes = [list(own) for own in layout.axes]
    axes[axis][-2] = low._replace(stride=1)
    stride = low.size
    for _, number, place in sorted(places):
        axes[number][place] = axes[number][place]._replace(stride=stride)
        stride *= axes[number][place].size
    return replace(layout, axes=tuple(tuple(own) for own in axes))


def words_along(layout: Layout, axis: int, pes: int) -> Iterator[Layout]:
    """Yield layouts with the lowest digits of ``axis`` exchanged for those of another axis.

    The other axis has the elements of long words, and gets the units that elements of ``axis``
    had. The exchange has two, four, or four elements of each of the ``pes`` PEs, so nothing
    leaves these units.
    """
    word = SubAxis(MNDtype.FLOAT.words_per_long, Level.W)
    other = next((n for n, subs in enumerate(layout.axes) if subs[-1:] == (word,)), axis)
    if other == axis:
        return
    pair = word.size * _ratio()
    for size in (word.size, pair, pair * pes):
        here, there = (_lowest(layout.axes[n], size) for n in (axis, other))
        if here is None or there is None:
            continue
        axes = list(layout.axes)
        axes[axis], axes[other] = (*here[0], *there[1]), (*there[0], *here[1])
        found = pairs_first(replace(layout, axes=tuple(axes)), axis)
        if found is not None:
            yield found


def _lowest(
    subs: tuple[SubAxis, ...], size: int
) -> tuple[tuple[SubAxis, ...], tuple[SubAxis, ...]] | None:
    """Part an axis above its lowest ``size`` places; None if a digit has no such part."""
    above, below = list(subs), list[SubAxis]()
    while size > 1:
        if not above:
            return None
        last = above.pop()
        if last.size > size:
            if last.size % size:
                return None
            above.append(last._replace(size=last.size // size, stride=last.stride * size))
            last = last._replace(size=size)
        if size % last.size:
            return None
        size //= last.size
        below.insert(0, last)
    return tuple(above), tuple(below)


LAYERS = (Conversion(WIDEN), Conversion(NARROW))
