"""Layout switches of compiled graphs beside the fewest steps: none is below, chains are whole."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import onnx
from compiling import compiled, model_of, with_seeds
from random_models import random_model

from pycompiler.gap.switches import kinds
from pycompiler.graph.graph import MNGraph
from pycompiler.layers.switch.layer import SWITCH
from pycompiler.machine import load_target


def attention() -> onnx.ModelProto:
    """Return scores and their use: operands of products in other layouts than results."""
    weights = {name: np.full((32, 32), 0.1, np.float32) for name in "wv"}
    nodes = [
        ("MatMul", ["x", "w"], "q"),
        ("MatMul", ["x", "v"], "k"),
        ("Transpose", ["k"], "t"),
        ("MatMul", ["q", "t"], "s"),
        ("Softmax", ["s"], "p"),
        ("MatMul", ["p", "k"], "y"),
    ]
    return model_of(nodes, {"x": (24, 32)}, ["y"], weights)


def graph_of(model: onnx.ModelProto, machine: str = "mini") -> MNGraph:
    return compiled(model, machine)[0].graph


def test_no_switch_takes_fewer_steps_than_it_needs() -> None:
    for machine in ("mini", "mncore2"):
        found = kinds(graph_of(attention(), machine), load_target(machine))
        assert found
        assert all(kind.steps >= kind.least >= 0 for kind in found)
        assert [k.steps - k.least for k in found] == sorted(
            (k.steps - k.least for k in found), reverse=True
        )

    def check(seed: int) -> None:
        graph = graph_of(random_model(random.Random(seed))[0])
        assert all(kind.steps >= kind.least for kind in kinds(graph, load_target("mini")))

    with_seeds(check, 8, 200)


def test_a_switch_is_all_passes_up_to_its_value() -> None:
    """Each value that is read behind a pass is one switch, and its kind names all passes."""
    target = load_target("mini")
    graph = graph_of(attention())
    passes = [node for node in graph.nodes if node.op == SWITCH]
    read = {name for node in graph.nodes if node.op != SWITCH for name in node.inputs}
    ends = [node for node in passes if node.outputs[0] in read]
    found = kinds(graph, target)
    assert sum(kind.count for kind in found) == len(ends)
    inner = sum(node.outputs[0] not in read for node in passes)
    named = sum(kind.count * (kind.name.split(" (")[0].count(",") + 1) for kind in found)
    assert named >= len(ends) + min(inner, 1)
    assert kinds(replace(graph, nodes=()), target) == []
