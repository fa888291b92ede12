"""The rule of every operator against numeric differences, on drawn shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import tried
from gradient_cases import CASES, FLOAT, NONE, RECURRENT, REFUSED, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from pycompiler.errors import PycompilerError
from pycompiler.gradients import RULES, differentiable, differentiate
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import load_target
from pycompiler.pfvm.composites import COMPOSITES

#: The opset of operators that older ones lack.
OPSETS = {
    **dict.fromkeys(("Attention", "RotaryEmbedding"), 23),
    **dict.fromkeys(("MeanVarianceNormalization", "RMSNormalization"), 23),
    **dict.fromkeys(("Swish", "TensorScatter"), 24),
    "CumProd": 26,
}
TARGET = load_target("mncore2")
#: The operators of docs/operators.md.
OPERATORS = {name for name in LAYERS if onnx.defs.has(name)} | {*COMPOSITES}


def test_every_operator_has_a_case() -> None:
    others = NONE | RECURRENT | REFUSED
    assert {case.operator for case in CASES} | others >= {*OPERATORS, *RULES}
    assert all(differentiable(name) for name in OPERATORS - NONE - REFUSED)
    # The composite of ReduceProd is for integers.
    assert not REFUSED & RULES.keys()


def _model(case: Case, sizes: Mapping[str, int], random: np.random.Generator) -> tuple[Any, ...]:
    """Return the model, whose loss adds the results times weights, and its inputs."""
    shapes = [tuple(sizes.get(letter) or int(letter) for letter in s) for s in case.shapes]
    feeds = {}
    for number, shape in enumerate(shapes):
        count = int(np.prod(shape))
        # Distinct numbers, away from 0 and from each other.
        steps = (random.permutation(count) - count // 2 + 0.37) * min(0.05, 4.0 / count)
        feeds[f"x{number}"] = (
            (steps * case.scale * 3 + case.shift).astype(np.float32).reshape(shape)
        )
    constants = list(case.constants)
    names = list(feeds)
    if case.operator == "BatchNormalization":
        constants = [np.full(shapes[1], 0.3, np.float32), np.full(shapes[1], 1.7, np.float32)]
    if case.operator == "Resize":
        constants[2] = np.asarray([*shapes[0][:2], 7, 9])
    if case.name == "loss":
        constants = [np.arange(shapes[0][0]) * 3 % shapes[0][1]]
    if case.name == "scatter":
        constants, names = [], ["x0", "index", "x1"]
    if case.operator == "Clip" and not case.constants:
        feeds["x1"], feeds["x2"] = (np.full((), v, np.float32) for v in (-0.11, 0.32))
    if case.operator == "LeakyRelu":
        names = ["x0"]
    if case.operator == "Where":
        feeds["x0"] = feeds["x0"].astype(np.float32)
        constants, names = [], ["truth", *names]
    tensors = [numpy_helper.from_array(np.asarray(c), f"c{i}") for i, c in enumerate(constants)]
    if case.operator == "Where":
        truth = random.integers(0, 2, shapes[0]).astype(bool)
        tensors.append(numpy_helper.from_array(truth, "truth"))
    if case.name == "scatter":
        rows = [[0], [2]] if case.operator == "ScatterND" else [[0, -1], [2, 1]]
        index = numpy_helper.from_array(np.asarray(rows), "index")
        tensors.append(index)
    inputs = [*names, *(t.name for t in tensors if t.name not in names)]
    if case.operator == "Resize":
        inputs[1:3] = ["", ""]
    outputs = [f"y{number}" for number in range(case.outputs)]
    nodes = [helper.make_node(case.operator, inputs, outputs, **case.attributes)]
    values = [helper.make_tensor_value_info(n, FLOAT, np.shape(v)) for n, v in feeds.items()]
    return nodes, tensors, values, feeds, outputs


def _with_loss(
    parts: tuple[Any, ...], random: np.random.Generator, outputs: list[str]
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return the model with the value `loss`, and the weights of its outputs."""
    nodes, tensors, values, feeds, _ = parts
    unknown = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    plain = _made(nodes, values, unknown, tensors)
    weights = {
        name: random.normal(size=np.shape(result)).astype(np.float32)
        for name, result in zip(outputs, _run(plain, feeds), strict=True)
    }
    shown = [helper.make_tensor_value_info(n, FLOAT, np.shape(w)) for n, w in weights.items()]
    sums = []
    for name, weight in weights.items():
        tensors.append(numpy_helper.from_array(weight, f"{name}.weight"))
        nodes.append(helper.make_node("Mul", [name, f"{name}.weight"], [f"{name}.each"]))
        sums.append(f"{name}.sum")
        nodes.append(helper.make_node("ReduceSum", [f"{name}.each"], sums[-1:], keepdims=0))
    nodes.append(helper.make_node("Sum", sums, ["loss"]))
    return _made(nodes, values, shown, tensors), weights


def _made(nodes: Any, values: Any, shown: Any, tensors: Any) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "case", values, shown, tensors)
    newer = OPSETS.get(nodes[0].op_type, 21)
    opsets = [helper.make_opsetid("", newer)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[np.ndarray]:
    if model.opset_import[0].version >= OPSETS["Swish"]:  # onnxruntime lacks it
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def check(case: Case, sizes: Mapping[str, int], seed: int) -> None:
    random = np.random.default_rng(seed)
    parts = _model(case, sizes, random)
    feeds, outputs = parts[3], parts[4] if case.operator != "TopK" else parts[4][:1]
    model, weights = _with_loss(parts, random, outputs)
    found, names = differentiate(model, "loss", list(feeds), target=TARGET)
    for name in names.values():
        found.graph.output.append(helper.make_value_info(name, onnx.TypeProto()))
    grads = dict(zip(names, _run(found, feeds)[len(outputs) :], strict=True))

    def losses(given: Mapping[str, Any]) -> np.ndarray:
        results = zip(_run(model, given), weights.values(), strict=True)
        return np.concatenate([(np.float64(r) * w).ravel() for r, w in results])

    for name, value in feeds.items():
        grad = grads.get(name, np.zeros_like(value))
        assert grad.shape == np.shape(value), name
        step = 2e-3 * random.uniform(-1, 1, np.shape(value))
        up, down = ({**feeds, name: np.asarray(value + s, np.float32)} for s in (step, -step))
        each = losses(up), losses(down)
        moved = float(each[0].sum() - each[1].sum())
        taken = grad * (np.float64(up[name]) - np.float64(down[name]))
        noise = 1e-6 * (0.1 + float(np.abs(each[0]).sum()))
        bound = 2e-3 * float(np.abs(taken).sum()) + noise
        assert abs(moved - float(taken.sum())) <= bound, (case, sizes, seed, name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operator} {case.name}".strip())
@settings(max_examples=tried(2, 30), deadline=None, database=None)
@given(sizes=st.tuples(*[st.integers(2, 5)] * 3), seed=st.integers(0, 1000))
def test_rule(case: Case, sizes: tuple[int, ...], seed: int) -> None:
    check(case, dict(zip("abc", sizes, strict=True)), seed)


def test_the_divisor_of_a_remainder_has_a_gradient() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[3] x, float[3] y) => (float l) {
        m = Mod <fmod = 1> (x, y)  l = ReduceSum <keepdims = 0> (m) }"""
    made, names = differentiate(onnx.parser.parse_model(text), "l", ["x", "y"])
    feeds = {"x": np.float32([7.5, -7.5, 2.0]), "y": np.float32([2.0, 2.0, 3.0])}
    wanted = [names["x"], names["y"]]
    found = ReferenceEvaluator(made).run(wanted, feeds)
    assert [one.tolist() for one in found] == [[1, 1, 1], [-3, 3, 0]]


def test_an_operator_without_a_rule_is_refused() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[2, 2] x0) => (float l) {
        y = Identity (x0)  l = ReduceProd <keepdims = 0> (y) }"""
    model = onnx.parser.parse_model(text)
    with pytest.raises(PycompilerError, match=r"P0119.*ReduceProd"):
        differentiate(model, "l", ["x0"])
    with pytest.raises(PycompilerError, match=r"P0118.*x0"):
        differentiate(model, "x0", ["x0"])


@pytest.mark.parametrize("operator", sorted(REFUSED))
def test_the_gradient_of_floats_is_refused(operator: str) -> None:
    """Their composites are for integers."""
    text = f"""<ir_version: 10, opset_import: ["": 20]> g (float[3, 2] x) => (float l) {{
        l = {operator} <keepdims = 0> (x) }}"""
    with pytest.raises(PycompilerError, match=rf"P0119.*{operator}"):
        differentiate(onnx.parser.parse_model(text), "l", ["x"])
