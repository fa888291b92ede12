"""A graph that is cut into time slices, and the tests that find nodes with too large operands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from ...graph.graph import Location, MNGraph, MNNode, MNValue, TensorType
from ...graph.layout import Layout, Level, SubAxis
from ...layers.base import banks_of, layout_of
from ...layers.operators import LAYERS, stays_in_dram
from ...layers.switch.layer import SWITCH
from ...machine import Target
from ..lpz.costs import Costs
from .cut_classes import Axes, Axis

#: The part of LM1 that a matrix may take so that the next one can arrive while the MAU works on it.
BESIDE = 0.4
_LIVE = 0.75  # the part of both LMs that the live values of a slice may take


@dataclass(frozen=True)
class TimeSlices:
    """A graph that is cut into time slices.

    ``graph`` is laid out for one slice; ``axes`` are its classes. ``sizes`` are the elements of a
    slice along the classes that are cut. ``whole`` has the axes in full length. ``batch`` is the
    class of which each slice goes through the whole graph before the next one.
    """

    graph: MNGraph
    whole: MNGraph
    axes: Axes
    sizes: Mapping[Axis, int]
    batch: Axis | None = None

    def cut_axes(self, name: str) -> list[tuple[int, Axis]]:
        """Return the axes of a value that are cut, with their classes."""
        if not self.sizes or name not in self.graph.values:
            return []
        return [(n, one) for n, one in self.axes.of_value(name) if one in self.sizes]

    def local(self, name: str, number: int) -> int:
        """Return how many elements of an axis one PE has in Addr."""
        axis = layout_of(self.graph.values[name]).axes[number]
        return prod(sub.size for sub in axis if sub.level is Level.ADDR)

    @cached_property
    def lengths(self) -> Mapping[Axis, int]:
        """The full length of every class."""
        return {
            self.axes.of((name, number)): size // self.axes.factor((name, number))
            for name, value in self.whole.values.items()
            if name in self.graph.values
            for number, size in enumerate(value.shape)
        }

    def count(self, one: Axis) -> int:
        """Return the number of slices along a class."""
        return -(-self.lengths[one] // self.sizes[one])

    def annotated(self) -> MNGraph:
        """Return the graph with whole values, whose layouts have Time digits."""
        values: dict[str, MNValue] = {}
        for name, value in self.graph.values.items():
            cut = self.cut_axes(name)
            if not cut:
                continue
            shape, axes = list(value.shape), list(layout_of(value).axes)
            stride = 1
            for number, one in reversed(cut):
                shape[number] = self.lengths[one] * self.axes.factor((name, number))
                time = SubAxis(self.count(one), Level.TIME, stride)
                axes[number] = (time, *axes[number])
                stride *= time.size
            layout = Layout(tuple(axes), layout_of(value).broadcast)
            type = TensorType(value.type.elem, tuple(shape))
            values[name] = replace(value, type=type, layout=layout)
        return self.graph.with_values(values)


@dataclass(frozen=True)
class Like:
    """The cuts of a graph that was planned before: sizes of slices by the axes of this one.

    ``batch`` is an axis of the batch, if that graph was a part of it.
    """

    sizes: Mapping[Axis, int]
    batch: Axis | None = None


def too_large(graph: MNGraph, target: Target, fraction: float) -> Iterator[tuple[float, MNNode]]:
    """Yield the nodes whose operands exceed the part ``fraction`` of LM, with the factor."""
    for node in graph.device_nodes():
        placement = LAYERS[node.op].place(node, graph)
        used: dict[Location, int] = {}
        banks = banks_of(node, placement)
        if placement.inplace is not None:
            del banks[node.outputs[0]]
        for name, bank in banks.items():
            if name:
                used[bank] = used.get(bank, 0) + (graph.values[name].num_lw or 0)
        factor = max(words / target.words(bank.memory) for bank, words in used.items())
        if factor > fraction:
            yield factor / fraction, node


def wide(found: TimeSlices, target: Target, fraction: float) -> Iterator[tuple[float, MNNode]]:
    """Yield the nodes whose operands, without constants, leave little of LM, with the factor."""
    graph = found.graph
    room = _LIVE * fraction * (target.words("lm0") + target.words("lm1"))
    for node in graph.device_nodes():
        names = {name for name in (*node.inputs, *node.outputs) if name} - graph.constants.keys()
        factor = sum(graph.values[name].num_lw or 0 for name in names) / room
        if factor > 1 and node.op != SWITCH:
            yield factor, node


def units(found: TimeSlices) -> dict[str, list[list[SubAxis]]]:
    """Return, for every value in DRAM, the subaxes of each axis that are not in Addr."""
    return {
        name: [[s for s in axis if s.level is not Level.ADDR] for axis in layout_of(value).axes]
        for name, value in found.graph.values.items()
        if value.location is Location.DRAM
    }


def steps_along(found: TimeSlices, target: Target, classes: Collection[Axis]) -> int:
    """Estimate the steps of all nodes, switches among them, that work along some of the classes."""
    costs, graph = Costs(found.graph, target), found.graph
    layouts = {name: layout_of(graph.values[name]) for name in graph.device_values()}
    steps = 0
    for node in graph.device_nodes():
        own = [one for one, _ in found.axes.of_node(node)]
        if any(one in classes for one in own):
            times = prod(found.count(one) for one in own if one in found.sizes)
            steps += times * costs.node(node, layouts)
    return steps


def estimated_steps(found: TimeSlices, target: Target) -> int:
    """Estimate the steps of all slices: of the nodes, and of the transfers of values in DRAM.

    A matrix that leaves room for the next one arrives beside a product.
    """
    graph, costs = found.graph, Costs(found.graph, target)
    layouts = {name: layout_of(graph.values[name]) for name in graph.device_values()}
    steps = 0
    for node in graph.device_nodes():
        times = prod(found.count(one) for one, _ in found.axes.of_node(node) if one in found.sizes)
        own = costs.node(node, layouts)
        steps += times * own
        if node.op in ("MatMul", "Gemm") and node.inputs[1] in graph.constants:
            matrix = graph.values[node.inputs[1]]
            if (matrix.num_lw or 0) <= BESIDE * target.words("lm1"):
                arrives = costs.overlapped_transfer(matrix, layouts[matrix.name])
                steps -= times * min(own, arrives)
    stay = {
        name for n in graph.device_nodes() for name in n.inputs if name and stays_in_dram(name, n)
    }
    for name, layout in layouts.items():
        value = graph.values[name]
        if value.location is Location.DRAM and name not in stay:
            times = prod(found.count(one) for _, one in found.cut_axes(name))
            steps += times * costs.overlapped_transfer(value, layout)
    return steps
