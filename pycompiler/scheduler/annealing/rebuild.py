"""From a plan to a graph: the nodes in their order, with the moves of values between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...graph.graph import MNGraph, MNNode
from ...layers.dram_transfer import DOWNLOAD, UPLOAD
from ...layers.forget import FORGET
from ...layers.local_copy import COPY
from ...machine import Target
from ...pfvm.names import reserved
from ..lm_copies import InLm
from . import plan
from .plan import Action
from .problem import BANKS, Problem


def rebuilt(problem: Problem, actions: Sequence[Action], target: Target) -> MNGraph:
    """Return the graph of a plan, with its moves. P0301 if a value does not fit LM."""
    return _Rebuilt(problem, target).run(actions)


class _Rebuilt:
    def __init__(self, problem: Problem, target: Target):
        self.problem, self.work = problem, InLm(problem.graph, target)
        #: The name of each value's copy, by bank.
        self.where: dict[tuple[int, int], str] = {}

    def run(self, actions: Sequence[Action]) -> MNGraph:
        for action in actions:
            node = self.problem.graph.nodes[action.node]
            if action.kind == plan.PLAIN:
                self.work.nodes.append(node)
            elif action.kind == plan.RUN:
                self._run(action, node)
            else:
                self._move(action, node)
        return self.work.done()

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
        results = zip(self.problem.outputs[action.node], choice.outputs, strict=True)
        new = {self.problem.values[v]: self._new(v, bank, node) for v, bank in results}
        outputs = [new.get(name, name) for name in node.outputs]
        name = node.name
        if action.again:
            name = reserved(f"{node.name}.again", self.work.called)
        again = replace(node, name=name, inputs=inputs, outputs=tuple(outputs))
        self.work.nodes.append(replace(again, inplace=choice.setting.inplace))

    def _move(self, action: Action, node: MNNode) -> None:
        value, bank = self.problem.values[action.value], action.bank
        if action.kind == plan.FORGET:
            self.work.move(FORGET, self.where[action.value, bank], None, node)
        elif action.kind == plan.UP:
            self.work.move(UPLOAD, self.where[action.value, bank], value, node)
        elif action.kind == plan.DOWN:
            self.work.move(DOWNLOAD, value, self._new(action.value, bank, node), node)
        else:
            source = self.where[action.value, 1 - bank]
            self.work.move(COPY, source, self._new(action.value, bank, node), node)

    def _new(self, value: int, bank: int, node: MNNode) -> str:
        copy = self.work.copy(self.problem.values[value], BANKS[bank], node)
        self.where[value, bank] = copy
        return copy
