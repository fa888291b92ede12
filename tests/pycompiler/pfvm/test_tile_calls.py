"""Tiles as composites write them: calls of MNCoreTiles, whose function is a Pad and Gathers."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import compiled, model_of, run
from onnx import helper
from tiled_shapes import result_shape

from pycompiler.graph import MNGraph, MNNode, MNValue, TensorType
from pycompiler.machine import load_target
from pycompiler.pfvm.composites.tiles import Tiling, tiled
from pycompiler.pfvm.composites.writer import Writer
from pycompiler.pfvm.device_functions import TILES, called, with_functions
from pycompiler.pfvm.lower import lower
from pycompiler.pfvm.optimise import optimise

MNCORE2 = load_target("mncore2")

#: pads by axis, tiles by axis (count, places, reach), and the attributes of the node
CASES = [
    (
        [(0, 0), (1, 1), (1, 1)],
        {2: (4, 2, 4), 1: (2, 3, 5)},
        {"axes": (1, 2), "counts": (2, 4), "places": (3, 2), "before": (1, 1), "reach": (5, 4)},
    ),
    (
        [(1, 2), (0, 0), (0, 2)],
        {2: (4, 2, 4)},
        {"axes": (0, 2), "counts": (1, 4), "places": (3, 2), "before": (1, 0), "reach": (6, 4)},
    ),
    ([(0, 0)] * 3, {1: (3, 2, 2)}, {"axes": (1,), "counts": (3,), "places": (2,), "before": (0,)}),
]


@pytest.mark.parametrize(("pads", "tiles", "wanted"), CASES)
def test_call(
    pads: list[tuple[int, int]],
    tiles: dict[int, tuple[int, int, int]],
    wanted: dict[str, tuple[int, ...]],
) -> None:
    """Place r of tile t is element t * places + r - before of the axis, or 0."""
    shape = (3, 6, 8)
    write = Writer(
        helper.make_node("Conv", ["x"], ["y"]), {"x": TensorType("float", shape)}, {"x", "y"}, {}
    )
    cuts = {axis: Tiling(count, 0, *facts, 1) for axis, (count, *facts) in tiles.items()}
    name = tiled(write, "x", shape, pads, cuts)
    (call,) = write.nodes
    facts = {a.name: tuple(a.ints) for a in call.attribute}
    assert called(call) == TILES
    assert wanted.items() <= facts.items()
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    model = helper.make_model(
        helper.make_graph(
            [call],
            "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
            [helper.make_empty_tensor_value_info(name)],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
    )
    with_functions(model, write.functions)
    (found,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    expected = np.pad(x, pads)
    for axis, (count, places, reach) in sorted(tiles.items(), reverse=True):
        index = np.arange(count)[:, None] * places + np.arange(reach)
        expected = np.take(expected, index, axis)
    assert (found == expected).all()
    graph = MNGraph("g", "mini", values={"x": MNValue("x", TensorType("float", shape))})
    made = MNNode("n", TILES, ("x",), ("y",), tuple(facts.items()))
    assert result_shape(made, graph) == expected.shape


@pytest.mark.parametrize("beside", ["Relu", "LessOrEqual"])
def test_tiles_beside_a_function(beside: str) -> None:
    """A model with a function of ONNX is written out twice, and its tiles stay tiles."""
    reads = ["c", "zero"][: 1 + (beside == "LessOrEqual")]
    model = model_of(
        [("Conv", ["x", "w"], "c"), (beside, reads, "y")],
        {"x": (8, 16, 34, 34)},
        ["y"],
        {"w": np.ones((16, 16, 3, 3), np.float32), "zero": np.float32(0)},
    )
    ops = [called(node) or node.op_type for node in lower(model, MNCORE2).graph.node]
    assert TILES in ops
    assert "Gather" not in ops


def test_pads_of_a_model_join_its_convolution() -> None:
    """A Pad in front of a Conv brings no pass of its own: the tiles have its zeros."""
    model = model_of(
        [("Pad", ["x", "p"], "a"), ("Conv", ["a", "w"], "y")],
        {"x": (2, 16, 12, 12)},
        ["y"],
        {"p": np.array([0, 0, 1, 2, 0, 0, 1, 0]), "w": np.ones((16, 16, 3, 3), np.float32)},
    )
    result, _ = compiled(optimise(model))
    assert "Pad" not in {node.op for node in result.graph.nodes}
    x = np.random.default_rng(0).integers(-7, 8, (2, 16, 12, 12)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert (run(result, {"x": x})["y"] == wanted).all()
