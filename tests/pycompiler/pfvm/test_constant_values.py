"""What is computed of constants before a call, and what the host computes, is what ONNX says.

onnx's own evaluator and the optimisers of onnxruntime are wrong in these forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional

from pycompiler.build import host_function
from pycompiler.pfvm.optimise import optimise

Array = np.ndarray[Any, Any]
Nodes = list[tuple[str, list[str], str, dict[str, Any]]]

SEED = 486901
X = np.random.default_rng(SEED).integers(-12, 13, (2, 5, 4, 6)).astype(np.float32) / 4
T = torch.from_numpy(X)
CONSTANTS: dict[str, Array] = {
    "quarter": np.float32(0.25).reshape(()),
    "half": np.float32(0.5).reshape(()),
    "two": np.uint8(2).reshape(()),
    "rows": np.array([10, 24]),
    "lines": np.array([2, 5, 24]),
}


def rounded(x: Array, step: float) -> Array:
    return ((np.rint(x / np.float32(step)) + 2).clip(0, 255) - 2) * np.float32(step)


def first_of_rows(x: Array) -> Array:
    """Return 1 at the largest element of each row of the first axis, as Hardmax before opset 13."""
    return np.eye(x[0].size, dtype=np.float32)[x.reshape(len(x), -1).argmax(1)].reshape(x.shape)


ROUND: Nodes = [
    ("QuantizeLinear", ["x", "quarter", "two"], "a", {}),
    ("DequantizeLinear", ["a", "quarter", "two"], "b", {}),
    ("QuantizeLinear", ["b", "half", "two"], "c", {}),
    ("DequantizeLinear", ["c", "half", "two"], "y", {}),
]
BESIDE: Nodes = [
    ("Reshape", ["x", "rows"], "y", {}),
    ("Transpose", ["y"], "a", {"perm": [1, 0]}),
    ("QuantizeLinear", ["a", "half", "two"], "b", {}),
    ("DequantizeLinear", ["b", "half", "two"], "z", {}),
]
ROWS: dict[str, tuple[int, Nodes, dict[str, Array]]] = {
    "quantized twice": (18, ROUND, {"y": rounded(rounded(X, 0.25), 0.5)}),
    "beside a quantized one": (
        18,
        BESIDE,
        {"y": X.reshape(10, 24), "z": rounded(X.reshape(10, 24).T, 0.5)},
    ),
    "LpNormalization": (
        18,
        [("LpNormalization", ["x"], "y", {"p": 1, "axis": 1})],
        {"y": X / np.abs(X).sum(1, keepdims=True)},
    ),
    "GlobalMaxPool": (
        18,
        [("Reshape", ["x", "lines"], "a", {}), ("GlobalMaxPool", ["a"], "y", {})],
        {"y": X.reshape(2, 5, 24).max(2, keepdims=True)},
    ),
    "LRN": (
        18,
        [("LRN", ["x"], "y", {"size": 3, "alpha": 0.5})],
        {"y": functional.local_response_norm(T, 3, 0.5).numpy()},
    ),
    "Hardmax of opset 11": (
        11,
        [
            ("Hardmax", ["x"], "y", {"axis": 1}),
            ("Clip", ["x"], "a", {}),
            ("Size", ["a"], "z", {}),
        ],
        {"y": first_of_rows(X), "z": np.array(X.size)},
    ),
}


def model_of(opset: int, nodes: Nodes, results: dict[str, Array], x: Array | None) -> Any:
    def info(name: str, array: Array) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )

    read = {name for _, names, _, _ in nodes for name in names}
    held = CONSTANTS | ({} if x is None else {"x": x})
    graph = helper.make_graph(
        [helper.make_node(op, ins, [out], name=out, **facts) for op, ins, out, facts in nodes],
        "g",
        [info("x", X) if x is None else info("n", X[0, 0, 0, :1])],
        [info(name, array) for name, array in results.items()],
        [numpy_helper.from_array(array, name) for name, array in held.items() if name in read],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_values(name: str, constant: bool) -> None:
    opset, nodes, wanted = ROWS[name]
    model = optimise(model_of(opset, nodes, wanted, X if constant else None))
    given = {"n": np.zeros(1, np.float32)} if constant else {"x": X}
    found = host_function(model).run(given)
    for key, array in wanted.items():
        made = np.asarray(found[key].values())
        assert made.dtype == array.dtype
        np.testing.assert_allclose(made, array, rtol=1e-6, atol=1e-6, err_msg=f"seed {SEED}")


def test_a_scalar_behind_a_clip_without_bounds() -> None:
    """Its shape is empty, which is no unknown shape."""
    nodes: Nodes = [("Clip", ["x"], "a", {}), ("DynamicQuantizeLinear", ["a"], "y", {})]
    model = model_of(18, nodes, {"y": np.zeros((), np.uint8)}, None)
    model.graph.node[1].output[:] = ["y", "s", "z"]
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, ()))
    found = host_function(optimise(model)).run({"x": np.float32(-3).reshape(())})
    assert found["y"].values() == 0
