"""The layer of MNCoreLayoutSwitch."""

from __future__ import annotations

from collections.abc import Iterator

from ...code.nest import Nest, stages
from ...cost.hazards import pass_hazards
from ...cost.sequence import waiting_steps
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Level
from ...graph.plan import OnePass
from ...machine import Target
from ..base import Cut, Layer, OtherLm, UntiedAxes, layout_of, not_apart
from .pass_code import aside_of, pass_code
from .pass_moves import LayoutChange, NoPassError
from .pass_search import moves

SWITCH = "MNCoreLayoutSwitch"


class LayoutSwitch(UntiedAxes, OtherLm):
    """One pass of a layout switch; a switch without a plan has no passes yet."""

    op = SWITCH
    schedules = (OnePass,)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield every axis: the slices of a value can switch one by one."""
        for axis, size in enumerate(graph.values[node.inputs[0]].shape):
            if size > 1:
                yield Cut(((node.inputs[0], axis), (node.outputs[0], axis)))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield the reasons why one pass cannot make the change."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        yield from not_apart(source, result)
        if (source.shape, source.dtype) != (result.shape, result.dtype):
            yield "a change of shape or dtype"
            return
        try:
            moves(_change(node, graph), level_of(node), target)
        except NoPassError as problem:
            yield f"a switch of which {problem}"

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the steps of the pass: its MVs wait for lines, as no others of transfers do."""
        steps = waiting_steps(stages(self.code(node, graph, target), target), target)
        return steps + self.hazards(node, graph, target)

    def hazards(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the steps before and behind the pass."""
        return pass_hazards(target)

    def scattered(self, node: MNNode) -> bool:
        """Lines of transfers are placed one by one."""
        return True

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code of the pass."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        return pass_code(source, result, level_of(node), target, aside_of(node))


def _change(node: MNNode, graph: MNGraph) -> LayoutChange:
    source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
    return LayoutChange(layout_of(source), layout_of(result), source.shape, source.dtype)


def level_of(node: MNNode) -> Level:
    """Return the level whose digits a switch node changes."""
    assert isinstance(node.plan, OnePass), f"`{node.name}` has no passes"
    return node.plan.level


LAYERS: tuple[Layer, ...] = (LayoutSwitch(),)
