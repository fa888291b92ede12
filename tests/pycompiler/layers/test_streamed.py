"""Products whose vectors come through L1BM: values, choice of the schedule, and speed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, context, model_of, run, sampled, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from pycompiler.graph import MNDtype
from pycompiler.graph.graph import TensorType
from pycompiler.graph.half import fits_halves, halves_of, singles_of
from pycompiler.graph.layout import Level
from pycompiler.graph.plan import Resident, Streamed
from pycompiler.layers.operators import LAYERS
from pycompiler.layers.products import choose, streamed
from pycompiler.layers.products.route import route, shares
from pycompiler.machine import load_target
from pycompiler.pipeline import Compiled
from pycompiler.tolerance import SUM, SUMS


def gemm(
    shape: tuple[int, int, int], transposed: tuple[int, int], bias: np.ndarray | None, b: np.ndarray
) -> onnx.ModelProto:
    """A Gemm whose matrix is a constant and whose vectors are an input."""
    m, n, k = shape
    given_shape = (k, m) if transposed[0] else (m, k)
    constants = {"b": b.T if transposed[1] else b}
    if bias is not None:
        constants["c"] = bias
    node = helper.make_node(
        "Gemm", ["a", *constants], ["y"], name="p", transA=transposed[0], transB=transposed[1]
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, given_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (m, n))],
        [numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


def both(
    model: onnx.ModelProto, inputs: dict[str, np.ndarray], machine: str = "mini"
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the results of the streamed schedule and of the one with operands in every MAB.

    The last element tells whether both add in the same order: neither splits sums among L1Bs.
    """
    found, whole = [], True
    for place, name in ((choose, "fits"), (streamed, "suits")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, name, lambda *_: False)
            result, report = compiled(model, machine, float_dtype="mixed")
        assert report["host_fallback"] == []
        assert streams(result) == (name == "fits")
        found.append(run(result, inputs, machine)["y"])
        (node,) = [n for n in result.graph.nodes if n.op in ("Gemm", "MatMul")]
        one, out = (result.graph.values[n].layout for n in (node.inputs[0], node.outputs[0]))
        assert one is not None
        assert out is not None
        units = [{d.level for a in place.axes for d in a} & {Level.L1B} for place in (one, out)]
        whole &= units[0] <= units[1]
    return found[0], found[1], whole


def streams(result: Compiled) -> bool:
    """Whether the model's only product streams its vectors."""
    (node,) = [n for n in result.graph.nodes if n.op in ("Gemm", "MatMul")]
    return isinstance(node.plan, Streamed)


def close(found: np.ndarray, a: np.ndarray, b: np.ndarray, wanted: np.ndarray) -> bool:
    limit = (a.shape[-1] + 1) * SUMS["Half", SUM] * np.abs(a).max() * np.abs(b).max()
    return bool(np.abs(found - wanted).max() <= limit)


@given(
    st.tuples(st.integers(1, 70), st.integers(1, 140), st.integers(1, 6)),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=tried(6, 120))
def test_both_schedules_give_the_same_bits(
    sizes: tuple[int, int, int], transposed: tuple[int, int], biased: bool, seed: int
) -> None:
    m, n, blocks = sizes
    k = 16 * blocks
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32) if biased else None
    model = gemm((m, n, k), transposed, bias, b)
    given_a = np.ascontiguousarray(a.T) if transposed[0] else a
    one, other, whole = both(model, {"a": given_a})
    assert np.array_equal(one, other) or not whole
    wanted = a.astype(np.float64) @ b + (0 if bias is None else bias)
    assert close(one, a, b, wanted)
    assert close(other, a, b, wanted)


@pytest.mark.parametrize(
    "shape", sampled([((2, 3, 9, 32),), ((5, 1, 30, 16),), ((3, 20, 2, 48),)], every=3, first=2)
)
def test_batches_of_vectors_made_on_the_device(shape: tuple[int, int, int, int]) -> None:
    # Vectors are singles, the matrix is halves. The longest axis of rows is spread over units.
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape).astype(np.float32)
    b = rng.standard_normal((shape[-1], 24)).astype(np.float32)
    model = model_of(
        [("Abs", ["x"], "a"), ("MatMul", ["a", "b"], "y")], {"x": shape}, ["y"], {"b": b}
    )
    one, other, _ = both(model, {"x": x})
    assert np.array_equal(one, other)
    assert close(one, x, b, np.abs(x).astype(np.float64) @ b)


def test_terms_that_do_not_fill_the_last_block_are_refused() -> None:
    """A shorter last slice of the terms has the layouts of the others, and no code before."""
    rng = np.random.default_rng(3)
    b = rng.standard_normal((32, 8)).astype(np.float32)
    model = gemm((40, 8, 32), (0, 0), None, b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "fits", lambda *_: False)
        graph = compiled(model, float_dtype="mixed")[0].graph
    (node,) = [n for n in graph.nodes if n.op == "Gemm"]
    layer = LAYERS[node.op]
    assert list(layer.refusals(node, graph, load_target("mini"))) == []
    shorter = {
        name: replace(graph.values[name], type=TensorType("float", shape))
        for name, shape in zip(node.inputs, ((40, 24), (24, 8)), strict=True)
    }
    refused = list(layer.refusals(node, graph.with_values(shorter), load_target("mini")))
    assert refused == ["terms that do not fill the blocks of a streamed product"]


def test_what_the_host_gives_products_is_packed_as_halves() -> None:
    rng = np.random.default_rng(1)
    b = rng.standard_normal((32, 8)).astype(np.float32)
    nodes = [("MatMul", ["x", "b"], "y"), ("Add", ["x", "x"], "z")]
    shapes = {"x": (4, 32)}
    alone = compiled(model_of(nodes[:1], shapes, ["y"], {"b": b}), float_dtype="mixed")[0].graph
    assert {alone.values[n].dtype for n in ("x", "b")} == {MNDtype.HALF}
    shared = compiled(model_of(nodes, shapes, ["y", "z"], {"b": b}), float_dtype="mixed")[0].graph
    assert shared.values["x"].dtype is MNDtype.FLOAT
    assert shared.values["b"].dtype is MNDtype.HALF
    single = compiled(model_of(nodes[:1], shapes, ["y"], {"b": b}))[0].graph
    assert {single.values[n].dtype for n in ("x", "b")} == {MNDtype.FLOAT}


def test_what_stays_on_the_device_keeps_its_singles(tmp_path: Path) -> None:
    # Registered values and input buffers keep their singles, even in `mixed`.
    torch.manual_seed(5)
    model, shared = torch.nn.Linear(32, 8), context("emu2:mini")
    before = model.weight.detach().clone()
    shared.registry.register("net", model)
    compiled_function = shared.compile(
        lambda d: {"y": model(d["x"])},
        {"x": torch.zeros(4, 32)},
        tmp_path / "out",
        options={"float_dtype": "mixed"},
    )
    x = torch.randn(4, 32)
    given_x = compiled_function.allocate_input_proxy()
    given_x["x"].load_from(x)
    y = compiled_function(given_x)["y"].cpu()
    assert torch.equal(given_x["x"].cpu(), x)
    shared.synchronize()
    assert torch.equal(model.weight.detach(), before)
    limit = 33 * SUMS["Half", SUM] * float(x.abs().max() * before.abs().max())
    assert (y - model(x)).abs().max() <= limit


def rounded(value: float) -> float:
    """Nearest half word, slowly: 10 significant bits, exponents -30 to 31."""
    if value == 0 or np.isinf(value):
        return value
    size = abs(Fraction(value))
    exponent = 0
    while size >= 2 ** (exponent + 1):
        exponent += 1
    while size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - 9)
    near = round(size / unit) * unit  # ties to even
    if near < Fraction(2) ** -30:
        return 0.0 * np.sign(value)
    return float(np.sign(value)) * (float("inf") if near >= 2**32 else float(near))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(300))
def test_halves_on_the_host(bits: int) -> None:
    value = np.array([bits], dtype=np.uint32).view(np.float32)
    if np.isnan(value[0]) or 0 < abs(value[0]) < 2.0**-126:
        return
    found = singles_of(halves_of(value))
    assert found[0] == np.float32(rounded(float(value[0])))
    assert np.signbit(found[0]) == np.signbit(value[0])
    same = [
        (found == bound).tolist() == (value == bound).tolist() for bound in (0, np.inf, -np.inf)
    ]
    assert fits_halves(value) == all(same)


def test_what_halves_can_hold() -> None:
    """A half cannot be NaN, and an array keeps only if every element does."""
    assert not fits_halves(np.array([1, np.nan]))
    assert not fits_halves(np.array([[1, 1e-12]]))
    assert fits_halves(np.array([0, -0.0, 1e-9, 4e9, -np.inf]))
    assert fits_halves(np.zeros(0))


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_a_route_brings_every_vector_of_a_share(machine: str) -> None:
    target = load_target(machine)
    for share in shares(target):
        found = route(share, target)
        units = share * target.counts["mab"]
        assert sorted(found.order) == [(u, c) for u in range(units) for c in range(target.cycles)]
        assert found.landed == len(found.order) * target.counts["pe"]


def steps(result: tuple[Any, dict[str, Any]]) -> int:
    return int(next(row["steps"] for row in result[1]["nodes"] if row["op"] == "MatMul"))


def test_a_large_product_streams_and_fills_the_mau() -> None:
    m, k, n = 128, 256, 128
    target = load_target("mini")
    model = model_of([("MatMul", ["a", "b"], "y")], {"a": (m, k), "b": (k, n)}, ["y"])
    result = compiled(model, float_dtype="mixed")
    assert streams(result[0])
    mabs = np.prod(target.pe_shape) // target.counts["pe"]
    peak = m * k * n / (mabs * 256 * target.cycles)  # a MAB multiplies 16 by 16 elements a cycle
    assert peak / steps(result) > 0.75


@pytest.mark.parametrize("share", shares(load_target("mncore2")))
def test_every_share_on_the_whole_chip(share: int) -> None:
    rng = np.random.default_rng(share)
    a, b = rng.standard_normal((210, 48)), rng.standard_normal((48, 500))
    a, b = a.astype(np.float32), b.astype(np.float32)
    bias = rng.standard_normal(500).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "shares", lambda _: (share,))
        found, other, _ = both(gemm((210, 500, 48), (0, 1), bias, b), {"a": a}, "mncore2")
    assert np.array_equal(found, other)
    assert close(found, a, b, a.astype(np.float64) @ b + bias)


def test_columns_on_groups_and_rows_on_the_l2bs_of_a_group() -> None:
    """The only product of a model may be spread so; then no operand lies in DRAM twice."""
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((300, 64)), rng.standard_normal((64, 700))
    a, b = a.astype(np.float32), b.astype(np.float32)
    plans = streamed._plans

    def outer(*given: Any) -> Any:
        for plan in plans(*given):
            l2bs = [digit.stride for digit in plan.columns if digit.level is Level.L2B]
            if min(l2bs, default=0) > 1:
                yield plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "_plans", outer)
        found, other, _ = both(gemm((300, 700, 64), (0, 0), None, b), {"a": a}, "mncore2")
    assert np.array_equal(found, other)
    assert close(found, a, b, a.astype(np.float64) @ b)


def test_a_short_last_slice_of_the_contracted_axis() -> None:
    """The layouts of the other slices were taken for it, whose terms do not fill a block."""
    shapes = {"a": (191, 196), "b": (196, 130)}
    rng = np.random.default_rng(2)
    inputs = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    result, _ = compiled(
        model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"]), float_dtype="mixed"
    )
    a, b = inputs.values()
    assert close(run(result, inputs)["y"], a, b, a.astype(np.float64) @ b)


def test_products_do_not_stream_without_room_for_two_collections() -> None:
    """The next vectors land while the MAU works on those that are there."""
    target = load_target("mncore2")
    for share in shares(target):
        assert streamed.landings(route(share, target), target)[0] > 1
    few = replace(route(8, target), landed=target.words("l1bm") // 2)
    assert streamed.landings(few, target)[0] < 2
    model = model_of([("MatMul", ["a", "b"], "y")], {"a": (121, 208), "b": (208, 125)}, ["y"])
    result = compiled(model, float_dtype="mixed")[0]
    (node,) = [one for one in result.graph.nodes if one.op == "MatMul"]
    assert streams(result)
    layer, mini = LAYERS[node.op], load_target("mini")
    assert list(layer.refusals(node, result.graph, mini)) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "landings", lambda *_: (1, 0))
        (why,) = layer.refusals(node, result.graph, mini)
        assert "no room" in why
        graph = compiled(model, float_dtype="mixed")[0].graph
        products = [one for one in graph.nodes if one.op == "MatMul"]
        assert all(isinstance(one.plan, Resident) for one in products)
