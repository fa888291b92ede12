"""The order in which resident products read their operands, so that transfers fit beside them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from compiling import compiled, model_of, run

from pycompiler.layers.fragment import PeOperand, Step
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import load_target


def test_a_product_reads_its_matrix_in_the_order_of_addresses() -> None:
    """Two blocks of rows lie side by side. Downloads bring them, and follow them, in that order."""
    draw = np.random.default_rng(0)
    x, w = draw.standard_normal((64, 64)), draw.standard_normal((64, 256))
    model = model_of(
        [("MatMul", ["x", "w"], "y")], {"x": (64, 64)}, ["y"], {"w": w.astype(np.float32)}
    )
    result, _ = compiled(model, float_dtype="mixed")
    found = run(result, {"x": x.astype(np.float32)})["y"]
    assert np.abs(found - x @ w).max() < 0.2
    graph, target = result.graph, load_target("mini")
    (node,) = (node for node in graph.nodes if node.op == "MatMul")
    reads: dict[str, list[int]] = {name: [] for name in node.inputs}
    steps: dict[str, list[int]] = {name: [] for name in node.inputs}
    for number, line in enumerate(LAYERS[node.op].emit(node, graph, target).lines):
        assert isinstance(line, Step)
        for operand in (one for i in line.instructions for one in i.sources):
            if isinstance(operand, PeOperand) and operand.value in reads:
                reads[operand.value].append(min(operand.offsets))
                steps[operand.value].append(number)
    assert reads[node.inputs[1]] == sorted(reads[node.inputs[1]])
    # Between reads of each memory there are pauses in which a write fits: its step and two more.
    rule = next(h for h in target.hazards if h.rule == "port" and "lm0" in h.memories)
    for own in steps.values():
        pauses = [after - before - 1 for before, after in pairwise(own)]
        assert sum(pause > (rule.steps or 0) for pause in pauses) >= 3
