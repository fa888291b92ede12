"""Which of LM0 and LM1 values lie in, and the copies that this saves."""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiling import compiled, run
from net import Net

from pycompiler.graph.graph import Location
from pycompiler.graph.text import parse_graph
from pycompiler.layers.local_copy import COPY
from pycompiler.machine import load_target
from pycompiler.scheduler.bank_choice import BANKS, Sides


def test_operands_in_one_lm_are_not_copied() -> None:
    """Each node reads values that were made far apart, in any banks."""
    for seed in range(4):
        net = Net(random.Random(seed), 12, 8)
        names = ["x", net.input(12, 8)]
        for _ in range(12):
            op = net.rng.choice(["Add", "Mul", "Sub", "Neg", "Abs"])
            reads = net.rng.sample(names, 1 if op in ("Neg", "Abs") else 2)
            names.append(net.put(op, *reads))
        last = names[2]
        for name in names[3:]:
            last = net.put("Add", last, name)
        options = {"time_slice": "off", "fuse_elementwise": False}
        model = net.model([last])
        result, _ = compiled(model, "mini", scheduler="spill_opt", **options)
        plain, _ = compiled(model, "mini", scheduler="always_from_dram", **options)
        graph = parse_graph(result.dumps["layout.spill_opt.txt"])
        assert not any(node.op == COPY for node in graph.nodes), f"seed {seed}"
        draw = np.random.default_rng(seed)
        data = {n: draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
        found, wanted = run(result, data), run(plain, data)
        assert found[last].tobytes() == wanted[last].tobytes(), f"seed {seed}"


def test_a_chain_is_copied_where_it_is_small() -> None:
    """A product wants its operands apart; what leads to them may begin in either LM."""
    net = Net(random.Random(1), 64, 64)
    left = net.put("Transpose", net.put("Relu", net.put("MatMul", "x", net.weights(64, 64))))
    right = net.put("Exp", net.put("MatMul", net.input(64, 64), net.weights(64, 64)))
    last = net.put("MatMul", left, right)
    result, _ = compiled(net.model([last]), "mini", scheduler="spill_opt", time_slice="off")
    graph = parse_graph(result.dumps["layout.spill_opt.txt"])
    assert not any(node.op == COPY for node in graph.nodes)


@pytest.mark.parametrize("first", BANKS)
def test_trees_follow_the_first_value(first: Location) -> None:
    """All values that layers tie together lie where the first one that is settled wants them."""
    net = Net(random.Random(1), 48, 48)
    made = net.put("Transpose", net.put("MatMul", "x", net.weights(48, 48)), perm=[1, 0])
    last = net.put("Slice", made, net.ints(0), net.ints(24), net.ints(0))
    result, _ = compiled(net.model([last]), "mini", scheduler="spill_opt", time_slice="off")
    graph = parse_graph(result.dumps["layout.slices.txt"])
    sides = Sides(graph, load_target("mncore2"))
    assert sides.preferred(last) is None
    sides.settle(last, first)
    # A Slice reads one LM and writes the other; a Transpose takes over its operand.
    (node,) = (node for node in graph.nodes if node.op == "Slice")
    assert sides.preferred(last) is first
    assert sides.preferred(node.inputs[0]) is not first
