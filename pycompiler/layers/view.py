"""Views: operators that give the same long words another layout, and have no code."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..graph.digits import agrees
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import Layout, Layouts, Level, Ways
from ..machine import Target
from .base import Cut, Layer, Placement, layout_of
from .data_movement import Moving
from .default_layout import fresh_layout, most_words, whole_layout
from .reshape import fitted, one_run, padded_axes, reshaped, same_words, stretches


class View(Moving):
    """An operator whose result is the long words of its input, read in another layout."""

    def __init__(self, op: str, attributes: frozenset[str] = frozenset()):
        self.op, self.attributes = op, attributes

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the layout of the input as far as the result's shape can be read out of it.

        Layouts that fit LM come first: the layout of the input may force whole axes into Addr.
        """
        first: Layouts | None = None
        for found in self._pairs(node, graph, target, hints):
            if most_words(found.values(), target) <= target.words("lm0"):
                return found
            first = first or found
        assert first is not None
        return first

    def _pairs(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts of input and result over the same long words, those to prefer first."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        dtype = source.dtype

        def tries() -> Iterator[Layout]:
            if source.name in hints:
                yield hints[source.name]
            yield fitted(source.shape, result.shape, dtype, target)
            yield fresh_layout(source.shape, dtype, target)
            yield whole_layout(source.shape, dtype, target)
            loose = padded_axes(source.shape, result.shape)
            yield whole_layout(source.shape, dtype, target, padded=loose)
            yield fitted(source.shape, result.shape, dtype, target, padded=True)

        for hint in tries():
            if self.op == "Transpose":
                yield {source.name: hint, result.name: _transposed(node, hint)}
                continue
            found = _both(hint, source.shape, result.shape, dtype, target)
            if found is not None:
                yield {source.name: found[0], result.name: found[1]}
        yield {value.name: one_run(value.shape, dtype, target) for value in (source, result)}

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield the layouts of :meth:`layouts`, and layouts that give the wanted result."""
        yield self.layouts(node, graph, target, hints)
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        wanted = hints.get(result.name)
        if wanted is None:
            return
        if self.op == "Transpose":
            order = order_of(node, len(source.shape))
            back = tuple(wanted.axes[order.index(axis)] for axis in range(len(order)))
            yield {source.name: Layout(back, wanted.broadcast), result.name: wanted}
            return
        found = _both(wanted, result.shape, source.shape, source.dtype, target)
        if found is not None:
            yield {source.name: found[1], result.name: found[0]}

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Take over the input's words."""
        return Placement((Location.LM0,), (Location.LM0,), 0)

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield layouts under which elements would have to move."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if (source.location, source.addr) != (result.location, result.addr):
            yield "operands that are not the same long words"
        ours, theirs = layout_of(source), layout_of(result)
        turned = self.op == "Transpose"
        same = _same_axes_of(ours, source.shape, result.shape) if not turned else None
        same = _transposed(node, ours) if turned else same
        if same is not None and agrees(same, theirs, result.shape, result.dtype, target):
            return
        if turned or not same_words(ours, source.shape, theirs, result.shape):
            yield f"`{result.name}` in layout {theirs}"

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that source and result have in common.

        If axes are cut or joined, the outermost ones may be cut together: a slice of heads is a
        slice of the columns of all heads.
        """
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if self.op == "Transpose":
            order = order_of(node, len(source.shape))
            pairs = [(old, new) for new, old in enumerate(order) if source.shape[old] > 1]
        else:
            ours, theirs = (_weights(value.shape) for value in (source, result))
            pairs = [(axis, theirs[key]) for key, axis in ours.items() if key in theirs]
            for own, other in stretches(source.shape, result.shape):
                sizes = [source.shape[own[0]], result.shape[other[0]]] if own and other else [1, 1]
                if sizes[0] != sizes[1] and max(sizes) % min(sizes) == 0:
                    pairs.append((own[0], other[0]))
        for old, new in pairs:
            yield Cut(((source.name, old), (result.name, new)))


def _both(
    hint: Layout, shape: tuple[int, ...], result: tuple[int, ...], dtype: MNDtype, target: Target
) -> tuple[Layout, Layout] | None:
    """Return layouts of both shapes close to ``hint``; None if there are none."""
    same = _same_axes_of(hint, shape, result)
    return (hint, same) if same is not None else reshaped(hint, shape, result, dtype, target)


def _weights(shape: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Return the axes longer than 1 by size and weight in the flat index."""
    found = ((size, prod(shape[axis + 1 :]), axis) for axis, size in enumerate(shape))
    return {(size, weight): axis for size, weight, axis in found if size > 1}


def order_of(node: MNNode, rank: int) -> tuple[int, ...]:
    """Return for each axis of the result its axis of the source."""
    order = dict(node.attributes).get("perm")
    if isinstance(order, tuple):
        return tuple(int(axis) for axis in order)
    return tuple(reversed(range(rank)))


def _transposed(node: MNNode, layout: Layout) -> Layout:
    axes = order_of(node, len(layout.axes))
    return Layout(tuple(layout.axes[axis] for axis in axes), layout.broadcast)


def _same_axes_of(layout: Layout, shape: tuple[int, ...], result: tuple[int, ...]) -> Layout | None:
    """Return the layout of ``result`` if the two shapes differ only in axes of size 1."""
    if [size for size in shape if size > 1] != [size for size in result if size > 1]:
        return None
    kept = iter([axis for axis, size in zip(layout.axes, shape, strict=True) if size > 1])
    axes = [next(kept) if size > 1 else () for size in result]
    # W digits of an axis of size 1 hold no copies: they stay, as digits that no index reaches.
    pairs = zip(layout.axes, shape, strict=True)
    idle = tuple(s for axis, size in pairs if size == 1 for s in axis if s.level is Level.W)
    if idle:
        if not axes:
            return None
        axes[0] = (*idle, *axes[0])
    return Layout(tuple(axes), layout.broadcast)


LAYERS: tuple[Layer, ...] = (
    View("Reshape", frozenset({"shape", "allowzero"})),
    View("Flatten", frozenset({"axis"})),
    View("Squeeze", frozenset({"axes"})),
    View("Unsqueeze", frozenset({"axes"})),
    View("Transpose", frozenset({"perm"})),
)

VIEWS = frozenset(layer.op for layer in LAYERS)
