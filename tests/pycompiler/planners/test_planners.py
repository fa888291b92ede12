"""Planners: sides and segments, layouts that agree, addresses that do not collide."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import onnx
import pytest
from compiling import Node, Shape, compiled, model_of, planning, random_inputs, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph import Layout, Level, Location, MNDtype, MNGraph, Side, Stage, SubAxis
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.graph.verify import layout_ranges
from pycompiler.layers.base import misfits
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target, load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.axis_classes import machine_digits
from pycompiler.planners.dtype import plan_dtypes
from pycompiler.planners.layout import plan_layouts
from pycompiler.planners.location import plan_locations
from pycompiler.planners.side import plan_sides
from pycompiler.scheduler.address_planner import plan_addresses
from pycompiler.scheduler.best_fit import Block, Chains


def laid_out(
    nodes: list[Node], inputs: dict[str, Shape], target: Target, planner: str = "lpz"
) -> MNGraph:
    outputs = [name for _, _, name in nodes]
    graph = import_onnx(model_of(nodes, inputs, outputs), target).graph
    graph = plan_dtypes(plan_sides(graph, strict=True), target, planning(float_dtype="float"))
    return plan_layouts(plan_locations(graph), target, planner=planner).resolved(target)


def broadcast(one: Shape, other: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


@st.composite
def elementwise(draw: st.DrawFn) -> tuple[list[Node], dict[str, Shape]]:
    """Draw a graph of broadcasting operators; all results are outputs.

    Every axis position has two sizes besides 1, so that axes of different sizes are combined.
    """
    rank = draw(st.integers(0, 3))
    sizes = [(1, *draw(st.permutations([2, 3, 5, 8, 17, 40]))[:2]) for _ in range(rank)]
    inputs: dict[str, Shape] = {}
    for index in range(draw(st.integers(1, 5))):
        shape = tuple(draw(st.sampled_from(choices)) for choices in sizes)
        inputs[f"x{index}"] = shape[draw(st.integers(0, rank)) if draw(st.booleans()) else 0 :]
    shapes = dict(inputs)
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 6))):
        one = draw(st.sampled_from(list(shapes)))
        fitting = {n: broadcast(shapes[one], s) for n, s in shapes.items()}
        other = draw(st.sampled_from([n for n, s in fitting.items() if s is not None]))
        op = draw(st.sampled_from(["Add", "Sub", "Mul", "Relu"]))
        reads = [one] if op == "Relu" else [one, other]
        nodes.append((op, reads, f"v{index}"))
        shapes[f"v{index}"] = (shapes[one] if op == "Relu" else fitting[other]) or ()
    return nodes, inputs


@given(elementwise(), st.sampled_from(["mncore2", "mini"]))
@settings(max_examples=tried(40, 1500))
def test_layouts_agree_in_every_operator(
    case: tuple[list[Node], dict[str, Shape]], machine: str
) -> None:
    target = load_target(machine)
    graph = laid_out(*case, target)
    for node in graph.nodes:
        whole = graph.values[node.outputs[0]].layout
        assert whole is not None
        for name, axes in LAYERS[node.op].frame(node, graph).values:
            assert misfits(whole, graph.values[name].layout, axes, target) is None
    for value in (graph.values[name] for name in graph.device_values()):
        assert value.layout is not None
        value.layout.check(value.shape, value.dtype, layout_ranges(target), 1 << 40)
        waste = prod(value.layout.padded_shape) / max(1, prod(value.shape))
        assert waste <= 2 ** (len(value.shape) + 4)


def test_a_class_that_meets_others_in_turn(target: Target) -> None:
    # Rows get the digits that 63 columns cannot use. 40 columns could, but have the same rows.
    nodes = [("Mul", ["x", "y"], "a"), ("Add", ["x", "z"], "b")]
    inputs = {"x": (64, 1), "y": (1, 63), "z": (1, 40)}
    graph = laid_out(nodes, inputs, target, "first_arrival")
    rows, columns = graph.values["b"].layout.axes
    assert SubAxis(2, Level.W) in rows
    assert not any(sub.level is Level.W for sub in columns)
    graph.values["b"].layout.check((64, 40), MNDtype.FLOAT, layout_ranges(target), 1 << 40)


@given(elementwise(), st.integers(0, 1000))
@settings(max_examples=tried(20, 400))
def test_random_graphs_compute_what_the_host_computes(
    case: tuple[list[Node], dict[str, Shape]], seed: int
) -> None:
    nodes, inputs = case
    model = model_of(nodes, inputs, [name for _, _, name in nodes])
    result, report = compiled(model)
    assert report["host_fallback"] == []
    given_inputs = random_inputs(inputs, seed, scale=1.0)
    found = run(result, given_inputs)
    wanted = HostSession(model, "model").run(given_inputs)
    for name, array in wanted.items():
        # Small results may come from cancellation, so errors scale with the largest value.
        scale = max(float(np.abs(a).max(initial=0)) for a in wanted.values())
        assert np.allclose(found[name], array, rtol=2.0**-20, atol=scale * 2.0**-20)


def units(layout: Layout) -> int:
    return prod(s.size for s in layout.subaxes if s.level in UNIT_LEVELS)


@pytest.mark.parametrize("shape", [(512, 1024), (1 << 19,), (2, 3, 16, 64, 32), (65536, 3)])
def test_large_tensors_use_every_pe(shape: tuple[int, ...], target: Target) -> None:
    graph = laid_out([("Relu", ["x"], "y")], {"x": shape}, target)
    layout = graph.values["y"].layout
    pes = prod(target.pe_shape)
    assert units(layout) == pes
    assert layout.num_lw(target.cycles) == -(-prod(shape) // (2 * pes * 4)) * 4


def test_small_tensors_stay_together() -> None:
    graph = laid_out([("Relu", ["x"], "y")], {"x": (3, 4)}, load_target("mncore2"))
    assert str(graph.values["y"].layout) == "((3:1), (2_PE:1, 2_W:1); B@[2_PE:2,MAB,L1B,L2B])"
    assert graph.values["y"].num_lw == 4


def test_a_repeated_operand_is_copied_where_the_other_spreads() -> None:
    inputs = {"x": (64, 1024), "b": (1024,)}
    target = load_target("mncore2")
    graph = laid_out([("Add", ["x", "b"], "y")], inputs, target, "first_arrival")
    bias = graph.values["b"].layout
    assert bias.on(Level.L2B) == ()
    assert Level.L2B in {entry.level for entry in bias.broadcast}
    assert bias.num_lw(4) == 4


def test_digits_are_the_prime_factors_of_the_counts(target: Target) -> None:
    digits = machine_digits(target, 2)
    for level in UNIT_LEVELS:
        own = [digit for digit in digits if digit.level is level]
        assert prod(digit.size for digit in own) == target.level_range[level.value]
        assert [d.stride for d in own] == [prod(e.size for e in own[:i]) for i in range(len(own))]


# -- sides -----------------------------------------------------------------------------------


def test_host_and_device_alternate_as_seldom_as_possible() -> None:
    nodes = [
        ("Add", ["x", "x"], "a"),
        ("Sin", ["a"], "s"),
        ("Mul", ["x", "x"], "b"),
        ("Cos", ["b"], "c"),
        ("Add", ["s", "c"], "d"),
    ]
    model = model_of(nodes, {"x": (4, 4)}, ["d"])
    with pytest.warns(HostFallbackWarning):
        result, _ = compiled(model)
    sides = {node.segment: node.side for node in result.graph.nodes}
    assert sides == {0: Side.DEVICE, 1: Side.HOST, 2: Side.DEVICE}


def test_reasons_name_operator_or_dtype() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (int8[1, 1, 8] x) => (int8[1, 1, 7] y) {
            y = MaxPool <kernel_shape = [2]> (x)
        }"""
    )
    graph = plan_sides(import_onnx(model, load_target("mini")).graph, strict=False)
    assert graph.nodes[0].reason == "MaxPool computes in Double, Float on the device, not in Int"
    model = model_of([("Sin", ["x"], "y")], {"x": (4,)}, ["y"], elem=TensorProto.DOUBLE)
    graph = plan_sides(import_onnx(model, load_target("mini")).graph, strict=False)
    assert graph.nodes[0].reason == "no layer for Sin"


def test_attributes_no_layer_knows_go_to_the_host() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 24]> g (float[2, 3] a) => (int32[2, 3] c) {
            c = Cast <to = 6, round_mode = "up"> (a)
        }"""
    )
    graph = plan_sides(import_onnx(model, load_target("mini")).graph, strict=False)
    assert dict(graph.nodes[0].attributes) == {"to": 6, "round_mode": "up"}
    assert graph.nodes[0].reason == "Cast has no attribute `round_mode` on the device"


def test_broadcasting_of_old_opsets_runs_on_the_device() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 3, opset_import: ["": 6]> g (float[2, 3] a, float[2] b) => (float[2, 3] c) {
            c = Add <axis = 0, broadcast = 1> (a, b)
        }"""
    )
    graph = plan_sides(import_onnx(model, load_target("mini")).graph, strict=True)
    assert [node.op for node in graph.nodes] == ["Unsqueeze", "Add"]


def test_strict_refuses_the_host() -> None:
    model = model_of([("Sin", ["x"], "y")], {"x": (4,)}, ["y"])
    with pytest.raises(PycompilerError) as caught:
        compiled(model, strict=True)
    assert caught.value.code == "P0303"


def test_values_of_the_host_have_no_device_place() -> None:
    model = model_of([("Sin", ["x"], "s"), ("Relu", ["s"], "r")], {"x": (4,), "u": (2,)}, ["r"])
    with pytest.warns(HostFallbackWarning):
        result, _ = compiled(model)
    values = result.graph.values
    assert values["x"].location is Location.HOST
    assert values["u"].location is Location.HOST
    assert values["s"].location is Location.DRAM


# -- addresses -------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20), st.integers(0, 10))))
def test_packing_keeps_living_blocks_apart(rows: list[tuple[int, int, int]]) -> None:
    blocks = [Block(f"b{i}", w, s, s + n) for i, (w, s, n) in enumerate(rows)]
    chains = Chains(blocks)
    found, needed = chains.packed(chains.starts)
    where = chains.of_blocks(found)
    assert set(where) == {block.name for block in blocks}
    for i, one in enumerate(blocks):
        assert 0 <= where[one.name] <= needed - one.words
        for other in blocks[:i]:
            if one.start <= other.stop and other.start <= one.stop:
                low, high = sorted((one, other), key=lambda b: where[b.name])
                assert where[low.name] + low.words <= where[high.name]


def test_intermediate_results_share_dram() -> None:
    nodes = [("Relu", ["x"], "v0")] + [("Neg", [f"v{i}"], f"v{i + 1}") for i in range(6)]
    model = model_of(nodes, {"x": (512, 64)}, ["v6"])
    apart = {"scheduler": "always_from_dram", "fuse_elementwise": False}
    result, _ = compiled(model, "mncore2", **apart)
    image = result.app.values["x"].words
    assert result.app.dram_words == 3 * image  # input, output, one inner value at a time


# -- too large -------------------------------------------------------------------------------


def test_a_tensor_whose_share_exceeds_lm() -> None:
    target = load_target("mini")
    elements = 2 * prod(target.pe_shape) * target.words("lm0")
    model = model_of([("Relu", ["x"], "y")], {"x": (elements,)}, ["y"])
    whole, _ = compiled(model, time_slice="fit")
    assert whole.graph.values["x"].num_lw == target.words("lm0")
    with pytest.raises(PycompilerError) as caught:
        compiled(model_of([("Relu", ["x"], "y")], {"x": (elements + 1,)}, ["y"]), time_slice="off")
    problem = caught.value
    assert problem.code == "P0301"
    assert problem.fields["value"] == "x"
    assert problem.fields["capacity"] == target.words("lm0")
    assert "split the tensor" in problem.help


def test_a_result_may_fill_an_lm_with_smaller_operands() -> None:
    target = load_target("mini")
    columns, words = 2 * prod(target.pe_shape), target.words("lm0")
    shapes = [((words, 1), (1, columns)), ((words // 16, 1, columns), (1, 16, 1))]
    for x, y in shapes:
        model = model_of([("Sub", ["x", "y"], "z")], {"x": x, "y": y}, ["z"])
        result, _ = compiled(model, time_slice="fit")
        assert result.graph.values["z"].num_lw == words


def test_values_that_do_not_fit_together() -> None:
    target = load_target("mini")
    size = 2 * prod(target.pe_shape) * target.words("lm0")
    model = model_of([("Add", ["x", "y"], "z")], {"x": (size,), "y": (size,)}, ["z"])
    result, _ = compiled(model, time_slice="fit")
    graph = replace(result.graph, stage=Stage.SCHEDULED)
    moved = {"y.lm1": replace(graph.values["y.lm1"], location=Location.LM0)}
    with pytest.raises(PycompilerError) as caught:
        plan_addresses(graph.with_values(moved), target)
    assert caught.value.code == "P0304"
    assert "Add" in caught.value.message


def test_more_than_dram() -> None:
    target = load_target("mini")
    blocks = [Block(f"b{i}", target.words("dram") // 2 + 1, 0, 0) for i in range(2)]
    chains = Chains(blocks)
    assert chains.packed(chains.starts)[1] > target.words("dram")
    size = 2 * prod(target.pe_shape) * target.words("lm0")
    count = target.words("dram") // (size // 2) + 1
    names = [f"x{i}" for i in range(count)]
    nodes: list[Node] = [("Add", ["x0", "x1"], "v1")]
    nodes += [("Add", [f"v{i - 1}", f"x{i}"], f"v{i}") for i in range(2, count)]
    model = model_of(nodes, {name: (size,) for name in names}, [nodes[-1][2]])
    with pytest.raises(PycompilerError) as caught:
        compiled(model)
    assert caught.value.code == "P0302"
    assert caught.value.fields["memory"] == "dram"
