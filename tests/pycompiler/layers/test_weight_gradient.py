"""The gradient of a convolution's weights, from its pixels and the gradients of its result."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from onnx import numpy_helper

from pycompiler.pfvm.windows import WEIGHT_GRADIENT

#: pictures, channels, channels of the result, places, kernel, stride, dilation, padding
Case = tuple[int, int, int, tuple[int, ...], tuple[int, ...], int, int, int]
CASES: dict[str, Case] = {
    "3x3": (2, 16, 16, (8, 8), (3, 3), 1, 1, 1),
    "odd channels": (3, 5, 7, (8, 8), (3, 3), 1, 1, 1),
    "odd places": (2, 4, 17, (7, 9), (3, 3), 1, 1, 1),
    "stride 2": (2, 16, 20, (6, 6), (3, 3), 2, 1, 1),
    "stride 2, odd places": (2, 3, 16, (9, 7), (3, 3), 2, 1, 1),
    "5x5": (1, 4, 8, (6, 6), (5, 5), 1, 1, 2),
    "some taps at once": (1, 64, 16, (6, 6), (3, 3), 1, 1, 1),
    "1x1": (4, 16, 24, (4, 4), (1, 1), 1, 1, 0),
    "1x1, stride 2": (2, 16, 16, (8, 8), (1, 1), 2, 1, 0),
    "dilation": (2, 8, 8, (8, 8), (3, 3), 1, 2, 2),
    "one axis": (3, 6, 20, (12,), (3,), 1, 1, 1),
    "one picture": (1, 20, 33, (8, 4), (3, 1), 1, 1, 0),
    "many columns": (2, 16, 80, (4, 4), (3, 3), 1, 1, 1),
}
#: Cases whose result exceeds LM of the small machine: they are products over places instead.
LARGE = ("stride 2", "5x5", "some taps at once")
#: The case whose taps exceed half of LM for one picture.
SEVERAL = "some taps at once"


def _model(case: Case) -> tuple[onnx.ModelProto, dict[str, tuple[int, ...]]]:
    pictures, ins, outs, places, kernel, stride, dilation, padding = case
    given = tuple(
        (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
        for size, taps in zip(places, kernel, strict=True)
    )
    shapes = {"x": (pictures, ins, *places), "g": (pictures, outs, *given)}
    axes, order = len(places), [1, 0, *range(2, len(places) + 2)]
    node = onnx.helper.make_node
    nodes = [
        node("Transpose", ["x"], ["xt"], name="n0", perm=order),
        node("Transpose", ["g"], ["gt"], name="n1", perm=order),
        node(
            "Conv",
            ["xt", "gt"],
            ["c"],
            name="n2",
            strides=[dilation] * axes,
            dilations=[stride] * axes,
            pads=[padding] * 2 * axes,
            kernel_shape=given,
        ),
        node("Slice", ["c", "starts", "ends", "axes"], ["y"], name="n3"),
    ]
    constants = {"starts": [0] * axes, "ends": kernel, "axes": range(2, axes + 2)}
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [info("y", onnx.TensorProto.FLOAT, (ins, outs, *kernel))],
        [numpy_helper.from_array(np.array(list(v)), name) for name, v in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model, shapes


def _wanted(x: np.ndarray, g: np.ndarray, case: Case) -> np.ndarray:
    _, ins, outs, places, kernel, stride, dilation, padding = case
    pads = [(0, 0), (0, 0), *((padding, padding) for _ in places)]
    wide = np.pad(x.astype(np.float64), pads)
    out = np.zeros((ins, outs, *kernel))
    for tap in np.ndindex(*kernel):
        cut = tuple(
            slice(t * dilation, t * dilation + (count - 1) * stride + 1, stride)
            for t, count in zip(tap, g.shape[2:], strict=True)
        )
        part = wide[(slice(None), slice(None), *cut)].reshape(*x.shape[:2], -1)
        own = np.einsum("nip,nop->io", part, g.reshape(*g.shape[:2], -1).astype(np.float64))
        out[(slice(None), slice(None), *tap)] = own
    return out


@pytest.mark.parametrize("kind", ["float", "mixed"])
@pytest.mark.parametrize("name", CASES)
def test_results(name: str, kind: str) -> None:
    """Whole numbers of few bits have exact products and sums in every precision."""
    case = CASES[name]
    model, shapes = _model(case)
    result, _ = compiled(model, float_dtype=kind)
    rng = np.random.default_rng(list(CASES).index(name))
    data = {key: rng.integers(-7, 8, shape).astype(np.float32) for key, shape in shapes.items()}
    wanted = _wanted(data["x"], data["g"], case)
    assert (run(result, data)["y"] == wanted).all()
    assert any(node.op == WEIGHT_GRADIENT for node in result.graph.nodes) == (name not in LARGE)
    products = {node.origin or node.name for node in result.graph.nodes if node.op == "MatMul"}
    assert (len(products) > 1) == (name == SEVERAL)
