"""BatchNormalization in inference is folded into the product in front of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import tried
from onnx import TensorProto, helper, numpy_helper

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Arrays = Mapping[str, np.ndarray]
PRODUCTS = ("Conv", "ConvTranspose", "Gemm")


def _model(
    product: onnx.NodeProto, arrays: Arrays, shape: tuple[int, ...], *more: str, **facts: Any
) -> onnx.ModelProto:
    """A product, then a normalization; ``more`` values are outputs too."""
    norm = helper.make_node("BatchNormalization", ["p", *"sbmv"], ["n"], name="norm", **facts)
    nodes = [product, norm, helper.make_node("Relu", ["n"], ["y"], name="relu")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info(name) for name in ("y", *more)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def _sample(rng: random.Random) -> tuple[onnx.NodeProto, dict[str, np.ndarray], tuple[int, ...]]:
    """A product with random attributes, its parameters, and the shape of its input."""
    made, op = np.random.default_rng(rng.randrange(1 << 30)), rng.choice(PRODUCTS)
    group, own, rows = rng.choice([1, 1, 3]), rng.choice([1, 2, 5]), rng.choice([1, 2, 4])
    rank = rng.randint(1, 3)
    facts: dict[str, Any] = {"group": group}
    weights = (group * rows, own, *[2] * rank)
    shape = (2, group * own, *[4] * rank)
    if op == "ConvTranspose":
        weights = (group * own, rows, *[2] * rank)
    if op == "Gemm":
        facts, shape = {"transB": rng.randint(0, 1), "alpha": rng.choice([1.0, 0.5])}, (3, own)
        weights = (rows, own) if facts["transB"] else (own, rows)
    channels = rows if op == "Gemm" else group * rows
    arrays = {"w": made.standard_normal(weights).astype(np.float32)}
    if rng.random() < 0.5:
        arrays["c"] = made.standard_normal(channels).astype(np.float32)
    for name in "sbm":
        arrays[name] = made.standard_normal(channels).astype(np.float32)
    arrays["v"] = made.uniform(0.1, 3, channels).astype(np.float32)
    product = helper.make_node(
        op, ["x", "w", *(["c"] if "c" in arrays else [])], ["p"], name="product", **facts
    )
    return product, arrays, shape


def _compare(model: onnx.ModelProto, found: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = HostSession(model, "model").run({"x": x})
    got = HostSession(found, "found").run({"x": x})
    for name, array in wanted.items():
        assert np.abs(got[name] - array).max() <= 1e-4 * (1 + np.abs(array).max()), name


@pytest.mark.parametrize("seed", range(tried(30)))
def test_folded(seed: int) -> None:
    rng = random.Random(seed)
    product, arrays, shape = _sample(rng)
    model = _model(product, arrays, shape, epsilon=rng.choice([1e-5, 0.1]))
    found = optimise(model)
    onnx.checker.check_model(found)
    assert [node.op_type for node in found.graph.node] == [product.op_type, "Relu"]
    assert found.graph.node[0].name == "product"
    _compare(model, found, shape)


def _gemm(**facts: Any) -> tuple[onnx.NodeProto, dict[str, np.ndarray]]:
    names = "wcsbmv"
    arrays = {name: np.full(2, 1 + place, np.float32) for place, name in enumerate(names)}
    arrays["w"] = np.array([[1, 2], [3, 4]], np.float32)
    return helper.make_node("Gemm", ["x", "w", "c"], ["p"], name="product", **facts), arrays


def test_kept() -> None:
    """Another reader, an inner output, a factor of the bias, weights that become infinite."""
    product, arrays = _gemm()
    read = _model(product, arrays, (3, 2), "p")
    scaled = _model(_gemm(beta=0.5)[0], arrays, (3, 2))
    infinite = _model(product, {**arrays, "s": np.full(2, 3e38, np.float32)}, (3, 2))
    twice = _model(product, arrays, (3, 2), "z")
    twice.graph.node.append(helper.make_node("Neg", ["p"], ["z"], name="other"))
    twice = onnx.shape_inference.infer_shapes(twice)
    for model in (read, scaled, infinite, twice):
        found = optimise(model)
        assert "BatchNormalization" in [node.op_type for node in found.graph.node]
    for model in (read, scaled, twice):
        _compare(model, optimise(model), (3, 2))


def test_weights_of_two_products() -> None:
    """Weights that another product reads as well stay as they are there."""
    product, arrays = _gemm()
    model = _model(product, arrays, (3, 2), "z")
    model.graph.node.append(helper.make_node("Gemm", ["x", "w", "c"], ["q"], name="other"))
    model.graph.node.append(helper.make_node("Neg", ["q"], ["z"], name="negative"))
    # equal products are merged, so the other one has another bias
    model.graph.node[-2].input[2] = "s"
    model = onnx.shape_inference.infer_shapes(model)
    found = optimise(model)
    assert "BatchNormalization" not in [node.op_type for node in found.graph.node]
    _compare(model, found, (3, 2))
