"""Recurrent layers written as steps, against onnxruntime, and their gradients by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from pycompiler.gradients import differentiate
from pycompiler.gradients.recurrent import RECURRENT, written_as_steps
from pycompiler.pfvm.prepare import prepare, static_types

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Operator, attributes, and which operands are left out.
FORMS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    *((kind, {"direction": way}, ()) for kind in GATES for way in ("forward", "reverse")),
    *((kind, {"direction": "bidirectional"}, ("bias",)) for kind in GATES),
    ("GRU", {"linear_before_reset": 1}, ("state",)),
    ("RNN", {"activations": ["Relu"]}, ("cell",)),
    ("LSTM", {"activations": ["Sigmoid", "Tanh", "Tanh"]}, ("state", "cell", "bias")),
    ("LSTM", {"clip": 0.5}, ()),
    ("LSTM", {"input_forget": 1}, ()),
    ("GRU", {"activations": ["Sigmoid", "Elu"]}, ()),
]


def layer(
    kind: str,
    attributes: dict[str, Any],
    without: tuple[str, ...],
    sizes: tuple[int, ...],
    seed: int,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of one layer, all of whose operands are inputs, and their values."""
    steps, batch, width, size = sizes
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    gates = GATES[kind]
    shapes: dict[str, tuple[int, ...]] = {
        "x": (steps, batch, width),
        "weight": (ways, gates * size, width),
        "own": (ways, gates * size, size),
        "bias": (ways, 2 * gates * size),
        "lengths": (),
        "state": (ways, batch, size),
        "cell": (ways, batch, size),
    }
    if kind != "LSTM":
        del shapes["cell"]
    rng = np.random.default_rng(seed)
    names = ["" if n in without or n == "lengths" else n for n in shapes]
    feeds = {n: rng.normal(size=shapes[n]).astype(np.float32) for n in names if n}
    outs = ["all", "last", "inner"] if kind == "LSTM" else ["all", "last"]
    node = helper.make_node(kind, names, outs, hidden_size=size, **attributes)
    given = {n: value.shape for n, value in feeds.items()}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in given.items()]
    found = {"all": (steps, ways, batch, size)}
    if attributes.get("layout"):
        found["all"] = (batch, steps, ways, size)
        shapes["state"] = (batch, ways, size)
    last = shapes["state"]
    shown = [helper.make_tensor_value_info(n, TensorProto.FLOAT, found.get(n, last)) for n in outs]
    graph = helper.make_graph([node], "layer", values, shown)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


@pytest.mark.parametrize("form", FORMS, ids=str)
@settings(max_examples=tried(4), deadline=None, database=None)
@given(sizes=st.tuples(*[st.integers(1, 5)] * 4), seed=st.integers(0, 1000))
def test_steps(form: tuple[str, Any, Any], sizes: tuple[int, ...], seed: int) -> None:
    model, feeds = layer(*form, sizes, seed)
    work = prepare(model)
    written = written_as_steps(work, static_types(work), {"all"})
    assert not RECURRENT & {node.op_type for node in written.graph.node}
    for found, wanted in zip(run(written, feeds), run(model, feeds), strict=True):
        assert found.shape == wanted.shape
        assert np.allclose(found, wanted, atol=1e-5), form


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_gradients(form: tuple[str, Any, Any]) -> None:
    """Move all operands a little: the losses differ by the gradients times the ways."""
    model, feeds = layer(*form, (3, 2, 4, 3), 5)
    rng = np.random.default_rng(9)
    weights = [rng.normal(size=one.shape).astype(np.float32) for one in run(model, feeds)]
    for name, weight in zip(("all", "last", "inner"), weights, strict=False):
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, f"{name}.weight"))
        model.graph.node.append(helper.make_node("Mul", [name, f"{name}.weight"], [f"{name}.each"]))
        model.graph.node.append(
            helper.make_node("ReduceSum", [f"{name}.each"], [f"{name}.sum"], keepdims=0)
        )
    sums = [f"{n}.sum" for n, _ in zip(("all", "last", "inner"), weights, strict=False)]
    model.graph.node.append(helper.make_node("Sum", sums, ["loss"]))
    model.graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, ()))
    found, names = differentiate(model, "loss", list(feeds))
    assert set(names) == set(feeds)
    for name in names.values():
        found.graph.output.append(helper.make_value_info(name, onnx.TypeProto()))
    grads = dict(zip(names, run(found, feeds)[len(model.graph.output) :], strict=True))
    for name, value in feeds.items():
        step = (2e-2 * rng.uniform(-1, 1, value.shape)).astype(np.float32)
        up, down = (run(model, {**feeds, name: value + s}) for s in (step, -step))
        pairs = zip(up, down, weights, strict=False)
        moved = sum(float(((np.float64(a) - b) * w).sum()) for a, b, w in pairs)
        taken = float((grads[name] * 2.0 * step).sum())
        bound = 4e-3 * float(np.abs(grads[name] * 2.0 * step).sum()) + 1e-5
        assert abs(moved - taken) <= bound, name
