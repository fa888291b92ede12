"""Switches of one value share the passes that they have in common."""

from __future__ import annotations

from collections import Counter

import numpy as np
from compiling import compiled, model_of, run

from pycompiler.graph import parse_graph
from pycompiler.layers.switch.layer import SWITCH

RNG = np.random.default_rng(5)


def test_products_of_one_value_take_one_switch() -> None:
    """Queries, keys and values: three products that want their operand in one layout."""
    weights = {f"w{n}": RNG.integers(-3, 4, (48, 48)).astype(np.float32) for n in range(3)}
    nodes = [("Relu", ["x"], "r"), ("Add", ["r", "x"], "s")]
    nodes += [("MatMul", ["s", name], f"y{name[1]}") for name in weights]
    model = model_of(nodes, {"x": (2, 8, 48)}, ["y0", "y1", "y2"], weights)
    # No product takes this layout.
    forced = {"s": {"layout": "((2:192), (8:24), (24:1, 2_W:1))"}}
    result, _ = compiled(model, overrides=forced)
    graph = parse_graph(result.dumps["layout.layout.txt"])
    products = [node for node in graph.nodes if node.op == "MatMul"]
    assert len({node.inputs[0] for node in products}) == 1
    passes = Counter(
        (node.inputs[0], str(graph.values[node.outputs[0]].layout))
        for node in graph.nodes
        if node.op == SWITCH
    )
    assert passes
    assert max(passes.values()) == 1
    x = RNG.integers(-3, 4, (2, 8, 48)).astype(np.float32)
    found = run(result, {"x": x})
    for name, weight in weights.items():
        assert (found[f"y{name[1]}"] == (np.maximum(x, 0) + x) @ weight).all()
