"""MNCoreWiden: halves become singles.

A value of halves has four of them in a long word, all along one axis. As singles they take two
long words, at twice the address. No element changes its unit, so this costs one step a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..graph.digits import agrees
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import Layout, Level, SubAxis
from ..machine import WORDS_PER_LONG, Target
from ..tolerance import MOVE
from .base import Cut, OtherLm, UntiedAxes, layout_of
from .default_layout import fresh_layout
from .fragment import Fragment, PeOperand, single_step

WIDEN = "MNCoreWiden"
#: The attribute that numbers the axis along which the halves of a long word lie.
AXIS = "axis"


class Widen(UntiedAxes, OtherLm):
    """Writes halves as singles; no value changes."""

    op = WIDEN
    dtypes = frozenset({MNDtype.HALF, MNDtype.FLOAT})
    attributes = frozenset({AXIS})
    error = MOVE
    anchored = True

    def layouts(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> dict[str, Layout]:
        """Keep the layout of the input, or of the result; else spread long words over all units."""
        source, result = node.inputs[0], node.outputs[0]
        axis = _axis(node)
        if source in hints:
            wide = widened(hints[source], axis)
            if wide is not None:
                return {source: hints[source], result: wide}
        if result in hints:
            narrow = narrowed(hints[result], axis)
            if narrow is not None:
                return {source: narrow, result: hints[result]}
        fresh = packed_layout(graph.values[source].shape, axis, target)
        wide = widened(fresh, axis)
        assert wide is not None
        return {source: fresh, result: wide}

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that lie in no long word."""
        source, result = node.inputs[0], node.outputs[0]
        for axis, size in enumerate(graph.values[source].shape):
            if size > 1 and axis != _axis(node):
                yield Cut(((source, axis), (result, axis)))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and layouts that do not go together."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if {source.location, result.location} != {Location.LM0, Location.LM1}:
            yield "operands that are not one in LM0 and one in LM1"
        if (source.dtype, result.dtype) != (MNDtype.HALF, MNDtype.FLOAT):
            yield f"{source.dtype.value} as {result.dtype.value}"
        wide = widened(layout_of(source), _axis(node))
        if wide is None:
            yield f"`{source.name}` in layout {source.layout}"
        elif not agrees(wide, layout_of(result), result.shape, result.dtype, target):
            yield f"`{result.name}` in layout {result.layout}"

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Count the steps: one for each vector of halves."""
        return layout_of(graph.values[node.inputs[0]]).num_lw(target.cycles) // target.cycles

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the code: the MAU passes halves on and gives singles."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        times = _ratio()
        lines = []
        for start in range(0, layout_of(source).num_lw(target.cycles), target.cycles):
            words = tuple(range(start, start + target.cycles))
            read = PeOperand(source.location.memory, words, source.name)
            written = PeOperand(
                result.location.memory,
                tuple(times * word for word in words),
                result.name,
                words=times * WORDS_PER_LONG,
            )
            lines.append(single_step("mau", "hvpassa", (read,), written))
        return Fragment(tuple(lines))


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
    words = MNDtype.HALF.words_per_long
    if layout.axes[axis][-1:] != (SubAxis(words, Level.W),):
        return None
    times = _ratio()
    axes = [
        tuple(
            replace_stride(sub, times) if sub.level is Level.ADDR else sub
            for sub in subs
            if sub.level is not Level.W
        )
        for subs in layout.axes
    ]
    low = (SubAxis(times, Level.ADDR, 1), SubAxis(MNDtype.FLOAT.words_per_long, Level.W))
    axes[axis] = (*axes[axis], *low)
    return replace(layout, axes=tuple(axes))


def replace_stride(sub: SubAxis, times: int) -> SubAxis:
    """Return an Addr digit with ``times`` its stride."""
    return sub._replace(stride=sub.stride * times)


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


LAYERS = (Widen(),)
