"""From a plan to a graph: the nodes in their order, with the moves of values between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...graph.graph import Location, MNGraph, MNNode, MNValue, Stage
from ...layers.dram_transfer import DOWNLOAD, UPLOAD
from ...layers.forget import FORGET
from ...layers.local_copy import COPY
from ...machine import Target
from ...pfvm.names import reserved
from ..lm_copies import lm_copy, move, without_unread
from . import plan
from .plan import Action
from .problem import BANKS, Problem


def rebuilt(problem: Problem, actions: Sequence[Action], target: Target) -> MNGraph:
    """Return the graph of a plan, with its moves. P0301 if a value does not fit LM."""
    return _Rebuilt(problem, target).run(actions)


class _Rebuilt:
    def __init__(self, problem: Problem, target: Target):
        self.problem, self.target, self.graph = problem, target, problem.graph
        self.names = set(self.graph.values)
        self.node_names = {node.name for node in self.graph.nodes}
        self.values: dict[str, MNValue] = {}
        #: The name of each value's copy, by bank.
        self.where: dict[tuple[int, int], str] = {}
        self.nodes: list[MNNode] = []

    def run(self, actions: Sequence[Action]) -> MNGraph:
        for action in actions:
            node = self.graph.nodes[action.node]
            if action.kind == plan.PLAIN:
                self.nodes.append(node)
            elif action.kind == plan.RUN:
                self._run(action, node)
            else:
                self._move(action, node)
        nodes = without_unread(self.nodes)
        made = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        outside = {*self.graph.inputs, *self.graph.constants}
        kept = {*outside, *(name for _, name in self.graph.outputs)}
        on_device = self.graph.device_values()
        values: dict[str, MNValue] = {}
        for name, value in self.graph.values.items():
            if name not in on_device:
                values[name] = value
            elif name in made or name in kept:
                values[name] = replace(value, location=Location.DRAM)
        values |= {name: value for name, value in self.values.items() if name in made}
        return replace(self.graph, values=values, nodes=tuple(nodes), stage=Stage.SCHEDULED)

    def _run(self, action: Action, node: MNNode) -> None:
        choice = action.choice
        assert choice is not None
        number = {self.problem.values[v]: v for v in self.problem.inputs[action.node]}
        banks = dict(zip(self.problem.inputs[action.node], choice.inputs, strict=True))

        def local(name: str) -> str:
            if not name or banks[number[name]] >= len(BANKS):
                return name
            return self.where[number[name], banks[number[name]]]

        inputs = tuple(local(name) for name in node.inputs)
        made = zip(self.problem.outputs[action.node], choice.outputs, strict=True)
        new = {self.problem.values[v]: self._new(v, bank, node) for v, bank in made}
        outputs = [new.get(name, name) for name in node.outputs]
        name = node.name
        if action.again:
            name = reserved(f"{node.name}.again", self.node_names)
        again = replace(node, name=name, inputs=inputs, outputs=tuple(outputs))
        self.nodes.append(replace(again, inplace=choice.setting.inplace))

    def _move(self, action: Action, node: MNNode) -> None:
        value, bank = self.problem.values[action.value], action.bank
        if action.kind == plan.FORGET:
            self._append(FORGET, self.where[action.value, bank], None, node)
        elif action.kind == plan.UP:
            self._append(UPLOAD, self.where[action.value, bank], value, node)
        elif action.kind == plan.DOWN:
            self._append(DOWNLOAD, value, self._new(action.value, bank, node), node)
        else:
            source = self.where[action.value, 1 - bank]
            self._append(COPY, source, self._new(action.value, bank, node), node)

    def _new(self, value: int, bank: int, node: MNNode) -> str:
        location = BANKS[bank]
        whole = self.graph.values[self.problem.values[value]]
        made = lm_copy(whole, location.memory, location, node, self.target)
        made = replace(made, name=reserved(made.name, self.names))
        self.values[made.name] = made
        self.where[value, bank] = made.name
        return made.name

    def _append(self, op: str, source: str, result: str | None, node: MNNode) -> None:
        first = self._value(source)
        made = move(op, first, self._value(result) if result else first, node)
        if result is None:
            made = replace(made, outputs=())
        made = replace(made, name=reserved(made.name, self.node_names))
        self.nodes.append(made)

    def _value(self, name: str) -> MNValue:
        return self.values[name] if name in self.values else self.graph.values[name]
