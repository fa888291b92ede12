"""Operators that only move elements, and composite operators."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, run, sampled, tried
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from one_node import one_node, values
from onnx import TensorProto, helper, numpy_helper

from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.pfvm.session import HostSession

SIZES = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12])
Shape = tuple[int, ...]


def same_bits(
    model: onnx.ModelProto, inputs: dict[str, np.ndarray], machine: str, **options: Any
) -> dict[str, Any]:
    """Results must be onnxruntime's, bit by bit; return the report."""
    result, report = compiled(model, machine, **options)
    assert report["host_fallback"] == []
    found = run(result, inputs, machine)
    for name, wanted in HostSession(model, "model").run(inputs).items():
        assert found[name].shape == wanted.shape
        assert np.array_equal(found[name], wanted), name
    return report


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    shape = tuple(draw(SIZES) for _ in range(draw(st.integers(1, 4))))
    # An axis that two shapes split differently must fit one PE of the smaller machine.
    while prod(shape) > 480:
        shape = shape[1:]
    return shape


def _factors(draw: st.DrawFn, count: int) -> Shape:
    """A shape of ``count`` elements."""
    out: list[int] = []
    while count > 1:
        part = draw(st.sampled_from([f for f in range(1, count + 1) if count % f == 0]))
        out.append(part)
        count //= part
        if len(out) == 5:
            out.append(count)
            break
    return tuple(out) or (1,)


@st.composite
def moved(draw: st.DrawFn) -> tuple[str, Shape, dict[str, np.ndarray], int, dict[str, object]]:
    """Draw an operator: input shape, parameters, number of outputs, attributes."""
    shape = draw(shapes())
    rank = len(shape)
    op = draw(
        st.sampled_from(["Reshape", "Transpose", "Slice", "Split", "Expand", "Pad", "Squeeze"])
    )
    axis = draw(st.integers(0, rank - 1))
    ints: dict[str, list[int]] = {}
    facts: dict[str, object] = {}
    outputs = 1
    if op == "Reshape":
        ints["shape"] = list(_factors(draw, prod(shape)))
    elif op == "Transpose":
        facts["perm"] = list(draw(st.permutations(range(rank))))
    elif op == "Slice":
        start = draw(st.integers(-shape[axis], shape[axis] - 1))
        step = draw(st.sampled_from([1, 2, -1]))
        end = -100 if step < 0 else draw(st.integers(1, 20))
        low = start % shape[axis]
        if not len(range(shape[axis])[low : None if step < 0 else end : step]):
            end = 100
        ints |= {"starts": [start], "ends": [end], "axes": [axis], "steps": [step]}
    elif op == "Split":
        outputs = draw(st.integers(1, min(3, shape[axis])))
        rest = shape[axis] - outputs + 1
        ints["split"] = [rest, *[1] * (outputs - 1)]
        facts["axis"] = axis
    elif op == "Expand":
        shape = tuple(1 if draw(st.booleans()) else size for size in shape)
        wide = [size if size > 1 else draw(st.sampled_from([1, 2, 5])) for size in shape]
        lead = [draw(st.integers(1, 3))] * draw(st.integers(0, 1))
        ints["shape"] = [*lead, *wide] if prod((*lead, *wide)) <= 480 else list(shape)
    elif op == "Pad":
        ints["pads"] = [draw(st.integers(0, 2)) for _ in range(2 * rank)]
    else:
        shape = (*shape[:axis], 1, *shape[axis:])
        ints["axes"] = [axis]
    return op, shape, {k: np.array(v, dtype=np.int64) for k, v in ints.items()}, outputs, facts


@pytest.mark.parametrize(("machine", "examples"), [("mini", 40), ("mncore2", 8)])
def test_elements_arrive(machine: str, examples: int) -> None:
    @given(moved(), st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 30 * examples))
    def case(
        what: tuple[str, Shape, dict[str, np.ndarray], int, dict[str, object]], seed: int
    ) -> None:
        op, shape, parameters, outputs, facts = what
        model = one_node(op, {"x": shape}, parameters, outputs, **facts)
        made = model.graph.output[0].type.tensor_type.shape.dim
        assume(prod(size.dim_value for size in made) <= 480)
        same_bits(model, values({"x": shape}, seed), machine)

    case()


@given(shapes(), st.data())
@settings(max_examples=tried(16, 400))
def test_concat(shape: Shape, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    parts = {
        f"x{i}": (*shape[:axis], data.draw(SIZES), *shape[axis + 1 :])
        for i in range(data.draw(st.integers(1, 3)))
    }
    same_bits(one_node("Concat", parts, {}, axis=axis), values(parts, 1), "mini")


def graph_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, Shape]],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """Return a model whose output is the result of the last node."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, elem, shape) for n, (elem, shape) in inputs.items()],
        [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
        [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    model.graph.output[0].CopyFrom(inferred.graph.output[0])
    return model


@given(st.integers(2, 12), st.integers(1, 9), st.data())
@settings(max_examples=tried(10, 250))
def test_gather_picks_bits(rows: int, columns: int, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(data.draw(st.integers(0, 2))))
    axis = data.draw(st.integers(0, 1))
    size = (rows, columns)[axis]
    node = helper.make_node("Gather", ["t", "i"], ["y"], axis=axis)
    model = graph_of(
        [node], {"t": (TensorProto.FLOAT, (rows, columns)), "i": (TensorProto.INT64, shape)}
    )
    rng = np.random.default_rng(0)
    inputs = {
        "t": rng.standard_normal((rows, columns)).astype(np.float32),
        "i": rng.integers(-size, size, shape),
    }
    same_bits(model, inputs, "mini")


@pytest.mark.parametrize("scheduler", ["always_from_dram", "reuse_consecutive", "spill_opt"])
def test_a_gather_keeps_to_its_banks(scheduler: str) -> None:
    """Only LM0 can be addressed by T, so the two LMs cannot be exchanged."""
    node = helper.make_node("Gather", ["t", "i"], ["y"])
    places = {"t": (TensorProto.FLOAT, (9, 6)), "i": (TensorProto.INT64, (5,))}
    model = graph_of([node], places)
    for bank in ("LM0", "LM1"):
        overrides = {"y": {"location": bank}}
        if bank == "LM1":
            compiled(model, "mini", scheduler=scheduler, overrides=overrides)
            continue
        with pytest.raises(PycompilerError) as caught:
            compiled(model, "mini", scheduler=scheduler, overrides=overrides)
        assert caught.value.code == "P0306"


def test_a_table_longer_than_lm_is_compared_with() -> None:
    rows = load_target("mini").words("lm0") // 2 + 1
    rng = np.random.default_rng(0)
    inputs = {
        "t": rng.standard_normal((rows, 3)).astype(np.float32),
        "i": rng.integers(-rows, rows, 5),
    }
    node = helper.make_node("Gather", ["t", "i"], ["y"])
    places = {"t": (TensorProto.FLOAT, (rows, 3)), "i": (TensorProto.INT64, (5,))}
    report = same_bits(graph_of([node], places), inputs, "mini")
    assert "Gather" not in {row["op"] for row in report["nodes"]}


def test_parts_of_a_large_value_use_all_units() -> None:
    """If the parts of a Split end inside a unit digit, another axis uses these units."""
    shape, target = (16, 576), load_target("mini")
    model = graph_of(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("Split", ["r"], ["y", "b", "c"], axis=1, num_outputs=3),
        ],
        {"x": (TensorProto.FLOAT, shape)},
    )
    # One step of the L1B digit is 288 elements, a part has 192.
    given = "((16:9), (2_L1B:1, 9:1, 4_MAB:1, 4_PE:1, 2_W:1))"
    options = {"layout_planner": "first_arrival", "overrides": {"r": {"layout": given}}}
    inputs = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    report = same_bits(model, inputs, "mini", **options)
    (row,) = (row for row in report["nodes"] if row["op"] == "Split")
    assert row["num_lw"] * prod(target.pe_shape) * 2 == prod(row["shape"])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_picking_by_index(axis: int) -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((4, 5, 6)).astype(np.float32)
    index = rng.integers(-4, 4, (3, 4, 5))
    elements = helper.make_node("GatherElements", ["t", "i"], ["y"], axis=axis)
    places = {"t": (TensorProto.FLOAT, table.shape), "i": (TensorProto.INT64, index.shape)}
    same_bits(graph_of([elements], places), {"t": table, "i": index}, "mini")
    whole = helper.make_node("GatherND", ["t", "i"], ["y"])
    places["i"] = (TensorProto.INT64, (2, axis + 1, 1))
    at = rng.integers(-4, 4, (2, axis + 1, 1))
    same_bits(graph_of([whole], places), {"t": table, "i": at}, "mini")
    hot = helper.make_node("OneHot", ["i", "depth", "two"], ["y"], axis=axis)
    model = graph_of(
        [hot],
        {"i": (TensorProto.INT64, (3, 4))},
        {"depth": np.array([7]), "two": np.array([-1.5, 2.5], dtype=np.float32)},
    )
    same_bits(model, {"i": rng.integers(-7, 7, (3, 4))}, "mini")
    largest = helper.make_node("ArgMax", ["t"], ["y"], axis=axis, keepdims=0)
    ties = np.round(table).astype(np.float32)
    model = graph_of([largest], {"t": (TensorProto.FLOAT, table.shape)})
    same_bits(model, {"t": ties}, "mini")


def test_units_of_an_axis_that_fills_them_in_part() -> None:
    """33 elements in digits 4 (MABs) and 16 use 3 MABs; the fourth is not free for other axes."""
    nodes = [helper.make_node("Expand", ["x", "s"], ["a"]), helper.make_node("Abs", ["a"], ["y"])]
    shape = {"x": (TensorProto.FLOAT, (33, 33))}
    model = graph_of(nodes, shape, {"s": np.array([2, 33, 33])})
    layout = "((2_L1B:1), (4_MAB:1, 16:6), (3:2, 4_PE:1, 2:1, 2_W:1))"
    result, _ = compiled(model, overrides={"a": {"layout": layout}})
    inputs = values({"x": (33, 33)}, 41)
    found = run(result, inputs)["y"]
    assert np.array_equal(found, np.abs(inputs["x"])[None].repeat(2, 0))


def test_host_reads_what_has_layouts_of_its_own() -> None:
    views = helper.make_node("Unsqueeze", ["x", "axes"], ["u"])
    model = graph_of(
        [views, helper.make_node("Sin", ["u"], ["y"])],
        {"x": (TensorProto.FLOAT, (5, 4))},
        {"axes": np.array([2])},
    )
    x = values({"x": (5, 4)}, 0)["x"]
    found, report = compiled(model, "mini")
    assert [row["op"] for row in report["host_fallback"]] == ["Sin"]
    assert np.allclose(run(found, {"x": x})["y"], np.sin(x)[..., None], atol=1e-6)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(("shape", "axis"), [((5, 10), -1), ((3, 4, 7), 1), ((64, 40), 0)])
def test_softmax(op: str, shape: Shape, axis: int) -> None:
    inputs = {"x": values({"x": shape}, 2)["x"] * 4}
    model = one_node(op, {"x": shape}, {}, axis=axis)
    near(model, inputs, 2e-6 if op == "Softmax" else 2e-5)


def near(model: onnx.ModelProto, inputs: dict[str, np.ndarray], limit: float) -> None:
    for machine in ("mini", "mncore2"):
        result, report = compiled(model, machine)
        assert report["host_fallback"] == []
        found = run(result, inputs, machine)
        for name, wanted in HostSession(model, "model").run(inputs).items():
            assert np.abs(found[name] - wanted).max() <= limit


def test_masked_softmax() -> None:
    inputs = {"x": np.where(np.tri(9, dtype=bool), values({"x": (9, 9)}, 4)["x"], -np.inf)}
    near(one_node("Softmax", {"x": (9, 9)}, {}, axis=1), inputs, 2e-6)


@pytest.mark.parametrize("axis", [1, 2])
def test_normalisation(axis: int) -> None:
    shape = (3, 6, 20)
    rng = np.random.default_rng(1)
    wide = {n: rng.standard_normal(shape[axis:]).astype(np.float32) for n in ("s", "b")}
    model = one_node("LayerNormalization", {"x": shape}, wide, axis=axis, epsilon=1e-5)
    near(model, values({"x": shape}, 3), 3e-5)


def test_batch_normalisation() -> None:
    shape = (4, 6, 5)
    rng = np.random.default_rng(1)
    facts = {n: (rng.random(6) + 0.5).astype(np.float32) for n in ("s", "b", "m", "v")}
    near(one_node("BatchNormalization", {"x": shape}, facts), values({"x": shape}, 3), 3e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_losses(op: str, reduction: str) -> None:
    rng = np.random.default_rng(2)
    node = helper.make_node(op, ["x", "t", "w"], ["y"], reduction=reduction, ignore_index=-100)
    model = graph_of(
        [node],
        {"x": (TensorProto.FLOAT, (8, 5, 3)), "t": (TensorProto.INT64, (8, 3))},
        {"w": (rng.random(5) + 0.5).astype(np.float32)},
    )
    target = rng.integers(0, 5, (8, 3))
    target[0, 0] = -100
    inputs = {"x": rng.standard_normal((8, 5, 3)).astype(np.float32), "t": target}
    near(model, inputs, 5e-5)


@pytest.mark.parametrize(
    ("shape", "start", "end", "step"),
    [((1, 1, 16000), 0, 16000, 2), ((2, 3000), 1, 2999, 3), ((2, 3000), -2998, 3000, 3)],
)
def test_steps_along_an_axis_that_no_pe_holds(
    shape: Shape, start: int, end: int, step: int
) -> None:
    bounds = {
        name: np.array([number])
        for name, number in zip("seat", (start, end, len(shape) - 1, step), strict=True)
    }
    model = one_node("Slice", {"x": shape}, bounds)
    for machine in ("mini", "mncore2"):
        same_bits(model, values({"x": shape}, 4), machine)


@pytest.mark.parametrize("steps", sampled([((1, 1),), ((2, 2),), ((2, -1),), ((1, 3),)]))
def test_parts_of_planes_that_no_pe_holds(steps: tuple[int, int]) -> None:
    """Two axes that are both changed would lie in Addr together: 24 x 30 of 512 long words."""
    shape = (2, 32, 24, 30)
    ends = (23, 29) if min(steps) > 0 else (23, -31)
    starts = (1, 1) if min(steps) > 0 else (1, 28)
    bounds = {
        "s": np.array(starts, np.int64),
        "e": np.array(ends, np.int64),
        "a": np.array([2, 3], np.int64),
        "t": np.array(steps, np.int64),
    }
    model = one_node("Slice", {"x": shape}, bounds)
    report = same_bits(model, values({"x": shape}, 5), "mini")
    assert sum(node["op"] == "Slice" for node in report["nodes"]) == 2
