"""Factors of convolutions in half that are rounded where they are made."""

from __future__ import annotations

import numpy as np
from compiling import compiled, run
from onnx import TensorProto, helper

from pycompiler.graph import MNDtype
from pycompiler.layers.half_conversions import NARROW
from pycompiler.pfvm.device_functions import TILES
from pycompiler.pfvm.windows import WEIGHT_GRADIENT

SHAPES = {"x": (2, 16, 8, 8), "w": (16, 16, 3, 3), "v": (16, 16, 3, 3), "g": (2, 16, 8, 8)}


def both_ways(
    nodes: list[tuple[str, list[str], str]],
    outputs: dict[str, tuple[int, ...]],
    data: dict[str, np.ndarray],
) -> set[tuple[str, MNDtype]]:
    """Compare a model with one that rounds nothing early; return operators with their dtypes."""
    facts = {"Conv": {"pads": [1, 1, 1, 1]}, "Transpose": {"perm": [1, 0, 2, 3]}}
    made = [
        helper.make_node(op, reads, [out], name=f"n{number}", **facts.get(op, {}))
        for number, (op, reads, out) in enumerate(nodes)
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in named]
        for named in (((n, v.shape) for n, v in data.items()), outputs.items())
    ]
    graph = helper.make_graph(made, "g", *ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    result, _ = compiled(model, float_dtype="mixed")
    plain, _ = compiled(model, float_dtype="mixed", skip_rewrites="round_factors")
    found, wanted = (run(one, data) for one in (result, plain))
    for name in outputs:
        assert np.array_equal(found[name].view(np.uint32), wanted[name].view(np.uint32))
    assert not any(node.op == NARROW for node in plain.graph.nodes)
    values = result.graph.values
    return {(node.op, values[node.outputs[0]].dtype) for node in result.graph.device_nodes()}


def test_a_convolution_of_computed_values() -> None:
    """Its tiles move halves, and so do the weights that all units get."""
    rng = np.random.default_rng(3)
    data = {name: rng.standard_normal(SHAPES[name]).astype(np.float32) for name in ("x", "w", "v")}
    nodes = [("Sigmoid", ["x"], "s"), ("Conv", ["s", "w"], "c"), ("Tanh", ["c"], "t")]
    nodes += [("Conv", ["t", "v"], "y"), ("Add", ["w", "v"], "z")]
    found = both_ways(nodes, {"y": SHAPES["x"], "z": SHAPES["w"]}, data)
    assert (TILES, MNDtype.HALF) in found
    assert (TILES, MNDtype.FLOAT) not in found


def test_the_gradient_of_weights() -> None:
    """Whole numbers have exact sums, in whatever order units are joined."""
    rng = np.random.default_rng(4)
    data = {n: rng.integers(-4, 5, SHAPES[n]).astype(np.float32) for n in ("x", "g")}
    nodes = [("Mul", ["x", "x"], "s"), ("Transpose", ["s"], "st"), ("Neg", ["g"], "n")]
    nodes += [("Transpose", ["n"], "nt"), ("Conv", ["st", "nt"], "y")]
    found = both_ways(nodes, {"y": SHAPES["w"]}, data)
    assert WEIGHT_GRADIENT in {op for op, _ in found}
    assert (TILES, MNDtype.HALF) in found
