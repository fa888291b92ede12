"""The costs of layouts in steps: of nodes, layout switches and transfers, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...cost.moves import latency_steps
from ...cost.sequence import steps_of
from ...errors import NoSwitchError
from ...graph.graph import Location, MNGraph, MNNode, MNValue
from ...graph.layout import Layout, Layouts, Level
from ...graph.plan import plans_of
from ...layers.base import banks_of
from ...layers.dram_transfer import download
from ...layers.dram_transfer_plan import plan_transfer
from ...layers.operators import LAYERS
from ...layers.split_concat import IN_DRAM
from ...layers.switch.pass_moves import LayoutChange
from ...layers.switch.pass_search import Guesses
from ...machine import Target
from ..switch_insertion import rigid_values
from ..switch_plan import plan_switch
from .known import Known

#: The cost of "not possible". No program has so many steps, and sums of it do not overflow.
NEVER = 1 << 40
#: Costs from here on mean that shares do not fit LM. This is better than NEVER, because time slices
#: may still help.
TOO_LARGE = 1 << 36
_BANKS = (Location.LM0, Location.LM1)
#: guess: a pass over L2Bs costs more by this factor in graphs of fewer nodes than this. What
#: follows waits for its MVs, and few other nodes hide them.
_MORE, _FEW = 1.5, 400


class Costs:
    """Costs of a graph's nodes and switches under given layouts."""

    def __init__(self, graph: MNGraph, target: Target, known: Known | None = None):
        self.graph, self.target = graph, target
        self.known = known or Known()
        self._rigid = rigid_values(graph)
        few = not self.known.large and len(graph.nodes) < _FEW
        self._far = self.known.weights.far * (_MORE if few else 1)
        self._kinds: dict[str, tuple[int, list[str]]] = {}

    def node(self, node: MNNode, layouts: Layouts) -> int:
        """Count the steps of a node; NEVER if its layer refuses the layouts."""
        kind, names = self.kind(node)
        plan = plans_of(layouts).get(node.name, node.plan)
        key = kind, plan, *(layouts[name] for name in names)
        if key not in self.known.nodes:
            values = [self.graph.values[name] for name in names]
            self.known.nodes[key] = self._node(replace(node, plan=plan), values, layouts)
        return self.known.nodes[key]

    def kind(self, node: MNNode) -> tuple[int, list[str]]:
        """Return a number for all nodes that differ in names and layouts, and the operands."""
        if node.name not in self._kinds:
            ends, kinds = (*node.inputs, *node.outputs), self.known.kinds
            names = list(dict.fromkeys(name for name in ends if name))
            values = [self.graph.values[name] for name in names]
            places = tuple(names.index(name) if name else -1 for name in ends)
            key = node.op, node.attributes, places, tuple((v.type, v.dtype) for v in values)
            self._kinds[node.name] = kinds.setdefault(key, len(kinds)), names
        return self._kinds[node.name]

    def _node(self, node: MNNode, values: Sequence[MNValue], layouts: Layouts) -> int:
        laid = {v.name: self._laid(v, layouts[v.name]) for v in values}
        graph = MNGraph(self.graph.name, self.graph.target, nodes=(node,), values=laid)
        layer = LAYERS[node.op]
        place = layer.place(node, graph)
        placed = banks_of(node, place)
        laid = {name: replace(v, location=placed[name]) for name, v in laid.items()}
        graph = replace(graph, values=laid)
        if any(layer.refusals(node, graph, self.target)):
            return NEVER
        # Layouts whose shares do not fit are chosen only if there is no other way. Then it is for
        # the time-slice planner to cut them.
        spare = 0
        for bank in _BANKS:
            own = [v.num_lw or 0 for n, v in laid.items() if v.location is bank]
            taken = laid[[*placed][place.inplace]].num_lw or 0 if place.inplace is not None else 0
            used = sum(own) - (taken if placed[node.outputs[0]] is bank else 0)
            spare = max(spare, used - self.target.words(bank.memory))
        if spare > 0:
            return TOO_LARGE + spare
        # Nodes in DRAM have no other layouts to choose, and work on all slices at once.
        return 0 if node.op in IN_DRAM else layer.cost(node, graph, self.target)

    def _laid(self, value: MNValue, layout: Layout) -> MNValue:
        return replace(value, layout=layout, num_lw=layout.num_lw(self.target.cycles))

    def transfer(self, value: MNValue, layout: Layout) -> int:
        """Count the steps of a download of ``value``, including the time of its MVs.

        An upload takes as many.
        """
        lines, moves, _ = self._transfer(value, layout)
        weights = self.known.weights
        return int(weights.lines * lines + weights.moves * moves)

    def overlapped_transfer(self, value: MNValue, layout: Layout) -> int:
        """Count the same if MVs bring one part while lines spread the part before."""
        lines, moves, parts = self._transfer(value, layout)
        return max(lines, moves) + min(lines, moves) // parts

    def _transfer(self, value: MNValue, layout: Layout) -> tuple[int, int, int]:
        """Return the steps of a download's lines, the time of its MVs in steps, and its parts."""
        key = layout, value.dtype
        if key not in self.known.transfers:
            lines = steps_of(download(layout, self.target), self.target)
            plan = plan_transfer(layout, self.target)
            moves = latency_steps(self.target) + plan.mv_cycles // self.target.cycles
            self.known.transfers[key] = lines, moves, max(1, len(plan.chunks))
        return self.known.transfers[key]

    def switch(
        self, source: Layout, result: Layout, value: MNValue, most: int | None = None
    ) -> int:
        """Count the steps of the passes from layout ``source`` to layout ``result`` of ``value``.

        NEVER if there are no such passes, or none that take at most ``most`` steps together.
        """
        literal = value.name in self._rigid
        key = source, result, value.shape, value.dtype, literal, most, self._far
        if key not in self.known.switches:
            try:
                passes = plan_switch(LayoutChange(*key[:4]), self.target, literal, most)
                far = sum(one.steps for one in passes if one.level is Level.L2B)
                near = sum(one.steps for one in passes if one.level is not Level.L2B)
                self.known.switches[key] = near + int(far * self._far)
            except NoSwitchError:
                self.known.switches[key] = NEVER
        return self.known.switches[key]

    def guesses(self, value: MNValue) -> Guesses:
        """Return the guesses of the steps of switches of ``value``."""
        key = value.shape, value.dtype
        if key not in self.known.guesses:
            self.known.guesses[key] = Guesses(*key, self.target)
        return self.known.guesses[key]
