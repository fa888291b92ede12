"""Matrix products and reductions against PyTorch and onnxruntime, over random shapes."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import Shape, compiled, planning, run, sampled, tried
from hypothesis import example, given, settings
from hypothesis import strategies as st
from one_node import one_node, values
from onnx import TensorProto, helper, numpy_helper

from pycompiler.errors import PycompilerError
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph import Layout, Level, MNDtype, MNGraph, MNNode, parse_layout
from pycompiler.graph.verify import violations
from pycompiler.layers.matmul import PRODUCTS
from pycompiler.layers.operators import RULES
from pycompiler.layers.products.choose import across_groups, candidate_layouts
from pycompiler.layers.products.layouts import operand_layouts, unit_digits, wanted_layouts
from pycompiler.layers.products.roles import precision_of, roles_of
from pycompiler.layers.products.spreads import SpreadRule, spread_units
from pycompiler.machine import Target, load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.dtype import plan_dtypes
from pycompiler.planners.side import plan_sides
from pycompiler.tolerance import SUM, SUMS

SIZES = st.sampled_from([1, 2, 3, 4, 7, 8, 10, 16, 17, 33])


#: For each precision of products: its options, and its row of the table of bounds.
MODES: dict[str, dict[str, str]] = {
    "float": {},
    "pseudo": {"gemm_precision": "pseudo_single"},
    "mixed": {"float_dtype": "mixed"},
}
BOUND = {"float": "Float", "pseudo": "PseudoSingle", "mixed": "Half"}


def check(
    model: onnx.ModelProto,
    inputs: dict[str, np.ndarray],
    wanted: np.ndarray,
    limit: float,
    machine: str,
    **options: Any,
) -> None:
    """Results must be within ``limit`` of PyTorch's and onnxruntime's."""
    result, report = compiled(model, machine, **options)
    assert report["host_fallback"] == []
    found = run(result, inputs, machine)["y0"]
    other = HostSession(model, "model").run(inputs)["y0"]
    assert found.shape == wanted.shape
    for reference in (wanted, other):
        assert np.abs(found.astype(np.float64) - reference).max(initial=0) <= limit


@st.composite
def products(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of the operands of a MatMul: batched, broadcast, or vectors."""
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    batch = [draw(st.sampled_from([1, 2, 3])) for _ in range(draw(st.integers(0, 2)))]

    def part(size: tuple[int, ...]) -> tuple[int, ...]:
        own = [b if draw(st.booleans()) else 1 for b in batch]
        return (*own[draw(st.integers(0, len(own))) if draw(st.booleans()) else 0 :], *size)

    one = (k,) if draw(st.integers(0, 9)) == 0 else part((m, k))
    other = (k,) if draw(st.integers(0, 9)) == 0 else part((k, n))
    return one, other


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("machine", "examples"), [("mini", 16), ("mncore2", 4)])
def test_matmul(mode: str, machine: str, examples: int) -> None:
    @given(products(), st.booleans(), st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 25 * examples))
    def case(shapes: tuple[tuple[int, ...], tuple[int, ...]], fixed: bool, seed: int) -> None:
        given_values = values({"a": shapes[0], "b": shapes[1]}, seed)
        constants = {"b": given_values.pop("b")} if fixed else {}
        both = {**given_values, **constants}
        wanted = np.matmul(both["a"].astype(np.float64), both["b"].astype(np.float64))
        model = one_node("MatMul", {n: v.shape for n, v in given_values.items()}, constants)
        most = [float(np.abs(both[name]).max()) for name in ("a", "b")]
        bound = SUMS[BOUND[mode], SUM]
        limit = shapes[0][-1] * bound * most[0] * most[1]
        check(model, given_values, wanted.astype(np.float32), limit, machine, **MODES[mode])

    case()


@pytest.mark.parametrize(
    ("bias", "transposed", "mode"),
    sampled(
        list(product((None, (9,), (1,), (1, 9), ()), [(0, 0), (0, 1), (1, 0), (1, 1)], MODES)),
        every=5,
    ),
)
def test_gemm(mode: str, transposed: tuple[int, int], bias: tuple[int, ...] | None) -> None:
    m, n, k = 6, 9, 21
    shapes = {
        "a": (k, m) if transposed[0] else (m, k),
        "b": (n, k) if transposed[1] else (k, n),
    }
    if bias is not None:
        shapes["c"] = bias
    made = values(shapes, 3)
    a, b = (made[x].T if flag else made[x] for x, flag in zip("ab", transposed, strict=True))
    wanted = torch.from_numpy(a) @ torch.from_numpy(b) + torch.from_numpy(
        made.get("c", np.zeros(()))
    )
    fixed = {name: made.pop(name) for name in ("b", "c") if name in made}
    model = one_node("Gemm", {"a": shapes["a"]}, fixed, transA=transposed[0], transB=transposed[1])
    bound = SUMS[BOUND[mode], SUM]
    limit = (k + 1) * bound * float(np.abs(a).max() * np.abs(b).max())
    check(model, made, wanted.float().numpy(), limit, "mini", **MODES[mode])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 2, 3, 16])
def test_a_bias_on_one_block_of_terms(mode: str, k: int) -> None:
    made = values({"a": (5, k), "b": (k, 7), "c": (7,)}, k)
    fixed = {name: made.pop(name) for name in "bc"}
    wanted = made["a"].astype(np.float64) @ fixed["b"] + fixed["c"]
    model = one_node("Gemm", {"a": (5, k)}, fixed)
    check(model, made, wanted.astype(np.float32), 0.2, "mini", **MODES[mode])


def test_large_values_do_not_meet_what_padding_holds() -> None:
    # A division by zero in the padding of a contracted axis must not spoil the block.
    nodes = [
        helper.make_node("Div", ["x", "d"], ["q"], name="q"),
        helper.make_node("MatMul", ["q", "w"], ["y0"], name="p"),
    ]
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, (4, 13)) for n in "xd"],
        [helper.make_tensor_value_info("y0", TensorProto.FLOAT, (4, 5))],
        [numpy_helper.from_array(rng.standard_normal((13, 5)).astype(np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    inputs = {n: np.abs(v) + 0.5 for n, v in values({"x": (4, 13), "d": (4, 13)}, 1).items()}
    wanted = HostSession(model, "model").run(inputs)["y0"]
    for mode, limit in (("float", 1e-4), ("pseudo", 1e-2), ("mixed", 0.5)):
        check(model, inputs, wanted, limit, "mini", **MODES[mode])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fixed", [False, True])
def test_a_value_times_itself(mode: str, fixed: bool) -> None:
    made = values({"a": (32, 32)}, 8)
    wanted = made["a"].astype(np.float64) @ made["a"]
    node = helper.make_node("MatMul", ["a", "a"], ["y0"], name="node")
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (32, 32)) for n in ("a", "y0")]
    constants = [numpy_helper.from_array(made["a"], "a")] if fixed else []
    inputs = [] if fixed else ports[:1]
    graph = helper.make_graph([node], "g", inputs, ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    bound = SUMS[BOUND[mode], SUM]
    limit = 32 * bound * float(np.abs(made["a"]).max() ** 2)
    given_values = {} if fixed else made
    check(model, given_values, wanted.astype(np.float32), limit, "mini", **MODES[mode])


def test_a_product_refuses_other_layouts() -> None:
    model = one_node("MatMul", {"a": (8, 8), "b": (8, 8)}, {})
    graph = compiled(model)[0].graph
    target = load_target("mini")
    product = next(node for node in graph.nodes if node.op == "MatMul")
    value = graph.values[product.inputs[0]]
    assert list(violations(graph, target, RULES)) == []
    other: Layout = parse_layout("((8:8),(8:1); B@[W])")
    assert value.dtype is MNDtype.FLOAT
    broken = graph.with_values({value.name: replace(value, layout=other)})
    assert any("only in" in problem for _, problem in violations(broken, target, RULES))


REDUCE = {
    "ReduceSum": lambda x, axes, keep: x.double().sum(axes, keep),
    "ReduceMean": lambda x, axes, keep: x.double().mean(axes, keep),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keep),
}


@st.composite
def reductions(draw: st.DrawFn) -> tuple[tuple[int, ...], list[int]]:
    shape = tuple(draw(SIZES) for _ in range(draw(st.integers(1, 4))))
    while np.prod(shape) > 4096:
        shape = shape[1:]
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    return shape, [axis - len(shape) if draw(st.booleans()) else axis for axis in axes]


@pytest.mark.parametrize("op", REDUCE)
@pytest.mark.parametrize(("machine", "examples"), [("mini", 10), ("mncore2", 3)])
def test_reduction(op: str, machine: str, examples: int) -> None:
    @given(reductions(), st.integers(0, 1), st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 25 * examples))
    def case(what: tuple[tuple[int, ...], list[int]], keep: int, seed: int) -> None:
        shape, axes = what
        inputs = values({"x": shape}, seed)
        wanted = REDUCE[op](torch.from_numpy(inputs["x"]), axes, bool(keep))
        model = one_node(op, {"x": shape}, {"axes": np.array(axes)}, keepdims=keep)
        count = int(np.prod([shape[axis] for axis in axes]))
        exact = op in ("ReduceMax", "ReduceMin")
        limit = 0 if exact else count * SUMS["Float", SUM] * float(np.abs(inputs["x"]).max())
        check(model, inputs, wanted.float().numpy(), limit, machine)

    case()


@pytest.mark.parametrize("axes", [[0], [1], [0, 1], None])
def test_reductions_across_the_chip(axes: list[int] | None) -> None:
    inputs = values({"x": (96, 512)}, 5)
    constants = {} if axes is None else {"axes": np.array(axes)}
    model = one_node("ReduceSum", {"x": (96, 512)}, constants, keepdims=0)
    wanted = inputs["x"].astype(np.float64).sum(None if axes is None else tuple(axes))
    limit = inputs["x"].size * SUMS["Float", SUM] * 4
    check(model, inputs, wanted.astype(np.float32), limit, "mncore2")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("machine", "m", "k", "n"), [("mini", 40, 128, 64)])
def test_large_shares_split_the_contracted_axis(
    mode: str, machine: str, m: int, k: int, n: int
) -> None:
    made = values({"a": (m, k), "b": (k, n), "c": (n,)}, 6)
    wanted = made["a"].astype(np.float64) @ made["b"] + made["c"]
    fixed = {name: made.pop(name) for name in ("b", "c")}
    model = one_node("Gemm", {"a": (m, k)}, fixed)
    bound = SUMS[BOUND[mode], SUM]
    limit = (k + 1) * bound * float(np.abs(made["a"]).max() * np.abs(fixed["b"]).max())
    check(model, made, wanted.astype(np.float32), limit, machine, **MODES[mode])
    target = load_target(machine)
    options = {"float_dtype": "float", **MODES[mode]}
    graph = plan_dtypes(
        plan_sides(import_onnx(model, target).graph, strict=True), target, planning(**options)
    )
    (node,) = graph.nodes
    found = [one["a"].axes[1] for one in candidate_layouts(node, graph, target, {})]
    assert any(sub.level is Level.L1B for subs in found for sub in subs)


def _single(one: Shape, other: Shape) -> tuple[MNGraph, MNNode, Target]:
    """Return a graph with one product of singles without layouts."""
    target = load_target("mncore2")
    graph = import_onnx(one_node("MatMul", {"a": one, "b": other}, {}), target).graph
    values = {n: replace(value, dtype=MNDtype.FLOAT) for n, value in graph.values.items()}
    return graph.with_values(values), graph.nodes[0], target


@pytest.mark.parametrize(
    ("rows", "matrix", "mode"),
    [
        ((3, 49, 768), (768, 2304), "float"),
        # Columns and rows must share the L1Bs and the L2Bs.
        ((180, 3, 930), (930, 930), "mixed"),
    ],
    ids=["Swin's last stage with three pictures", "a layer 930/6 on 3 x 180 tokens"],
)
def test_long_rows_and_a_large_matrix_have_a_spread(rows: Shape, matrix: Shape, mode: str) -> None:
    """No axis of these products can be cut into time slices."""
    target = load_target("mncore2")
    graph = import_onnx(one_node("MatMul", {"a": rows, "b": matrix}, {}), target).graph
    graph = plan_dtypes(plan_sides(graph, strict=True), target, planning(float_dtype=mode))
    (node,) = (one for one in graph.nodes if one.op == "MatMul")
    assert list(candidate_layouts(node, graph, target, {}))


@pytest.mark.parametrize("l2bs", [1, 2, 3])
def test_columns_on_l2bs_and_terms_on_l1bs(l2bs: int) -> None:
    shapes = {"a": (3, 13, 256), "b": (256, 600)}
    graph, node, target = _single(shapes["a"], shapes["b"])
    way = SpreadRule(contracted=True, l2bs=l2bs)
    spread = spread_units(roles_of(node, graph), precision_of(node, target), target, None, way)
    assert [digit.level for digit in spread.n].count(Level.L2B) == l2bs
    assert {digit.level for digit in spread.k} == {Level.L1B}
    layouts = operand_layouts(node, graph, spread, target)
    overrides = {name: {"layout": str(layout)} for name, layout in layouts.items()}
    made = values(shapes, 7)
    limit = 257 * SUMS["Float", SUM] * float(np.abs(made["a"]).max() * np.abs(made["b"]).max())
    wanted = (made["a"].astype(np.float64) @ made["b"]).astype(np.float32)
    model = one_node("MatMul", shapes, {})
    check(model, made, wanted, limit, "mncore2", overrides=overrides)


@example(seed=18036726, mode="float", terms=False)  # no layouts of its slices go with these
@given(st.integers(0, 2**32 - 1), st.sampled_from(["float", "pseudo"]), st.booleans())
@settings(max_examples=tried(6, 120), deadline=None)
def test_groups_share_terms_or_columns(seed: int, mode: str, terms: bool) -> None:
    """Terms on all groups, with or without the L1Bs; columns that go with them; a bias or none."""
    rng, options = random.Random(seed), {"float_dtype": "float", **MODES[mode]}
    machine = rng.choice(["mncore2", "what_if/odd", "what_if/half_l2b"])
    target = load_target(machine)
    units = target.groups * rng.choice([1, target.counts["l1b"]])
    # The matrix has no fewer elements than the vectors.
    m, k = rng.choice([1, 3, 8, 29]), 8 * units * rng.choice([1, 2, 3])
    n = rng.randint(m, 70)
    if not terms:
        n = 16 * target.groups * target.counts["mab"]
    op = rng.choice(["MatMul", "Gemm"])
    made = values({"a": (m, k), "b": (k, n)} | ({"c": (n,)} if op == "Gemm" else {}), seed % 99)
    wanted = made["a"].astype(np.float64) @ made["b"] + made.get("c", 0)
    fixed = {name: made.pop(name) for name in list(made) if name != "a"}
    model = one_node(op, {"a": (m, k)}, fixed)
    graph = import_onnx(model, target).graph
    graph = plan_dtypes(plan_sides(graph, strict=True), target, planning(**options))
    node = next(one for one in graph.nodes if one.op in PRODUCTS)
    ways = list(across_groups(node, graph, target, {}, terms=terms))
    assert ways
    layouts = rng.choice(ways)
    one, other, result = (layouts[n] for n in (*node.inputs[:2], node.outputs[0]))
    turned = Layout(other.axes[::-1], other.broadcast)
    entry = {"key": "b", "A": one, "BT": turned, "C": result}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gemm.json"
        path.write_text(json.dumps([{key: str(one) for key, one in entry.items()}]))
        found, _ = compiled(model, machine, gemm_layout_spec=str(path), **options)
    assert ("mvr4ffadd" in found.vsm) is terms
    limit = (k + 1) * SUMS[BOUND[mode], SUM] * float(np.abs(made["a"]).max())
    error = np.abs(run(found, made, machine)["y0"] - wanted).max()
    assert error <= limit * float(np.abs(fixed["b"]).max())


@pytest.mark.parametrize("dtype", ["float", "mixed", "double"])
def test_a_wide_layer_stays_in_its_group(dtype: str) -> None:
    """What lies between two products does not cross groups: only the sums of the second do."""
    kind = np.float64 if dtype == "double" else np.float32
    rng = np.random.default_rng(8)
    sizes = {"x": (40, 256), "v": (256, 1024), "w": (1024, 256)}
    made = {name: rng.standard_normal(shape).astype(kind) for name, shape in sizes.items()}
    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y0"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx_type, shape)
        for name, shape in {"x": (40, 256), "y0": (40, 256)}.items()
    ]
    fixed = [numpy_helper.from_array(made[name], name) for name in ("v", "w")]
    graph = helper.make_graph(nodes, "layer", ends[:1], ends[1:], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    mode = {"float_dtype": "mixed"} if dtype == "mixed" else {}
    result, _ = compiled(model, "mncore2", **mode)
    assert "mvr4" in result.vsm
    wide = np.maximum(made["x"].astype(np.float64) @ made["v"], 0)
    wanted = wide @ made["w"]
    row = {"float": "Float", "mixed": "Half", "double": "Double"}[dtype]
    limit = 1400 * SUMS[row, SUM] * float(np.abs(wide).max() * np.abs(made["w"]).max())
    found = run(result, {"x": made["x"]}, "mncore2")["y0"]
    assert np.abs(found - wanted).max() <= limit


@pytest.mark.parametrize("mode", ["float", "mixed"])
def test_terms_that_do_not_fill_all_l1bs(mode: str) -> None:
    """A last slice has the layouts of longer ones; L1Bs with padding alone added what lay there."""
    shapes, target = {"a": (8, 56), "b": (56, 12)}, load_target("mini")
    graph = import_onnx(one_node("MatMul", {"a": (8, 64), "b": (64, 12)}, {}), target).graph
    graph = plan_dtypes(plan_sides(graph, strict=True), target, planning(float_dtype=mode))
    (node,) = (one for one in graph.nodes if one.op == "MatMul")
    way = SpreadRule(contracted=True)
    spread = spread_units(roles_of(node, graph), precision_of(node, target), target, None, way)
    assert {digit.level for digit in spread.k} == {Level.L1B}
    layouts = operand_layouts(node, graph, spread, target)
    values_of = {name: replace(graph.values[name], layout=one) for name, one in layouts.items()}
    for name, shape in zip(node.inputs, shapes.values(), strict=True):
        type_of = replace(values_of[name].type, shape=shape)
        values_of[name] = replace(values_of[name], type=type_of)
    assert wanted_layouts(node, graph.with_values(values_of), target) is None


def test_rows_of_two_axes_keep_their_units() -> None:
    """Rows may lie on any units if all axes of rows together leave four to a step."""
    graph, node, target = _single((64, 16, 256), (256, 768))
    hint = parse_layout("((2_L1B:1, 2_L1B:2, 16:64), (8_L2B:1, 2_L1B:4), (32:2, 4_PE:1, 2_W:1))")
    wanted = [unit_digits(hint, axis) for axis in (0, 1)]
    found = [one["a"] for one in candidate_layouts(node, graph, target, {"a": hint})]
    assert wanted in [[unit_digits(layout, axis) for axis in (0, 1)] for layout in found]


def test_outer_axes_take_outer_units() -> None:
    """So heads lie beside their picture, and a view that joins both needs no move across L2Bs."""
    graph, node, target = _single((16, 4, 64, 64), (16, 4, 64, 64))
    found = next(candidate_layouts(node, graph, target, {}))["a"]
    assert {sub.level for sub in found.axes[0]} == {Level.L2B, Level.L1B}
    assert {sub.level for sub in found.axes[1]} == {Level.L1B}


def test_pseudo_single_lies_between() -> None:
    made = values({"a": (24, 64), "b": (64, 24)}, 9)
    wanted = made["a"].astype(np.float64) @ made["b"]
    model = one_node("MatMul", {"a": (24, 64), "b": (64, 24)}, {})
    errors, slots, steps = {}, {}, {}
    for mode, options in MODES.items():
        result, report = compiled(model, "mini", **options)
        errors[mode] = float(np.abs(run(result, made)["y0"] - wanted).max())
        slots[mode] = result.vsm.count("gmfma"), result.vsm.count("fmfma")
        steps[mode] = sum(row["steps"] for row in report["nodes"] if row["op"] == "MatMul")
    assert errors["float"] < errors["pseudo"] / 4 < errors["mixed"] / 16
    assert steps["float"] > steps["pseudo"] > steps["mixed"]
    assert slots["pseudo"][0] > 0 == slots["pseudo"][1]
    assert slots["float"][0] == 0 < slots["float"][1]


def test_a_product_of_its_own_precision() -> None:
    model = one_node("MatMul", {"a": (8, 32), "b": (32, 8)}, {})
    for precision in ("single", "pseudo_single", "half"):
        for mode in MODES.values():
            options = {**mode, "overrides": {"y0": {"precision": precision}}}
            result, _ = compiled(model, "mini", **options)
            (node,) = (n for n in result.graph.nodes if n.op == "MatMul")
            assert dict(node.attributes)["precision"] == precision
            assert f'"precision": "{precision}"' in result.dumps["layout.dtype.txt"]
    for facts, reason in (
        ({"y0": {"precision": "double"}}, "no product has precision double"),
        ({"a": {"precision": "half"}}, "no matrix product makes it"),
    ):
        with pytest.raises(PycompilerError) as caught:
            compiled(model, "mini", overrides=facts)
        assert caught.value.code == "P0306"
        assert reason in str(caught.value)


def test_the_sums_of_a_gemm_with_a_bias_can_be_cut() -> None:
    """The first layer of a large classifier: one block of columns of the weights exceeds LM1."""
    shapes = {"x": (5, 2048)}
    rng = np.random.default_rng(3)
    matrix, bias = (rng.standard_normal(s).astype(np.float32) for s in ((2048, 64), (64,)))
    model = one_node("Gemm", shapes, {"w": matrix, "c": bias})
    x = rng.standard_normal(shapes["x"]).astype(np.float32)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    wanted = x.astype(np.float64) @ matrix + bias
    terms = np.abs(x).astype(np.float64) @ np.abs(matrix) + np.abs(bias)
    assert (np.abs(run(result, {"x": x})["y0"] - wanted) <= terms * 2.0**-20).all()
