"""Equal parts that follow each other: they are found, and one plan stands for many."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import Shape, compiled, model_of, planning, random_inputs, run, tried, typed
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from pycompiler import layout_passes
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph.graph import MNGraph, MNNode
from pycompiler.graph.layout import Layout
from pycompiler.machine import load_target
from pycompiler.planners import equal_parts, layout
from pycompiler.planners.equal_parts import KEPT, repeats, shortened
from pycompiler.planners.layout import LayoutFacts, plan_layouts
from pycompiler.planners.location import plan_locations
from pycompiler.planners.lpz.known import Known, Weights
from pycompiler.planners.side import plan_sides
from pycompiler.planners.time_slices.passes import SlicedLayouts

#: What a block may do with the value before it: names of operators, and their second operand.
STEPS = ("weight", "bias", "mask", "start", "relu")


def blocks(
    steps: tuple[str, ...], count: int, width: int = 12, rows: int = 6, *, all_out: bool = False
) -> onnx.ModelProto:
    """Return equal blocks; `mask` is a value for all, `start` what a block begins with."""
    rng = np.random.default_rng(4)
    constants, nodes, last, ends = {}, [("Abs", ["m"], "mask")], "x", []
    for block in range(count):
        start = last
        for at, step in enumerate(steps):
            name = f"{step}{block}.{at}"
            if step == "relu":
                nodes.append(("Relu", [last], name))
            else:
                other = {"mask": "mask", "start": start}.get(step, f"c{block}.{at}")
                shape = (width, width) if step == "weight" else (width,)
                if other.startswith("c"):
                    constants[other] = 0.3 * rng.standard_normal(shape).astype(np.float32)
                nodes.append(("MatMul" if step == "weight" else "Add", [last, other], name))
            last = name
        ends.append(last)
    shapes: dict[str, Shape] = {"x": (rows, width), "m": (rows, width)}
    return model_of(nodes, shapes, ends if all_out else ends[-1:], constants)


def ways_back(count: int, width: int = 12, *, all_read: bool = False) -> onnx.ModelProto:
    """Return layers, the backward pass through them, and what it changes; from the last layer on.

    With ``all_read`` a sum of all changes is a result.
    """
    rng = np.random.default_rng(4)
    constants, nodes, back = {}, [], []
    for layer in range(count):
        last, product = f"v{layer}", f"p{layer}"
        nodes += [("MatMul", [last, f"w{layer}"], product), ("Relu", [product], f"v{layer + 1}")]
        for name in (f"w{layer}", f"u{layer}", f"b{layer}"):
            shape = (6, width) if name.startswith("b") else (width, width)
            constants[name] = 0.3 * rng.standard_normal(shape).astype(np.float32)
        slope, grad = f"s{layer}", f"g{layer}"
        back[:0] = [
            ("Mul", [f"g{layer + 1}", f"v{layer + 1}"], slope),
            ("MatMul", [slope, f"u{layer}"], grad),
            ("Mul", [grad, f"v{layer}"], f"c{layer}"),
            ("Add", [f"c{layer}", f"b{layer}"], f"n{layer}"),
        ]
    nodes += [("Abs", [f"v{count}"], f"g{count}"), *back]
    ends = [f"n{layer}" for layer in range(count)]
    if all_read:
        nodes += [
            ("Add", [ends[0] if n == 1 else f"a{n - 1}", ends[n]], f"a{n}") for n in range(1, count)
        ]
        ends = [f"a{count - 1}"]
    return model_of(nodes, {"v0": (6, width)}, ends, constants)


def check_short(whole: MNGraph, graph: MNGraph, stands: Mapping[str, str]) -> None:
    """Nodes stand behind what they read, and values have the types of what stands for them."""
    made = {*graph.inputs, *graph.constants}
    for node in graph.nodes:
        assert made.issuperset(node.inputs)
        made |= {*node.outputs}
    assert made.isdisjoint(stands.keys() - whole.constants.keys())
    for value, other in stands.items():
        assert other in made
        assert replace(whole.values[value], name="") == replace(whole.values[other], name="")


@pytest.fixture(autouse=True)
def also_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for parts in graphs of any size."""
    monkeypatch.setattr(equal_parts, "LEAST", 1)


def graph_of(model: onnx.ModelProto) -> MNGraph:
    target = load_target("mini")
    graph = plan_sides(import_onnx(model, target).graph, strict=True)
    return plan_locations(typed(graph, target, planning(float_dtype="float")))


def test_layers_are_found() -> None:
    for all_out in (False, True):
        whole = graph_of(blocks(("weight", "bias", "relu", "start"), 7, all_out=all_out))
        found = shortened(whole, {})
        assert found is not None
        graph, stands, times = found
        # The first block reads an input, and the last may make the only output. One more stays.
        assert len(whole.nodes) - len(graph.nodes) == 2 * (7 - 1 - (1 if all_out else 2))
        kept = graph.device_values()
        assert {*stands.values()} <= kept
        assert kept.isdisjoint(stands)
        assert kept | {*stands} == whole.device_values()
        assert sum(times.values()) == len(whole.nodes)
        assert max(times.values()) == len(whole.nodes) // 2 - len(graph.nodes) // 2 + 1


def test_drawn_blocks() -> None:
    """What stands for a node reads what stands for the node's operands."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(25))
    def case(seed: int) -> None:
        rng = random.Random(seed)
        steps = tuple(rng.choice(STEPS) for _ in range(rng.randint(2, 6)))
        count = rng.randint(2, 9)
        whole = graph_of(blocks((*steps, "weight"), count))
        found = shortened(whole, {})
        # What the first block reads and the last one gives may make them different.
        assert found is not None or count <= KEPT + 2
        if found is None:
            return
        graph, stands, _ = found
        check_short(whole, graph, stands)
        makers = graph.producers()
        for node in whole.nodes:
            if node.outputs[0] not in stands:
                continue
            like = makers[stands[node.outputs[0]]]
            assert (node.op, node.attributes) == (like.op, like.attributes)
            for name, other in zip(node.inputs, like.inputs, strict=True):
                own, its = stands.get(name, name), graph.values[other]
                first = other == "x" or makers.get(other) is None
                assert own == other or first or its.type == whole.values[name].type

    case()


def test_a_part_with_a_wanted_layout_differs() -> None:
    whole = graph_of(blocks(("weight", "relu"), 8))
    plain = shortened(whole, {})
    assert plain is not None
    assert "relu4.1" in plain[1]
    found = shortened(whole, {"relu4.1": Layout(())})
    assert found is not None
    assert "relu2.1" in found[1]
    assert "relu4.1" not in found[1]
    assert "relu4.1" not in found[1].values()


def test_moves_are_there_as_often_as_what_reads_them() -> None:
    """A node that the map does not know takes the larger count behind it."""

    def node(name: str, *inputs: str) -> MNNode:
        return MNNode(name, "Relu", inputs, (f"{name}.out",))

    nodes = (
        node("moved", "x"),
        node("layer", "moved.out"),
        node("behind", "layer.out"),
        node("head", "behind.out"),
        node("result", "head.out"),
    )
    graph = MNGraph("moves", "mini", outputs=(("y", "result.out"),), nodes=nodes)
    found = repeats(graph, {"layer": 12, "head": 1})
    assert found == {"moved": 12, "layer": 12, "behind": 1, "head": 1, "result": 1}
    slices = tuple(replace(one, name=f"{one.name}/1", origin=one.name) for one in nodes)
    assert repeats(replace(graph, nodes=slices), {"layer": 12})["layer/1"] == 12


@pytest.mark.parametrize("read", ["relu1.1", "relu3.1"])
def test_parts_that_others_read_stay(read: str) -> None:
    assert shortened(graph_of(blocks(("weight", "relu"), 6)), {}) is not None
    model = blocks(("weight", "relu"), 6)
    last = model.graph.output[0].name
    model.graph.node.append(onnx.helper.make_node("Sub", [last, read], ["behind"]))
    model.graph.output[0].name = "behind"
    assert shortened(graph_of(model), {}) is None


def test_two_parts_stand_for_none() -> None:
    assert shortened(graph_of(blocks(("weight", "relu"), KEPT)), {}) is None


def test_ways_back_belong_to_their_layers() -> None:
    for count in (6, 12):
        whole = graph_of(ways_back(count))
        found = shortened(whole, {})
        assert found is not None
        graph, stands, _ = found
        check_short(whole, graph, stands)
        for layer in range(count):
            # Layers at the ends have other neighbours.
            assert f"v{layer}" in stands or layer < 3 or layer > count - 2
            assert f"n{layer}" in stands or layer < 2 or layer > count - 3
        products = [node for node in graph.nodes if node.op == "MatMul"]
        assert len(products) <= 2 * (KEPT + 2)


def test_layers_stay_if_a_sum_reads_all_changes() -> None:
    assert shortened(graph_of(ways_back(7)), {}) is not None
    assert shortened(graph_of(ways_back(7, all_read=True)), {}) is None


def test_few_nodes_are_planned_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = graph_of(blocks(("weight", "relu"), 8))
    monkeypatch.setattr(equal_parts, "LEAST", 10)
    assert shortened(whole, {}) is not None
    monkeypatch.setattr(equal_parts, "LEAST", 11)
    assert shortened(whole, {}) is None


@pytest.mark.parametrize(
    "model",
    [blocks(("weight", "bias", "relu", "weight", "start"), 10, 24, 16), ways_back(14, 24)],
)
def test_parts_take_no_more_steps_and_less_work(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = load_target("mini")
    work, steps = [], []
    whole = graph_of(model)
    for _ in range(2):
        known, facts = Known(), LayoutFacts()
        plan_layouts(whole, target, facts=facts, known=known)
        work.append(known.work)
        steps.append(facts.estimates["lpz"].steps)
        monkeypatch.setattr(layout, "shortened", lambda *_: None)
    assert work[0] < work[1] / 2
    assert steps[0] <= 1.01 * steps[1]


def test_values_of_a_network_of_equal_parts() -> None:
    model = blocks(("weight", "bias", "relu", "start"), 5, 20, 9)
    inputs = random_inputs({"x": (9, 20), "m": (9, 20)}, 8)
    (wanted,) = ReferenceEvaluator(model).run(None, dict(inputs))
    made, _ = compiled(model, float_dtype="float")
    (found,) = run(made, inputs).values()
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_fastest_of_a_layers_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """All layers are like the one whose program has the fewest cycles."""
    monkeypatch.setattr(equal_parts, "LEAST", 1)
    model = blocks(("weight", "bias", "relu", "weight", "start"), 8, 72, 12)
    count, counted = layout_passes._cycles, list[int]()

    def noted(sliced: SlicedLayouts, **given: Any) -> int:
        counted.append(found := count(sliced, **given))
        return found

    monkeypatch.setattr(layout_passes, "_cycles", noted)
    weights = Weights(lines=8), Weights(far=0.1, moves=0.1), Weights(moves=4)
    found: list[tuple[int, int]] = []
    for some in (*((one,) for one in weights), weights):
        counted.clear()
        monkeypatch.setattr(layout_passes, "_WEIGHTS", some)
        _, report = compiled(model, float_dtype="mixed", compare_float=False)
        found.append((min(counted), report["cycles"]))
    assert len({*found}) == len(weights)
    # What is counted of one layer is about what the program of all of them takes.
    assert all(0.75 < counts / cycles < 1.33 for counts, cycles in found), found
    assert found.pop() == min(found)


def test_layers_are_cut_as_one_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_parts, "LEAST", 1)
    rows, width = 40, 72
    model = blocks(("weight", "bias", "relu", "start"), 6, width, rows)
    inputs = random_inputs({"x": (rows, width), "m": (rows, width)}, 8)
    (wanted,) = ReferenceEvaluator(model).run(None, dict(inputs))
    made, report = compiled(model, float_dtype="float", sram_budget=0.25)
    (found,) = run(made, inputs).values()
    assert max(node["slices"] for node in report["nodes"]) > 1
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
