"""The layer of MNCoreWeightGradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...code.nest import Nest
from ...graph.dtypes import MNDtype
from ...graph.graph import Location, MNGraph, MNNode, TensorType
from ...graph.layout import Layout, Layouts, Ways
from ...graph.plan import PartSums, SharedSums, WholeSums
from ...machine import Target
from ...pfvm.windows import WEIGHT_GRADIENT
from ...tolerance import SUM
from ..base import Cut, Placement, UntiedAxes, layout_of, outside_lm
from ..products.roles import PRECISION
from ..reduce import Factor, join_terms
from ..reduce_kinds import SUMS
from ..reduce_plan import Plan, plan
from . import joining
from .code import sums_code
from .joining import whole_layout
from .layouts import partial_layout, reduced_digits, refusals, shared, shares_in, ways


class WeightGradient(UntiedAxes):
    """The gradient of the weights of a convolution, from its pixels and gradients of its result.

    The operands have the shapes of the convolution's operand and result. The result has the axes
    channels of the operand, channels of the result, taps. ``kernel_shape`` has the taps of each
    spatial axis, 0 for an axis of tiles, which has no taps and no axis in the result.

    With the plan `PartSums` the units do not join their sums: the result has one more axis in
    front, which lies on them. MNCoreJoin adds the parts up.
    """

    op = WEIGHT_GRADIENT
    dtypes = frozenset({MNDtype.FLOAT, MNDtype.HALF})
    attributes = frozenset({"kernel_shape", "strides", "dilations", PRECISION})
    error = SUM
    anchored = True
    apart = True
    schedules = (WholeSums, PartSums, SharedSums)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the batch, whose slices are added up."""
        pixels, gradient = node.inputs
        if graph.values[pixels].shape[0] > 1:
            yield Cut(((pixels, 0), (gradient, 0)), "Add")

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the units of pictures and tiles."""
        return next(ways(node, graph, target, hints))

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield the layouts that a convolution of these operands could have."""
        yield from ways(node, graph, target, hints)

    def variants(self, node: MNNode, graph: MNGraph, target: Target, layouts: Layouts) -> Ways:
        """Yield results of which each unit keeps a share, and those that all units get."""
        yield from shared(node, graph, target, layouts)

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Put the pixels, which are read most, apart from gradients and result."""
        return Placement((Location.LM0, Location.LM1), (Location.LM1,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands outside of LM, and layouts that do not go together."""
        graph = _one_part(node, graph)
        yield from outside_lm((*node.inputs, node.outputs[0]), graph)
        yield from refusals(node, graph, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: the sums of each MAB, and the sums over all units that share them.

        Nodes whose units keep shares become a node that leaves parts and a MNCoreJoin.
        """
        shares, result = shares_in(node, graph, target), graph.values[node.outputs[0]]
        if shares is not None:
            parted = with_result(node, graph, partial_layout(node, graph, target))
            yield from sums_code(node, parted, target)
            yield from joining.join_code(shares, parted.values[result.name], result, None, target)
            return
        graph = _one_part(node, graph)
        yield from sums_code(node, graph, target)
        yield from _joined(node, graph, target)


def _joined(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Yield the code that joins the units' parts of the result."""
    found, result = _sums(node, graph, target), graph.values[node.outputs[0]]
    if found is not None:
        yield from join_terms(found, SUMS[MNDtype.FLOAT], (Factor(result),), result, target)


def _sums(node: MNNode, graph: MNGraph, target: Target) -> Plan | None:
    """Return how the units join their parts of the result; None if they do not."""
    result, over = graph.values[node.outputs[0]], reduced_digits(node, graph)
    if not over or isinstance(node.plan, PartSums):
        return None
    layout, shape = layout_of(result), result.shape
    # The parts are a value with one more axis, whose digits are the units that are joined.
    parts = replace(
        result,
        type=TensorType(result.type.elem, (1, *shape)),
        layout=Layout((tuple(over), *layout.axes), layout.broadcast),
    )
    axes = tuple(range(1, len(shape) + 1))
    return plan(parts, result, axes, (0,), SUMS[MNDtype.FLOAT].network, target)


def with_result(node: MNNode, graph: MNGraph, layout: Layout) -> MNGraph:
    """Return the graph with another layout of the node's result."""
    name = node.outputs[0]
    return graph.with_values({name: replace(graph.values[name], layout=layout)})


def _one_part(node: MNNode, graph: MNGraph) -> MNGraph:
    """Return the graph in which the result of a node that leaves parts is one part."""
    if not isinstance(node.plan, PartSums):
        return graph
    value = graph.values[node.outputs[0]]
    kind = TensorType(value.type.elem, value.shape[1:])
    layout = None if value.layout is None else whole_layout(value.layout)
    return graph.with_values({value.name: replace(value, type=kind, layout=layout)})


LAYERS = (WeightGradient(), *joining.LAYERS)
