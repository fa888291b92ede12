"""Calls of operators of the device in ONNX models: any runtime computes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import compiled, run
from gradient_models import gradient_model
from one_node import one_node

from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.pfvm.device_functions import DEVICE, called
from pycompiler.pfvm.lower import lower

MINI = load_target("mini")


def weights_gradient() -> onnx.ModelProto:
    return gradient_model((2, 8, 8, (8, 8), (3, 3), 1, 2, 2))[0]


def convolution(channels: int, group: int) -> onnx.ModelProto:
    """Return a convolution of few channels with whole weights."""
    rng = np.random.default_rng(group)
    weights = {"w": rng.integers(-7, 8, (channels, channels // group, 3))}
    weights["b"] = rng.integers(-7, 8, channels)
    constants = {name: array.astype(np.float32) for name, array in weights.items()}
    return one_node("Conv", {"x": (2, channels, 9)}, constants, group=group, pads=[1, 1])


#: Models, and the operators of the device that their composites call.
CASES: dict[str, tuple[Callable[[], onnx.ModelProto], set[str]]] = {
    "weight gradient": (weights_gradient, {"MNCoreWeightGradient"}),
    "groups": (lambda: convolution(64, 4), {"MNCoreGroupedConv"}),
    "single channels": (lambda: convolution(16, 16), {"MNCoreDepthwise"}),
}


def drawn(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return inputs of few bits, whose sums are exact in every precision."""
    rng = np.random.default_rng(3)
    held = {tensor.name for tensor in model.graph.initializer}
    sizes = {
        info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in model.graph.input
        if info.name not in held
    }
    return {n: rng.integers(-7, 8, shape).astype(np.float32) for n, shape in sizes.items()}


def results(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    found: list[np.ndarray] = onnxruntime.InferenceSession(model.SerializeToString()).run(
        None, feed
    )
    return found


@pytest.mark.parametrize("name", CASES)
def test_calls(name: str) -> None:
    """A lowered model is one of standard ONNX; as a file of a user it compiles like any other."""
    build, wanted = CASES[name]
    model = build()
    written, feed = lower(model, MINI), drawn(model)
    onnx.checker.check_model(written, full_check=True)
    assert {called(node) for node in written.graph.node} >= wanted
    (expected,) = results(model, feed)
    (made,) = results(written, feed)
    np.testing.assert_array_equal(made, expected)
    again, _ = compiled(written)
    np.testing.assert_array_equal(*run(again, feed).values(), expected)


def test_functions_of_a_user_in_the_domain() -> None:
    """They are inlined like any others: nothing trusts the attributes of a file."""
    model = weights_gradient()
    written, feed = lower(model, MINI), drawn(model)
    for node in written.graph.node:
        for attribute in node.attribute:
            if called(node) and attribute.name == "strides":
                attribute.ints[:] = [7] * len(attribute.ints)
    made, _ = compiled(written)
    np.testing.assert_array_equal(*run(made, feed).values(), *results(model, feed))


def test_defaults_of_functions_of_a_user() -> None:
    """A call, in a body or in another function too, may leave out an attribute with a default."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "own": 1]>
        g (float[5] x, bool t) => (float[5] y, float[5] z) {
            a = own.steep <alpha = 0.25> (x)
            y = own.twice (a)
            z = If (t) <then_branch = yes () => (float[5] b) { b = own.steep(x) },
                        else_branch = no () => (float[5] c) { c = Neg(x) }>
        }
        <domain: "own", opset_import: ["": 18]>
        steep <alpha: float = 0.5> (v) => (w) { w = LeakyRelu <alpha: float = @alpha> (v) }
        <domain: "own", opset_import: ["": 18, "own": 1]>
        twice <alpha: float = 0.75> (v) => (w) {
            u = own.steep <alpha: float = @alpha> (v)
            w = own.steep (u)
        }"""
    )
    feed = {"x": np.linspace(-2, 1, 5, dtype=np.float32), "t": np.array(True)}
    made, _ = compiled(model)
    for found, wanted in zip(run(made, feed).values(), results(model, feed), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2.0**-20)


@pytest.mark.parametrize("op", ["MNCorePick", "MNCorePick.y", "Relu", "Foo"])
@pytest.mark.parametrize("inside", [False, True])
def test_calls_without_a_function_are_refused(op: str, inside: bool) -> None:
    """Nobody defines them: their attributes were taken as they stood."""
    node = onnx.helper.make_node(op, ["x"], ["y"], "one", domain=DEVICE, axis=1, index=[9, 0])
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", [2, 4]), ("y", None))
    ]
    nodes = [node]
    if inside:
        body = onnx.helper.make_graph([node], "body", [], ends[1:])
        true = onnx.numpy_helper.from_array(np.array(True), "true")
        nodes = [
            onnx.helper.make_node("Constant", [], ["true"], value=true),
            onnx.helper.make_node("If", ["true"], ["y"], then_branch=body, else_branch=body),
        ]
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid(DEVICE, 1)]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    with pytest.raises(PycompilerError) as caught:
        lower(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), MINI)
    assert caught.value.code == "P0108"
