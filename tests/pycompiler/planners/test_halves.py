"""Values between convolutions in half: which are stored as halves, and what comes out."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
import torch
from compiling import LONG, compiled, model_of, run, sampled, tried
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import helper

from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.layout import Layout, Level, SubAxis
from pycompiler.graph.text import parse_graph
from pycompiler.layers.half_conversions import (
    NARROW,
    WIDEN,
    narrowed,
    packed_layout,
    pairs_first,
    widened,
)
from pycompiler.machine import Target, load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.axis_classes import machine_digits
from pycompiler.planners.halves import word_axes
from pycompiler.tolerance import NETWORKS

#: The nodes of a small residual network: stem, pool, block, strided block, mean.
_KINDS = ("plain", "residual", "strided", "clip", "concat")
#: Kinds for `make test-long`: other tests run plain convolutions, and compile the residual.
_LONGER = _KINDS


def _network(
    rng: random.Random, kind: str, batch: int, size: int
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a network whose inner values are large enough for halves."""
    draw = np.random.default_rng(rng.randrange(2**32))
    constants: dict[str, np.ndarray] = {}
    nodes: list[tuple[str, list[str], str]] = []
    facts: dict[str, dict[str, object]] = {}

    def conv(source: str, result: str, given: int, made: int, side: int, stride: int = 1) -> None:
        weights = draw.standard_normal((made, given, side, side)) / np.sqrt(given * side * side)
        constants[f"{result}.w"] = weights.astype(np.float32)
        constants[f"{result}.b"] = draw.standard_normal(made).astype(np.float32) / 8
        nodes.append(("Conv", [source, f"{result}.w", f"{result}.b"], result))
        pads = [side // 2] * 4
        facts[result] = {"kernel_shape": [side, side], "pads": pads, "strides": [stride] * 2}

    wide = rng.choice([16, 32, 48])
    conv("x", "a", 16, wide, 3)
    nodes.append(("Relu", ["a"], "b"))
    if kind == "plain":
        conv("b", "c", wide, rng.choice([20, 32]), 3)
        nodes.append(("Identity", ["c"], "y"))
    elif kind == "residual":
        conv("b", "c", wide, wide, rng.choice([1, 3]))
        nodes.append(("Add", ["c", "b"], "d"))
        nodes.append(("Relu", ["d"], "e"))
        conv("e", "f", wide, 16, 1)
        # The mean wants singles, the convolution wants halves.
        nodes.append(("GlobalAveragePool", ["e"], "g"))
        nodes.append(("Add", ["f", "f"], "h"))
        nodes.append(("GlobalMaxPool", ["h"], "i"))
        nodes.append(("Concat", ["g", "i"], "y"))
        facts["y"] = {"axis": 1}
    elif kind == "strided":
        nodes.append(("MaxPool", ["b"], "c"))
        facts["c"] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        conv("c", "d", wide, 32, 1, stride=2)
        nodes.append(("Relu", ["d"], "e"))
        conv("e", "y", 32, 16, 3)
    elif kind == "clip":
        constants["low"], constants["high"] = np.float32(0), np.float32(6)
        nodes.append(("Clip", ["b", "low", "high"], "c"))
        conv("c", "y", wide, 32, 1)
    else:
        conv("b", "c", wide, 32, 1)
        nodes.append(("Concat", ["b", "c"], "d"))
        facts["d"] = {"axis": 1}
        conv("d", "y", wide + 32, 16, 3)
    model = model_of([], {"x": (batch, 16, size, size)}, ["y"], constants)
    made = [
        helper.make_node(op, reads, [out], name=out, **facts.get(out, {}))
        for op, reads, out in nodes
    ]
    model.graph.node.extend(made)
    model = onnx.shape_inference.infer_shapes(model)
    shape = (
        HostSession(model, "shape")
        .run({"x": np.zeros((batch, 16, size, size), np.float32)})["y"]
        .shape
    )
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)
    )
    return model, {"x": draw.standard_normal((batch, 16, size, size)).astype(np.float32)}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.long if k in _LONGER else ()) for k in _KINDS]
)
def test_networks_against_onnxruntime(kind: str) -> None:
    """Drawn sizes, also odd ones; the error is that of a network in `mixed`."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(1), phases=[Phase.explicit, Phase.generate], deadline=None)
    def case(seed: int) -> None:
        rng = random.Random(seed)
        batch, size = rng.choice([(16, 32), (13, 36), (16, 33)])
        model, inputs = _network(rng, kind, batch, size)
        result, report = compiled(model, "mncore2", float_dtype="mixed", scheduler="spill_opt")
        assert report["host_fallback"] == []
        halves = [
            node
            for node in result.graph.nodes
            if node.op == "Conv" and result.graph.values[node.outputs[0]].dtype is MNDtype.HALF
        ]
        assert halves, "no convolution writes halves"
        found = run(result, inputs, "mncore2")["y"]
        wanted = HostSession(model, "model").run(inputs)["y"]
        error = np.abs(found - wanted).max() / np.abs(wanted).max()
        assert error <= NETWORKS["mixed"], f"seed {seed}"

    case()


def test_sums_of_parts_are_singles() -> None:
    """Weights longer than LM1 are taken in parts; their sum is rounded in a step of its own."""
    rng = np.random.default_rng(3)
    target = load_target("mncore2")
    channels = 16 * -(-target.words("lm1") // (9 * 16))
    x = rng.standard_normal((16, 16, 32, 32)).astype(np.float32)
    constants = {
        "w0": rng.standard_normal((channels, 16, 1, 1)).astype(np.float32) / 4,
        "w1": (rng.standard_normal((16, channels, 3, 3)) / 40).astype(np.float32),
        "w2": rng.standard_normal((32, 16, 1, 1)).astype(np.float32) / 4,
    }
    model = model_of([], {"x": x.shape}, ["y"], constants)
    for read, weights, made, pad in (("x", "w0", "a", 0), ("a", "w1", "b", 1), ("b", "w2", "y", 0)):
        model.graph.node.append(
            helper.make_node("Conv", [read, weights], [made], name=made, pads=[pad] * 4)
        )
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (16, 32, 32, 32))
    )
    result, _ = compiled(model, "mncore2", float_dtype="mixed", scheduler="spill_opt")
    assert NARROW in {node.op for node in result.graph.nodes}
    axes = word_axes(result.graph)
    narrow = next(node for node in result.graph.nodes if node.op == NARROW)
    assert axes[narrow.outputs[0]] == 1
    found = run(result, {"x": x}, "mncore2")["y"]
    a = torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(constants["w0"]))
    b = torch.nn.functional.conv2d(a, torch.from_numpy(constants["w1"]), padding=1)
    wanted = torch.nn.functional.conv2d(b, torch.from_numpy(constants["w2"])).numpy()
    assert np.abs(found - wanted).max() <= NETWORKS["mixed"] * np.abs(wanted).max()


def test_outputs_overrides_and_float_keep_singles() -> None:
    """An output keeps its bits, an override is followed, and `float` has no halves."""
    model, _ = _network(random.Random(1), "residual", 16, 32)
    for mode in ("float", "mixed") if LONG else ("mixed",):
        result, _ = compiled(model, "mncore2", float_dtype=mode)
        values = result.graph.values
        ops = {node.op for node in result.graph.nodes}
        assert values["y"].dtype is MNDtype.FLOAT
        assert (WIDEN in ops) == (mode == "mixed")
        assert NARROW not in ops
    overrides = {"a.Conv": {"dtype": "Float"}}
    result, _ = compiled(model, "mncore2", float_dtype="mixed", overrides=overrides)
    made = [
        result.graph.values[name]
        for node in result.graph.nodes
        for name in node.outputs
        if name.startswith("a.Conv") and node.op == "Conv"
    ]
    assert made
    assert {value.dtype for value in made} == {MNDtype.FLOAT}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_layouts_of_conversions(seed: int) -> None:
    """Widening and narrowing are inverse, and each half meets the single at twice its address."""
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 3, 4, 7, 8, 16, 20]) for _ in range(rng.randint(2, 4)))
    axis = rng.randrange(len(shape))
    layout = packed_layout(shape, axis, load_target(rng.choice(["mini", "mncore2"])))
    wide = widened(layout, axis)
    assert wide is not None, f"seed {seed}"
    assert narrowed(wide, axis) == layout, f"seed {seed}"
    for other in set(range(len(shape))) - {axis}:
        assert widened(layout, other) is None


def _singles(rng: random.Random, axis: int, low: Sequence[SubAxis], target: Target) -> Layout:
    """Draw a layout of three axes; ``axis`` ends with ``low``, addresses are in any order."""
    units = [SubAxis(d.size, d.level, d.stride) for d in machine_digits(target, 2)]
    units = [unit for unit in units if unit.level is not Level.W and unit not in low]
    axes: list[list[SubAxis]] = [[] for _ in range(3)]
    for unit in rng.sample(units, 4):
        axes[rng.randrange(3)].append(unit)
    for digits in axes:
        digits.insert(rng.randint(0, len(digits)), SubAxis(rng.choice([1, 2, 3, 4])))
    axes[axis] += low
    places = [(n, at) for n, own in enumerate(axes) for at in range(len(own))]
    stride = 1
    for number, at in rng.sample(places, len(places)):
        size, level, _ = axes[number][at]
        if level is Level.ADDR:
            axes[number][at] = SubAxis(size, level, stride)
            stride *= size * rng.choice([1, 1, 1, 3])
    return Layout(tuple(map(tuple, axes)))


#: The last digits of an axis, and whether two long words along it can be neighbours.
LOW = [
    *(([SubAxis(size), SubAxis(2, Level.W)], size % 2 == 0) for size in (2, 3, 4, 6)),
    ([SubAxis(4), SubAxis(2, Level.MAB), SubAxis(2, Level.W)], False),
    ([SubAxis(4), SubAxis(2, Level.MAB)], False),
    ([SubAxis(4)], False),
]


@pytest.mark.parametrize(("low", "pairs"), LOW)
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(30), deadline=None)
def test_addresses_in_the_order_of_pairs(low: Sequence[SubAxis], pairs: bool, seed: int) -> None:
    """The units stay, the addresses become dense, and the result can be narrowed."""
    rng = random.Random(seed)
    axis = rng.randrange(3)
    layout = _singles(rng, axis, low, load_target(rng.choice(["mini", "mncore2"])))
    found = pairs_first(layout, axis)
    assert (found is not None) == pairs
    if found is None:
        return
    assert narrowed(found, axis) is not None
    assert found.padded_shape == layout.padded_shape
    indices = np.indices(layout.padded_shape).reshape(3, -1)
    before, after = (one.coordinates(*indices) for one in (layout, found))
    for level in {*before, *after} - {Level.ADDR}:
        assert np.array_equal(before[level], after[level])
    old, new = (one[Level.ADDR].tolist() for one in (before, after))
    words = layout.address_words
    assert len(set(old)) == len(set(zip(old, new, strict=True))) == words
    assert set(new) == set(range(words))


def test_a_bias_is_halves_where_its_result_is() -> None:
    """Test it for an Add of its own, which large weights get."""
    rng = np.random.default_rng(5)
    constants = {
        "w": (rng.standard_normal((64, 64, 3, 3)) / 24).astype(np.float32),
        "b": rng.standard_normal(64).astype(np.float32),
        "u": (rng.standard_normal((64, 64, 1, 1)) / 8).astype(np.float32),
    }
    nodes = [("Conv", ["x", "w", "b"], "c"), ("Relu", ["c"], "r"), ("Conv", ["r", "u"], "y")]
    model = model_of(nodes, {"x": (16, 64, 32, 32)}, ["y"], constants)
    result, _ = compiled(model, "mncore2", float_dtype="mixed", scheduler="spill_opt")
    graph = parse_graph(result.dumps["layout.dtype.txt"])
    (add,) = (node for node in graph.nodes if node.op == "Add")
    assert {graph.values[name].dtype for name in (*add.inputs, *add.outputs)} == {MNDtype.HALF}
    inputs = {"x": rng.standard_normal((16, 64, 32, 32)).astype(np.float32)}
    wanted = HostSession(model, "model").run(inputs)["y"]
    found = run(result, inputs, "mncore2")["y"]
    assert np.abs(found - wanted).max() <= NETWORKS["mixed"] * np.abs(wanted).max()


#: Operators between two convolutions with their constants, the scale of the first convolution's
#: weights, and whether the values between the convolutions are halves.
CONSTANTS = {
    "flushed": ([("Mul", "tiny"), ("Mul", "huge")], 1.0, False),
    "too large": ([("Mul", "huge")], 1e-6, False),
    "one channel flushed": ([("Mul", "one tiny"), ("Mul", "one huge")], 1.0, False),
    "epsilon": ([("Mul", "zero"), ("Add", "tiny"), ("Mul", "huge")], 1.0, False),
    "largest single": ([("Min", "largest"), ("Max", "lowest")], 1.0, False),
    "no number": ([("Min", "nan")], 1.0, False),
    "infinite": ([("Min", "infinite")], 1.0, True),
    "zero": ([("Max", "zero")], 1.0, True),
    "in range": ([("Mul", "small"), ("Add", "bias")], 1.0, True),
}


@pytest.mark.parametrize("kind", sampled([*CONSTANTS]))
def test_constants_that_halves_cannot_hold_stay_singles(kind: str) -> None:
    """A constant that becomes infinite or zero as a half would spoil all that reads it."""
    steps, scale, halves = CONSTANTS[kind]
    rng = np.random.default_rng(7)
    channels = (1, 32, 1, 1)
    numbers = {
        "tiny": 1e-12,
        "huge": 1e12,
        "small": 1e-6,
        "zero": 0.0,
        "largest": np.finfo(np.float32).max,
        "lowest": np.finfo(np.float32).min,
        "nan": np.nan,
        "infinite": np.inf,
    }
    data = {name: np.array(number, np.float32) for name, number in numbers.items()}
    data["bias"] = rng.standard_normal(channels).astype(np.float32)
    data["one tiny"], data["one huge"] = (np.ones(channels, np.float32) for _ in range(2))
    data["one tiny"][0, 5], data["one huge"][0, 5] = data["tiny"], data["huge"]
    constants = {name: data[name] for _, name in steps}
    constants["w"] = (rng.standard_normal((32, 16, 1, 1)) * scale / 4).astype(np.float32)
    constants["u"] = (rng.standard_normal((16, 32, 1, 1)) / 6).astype(np.float32)
    nodes = [("Conv", ["x", "w"], "v0")]
    nodes += [(op, [f"v{n}", name], f"v{n + 1}") for n, (op, name) in enumerate(steps)]
    nodes.append(("Conv", [f"v{len(steps)}", "u"], "y"))
    model = model_of(nodes, {"x": (1, 16, 32, 32)}, ["y"], constants)
    result, _ = compiled(model, float_dtype="mixed", fuse_elementwise=False)
    graph = parse_graph(result.dumps["layout.dtype.txt"])
    read = {name for node in graph.nodes for name in node.inputs} & set(graph.constants)
    assert {graph.values[name].dtype for name in read if name not in "wu"} == {
        MNDtype.HALF if halves else MNDtype.FLOAT
    }
    if kind == "no number":
        return
    inputs = {"x": rng.standard_normal((1, 16, 32, 32)).astype(np.float32)}
    wanted = HostSession(model, "model").run(inputs)["y"]
    found = run(result, inputs)["y"]
    assert np.abs(found - wanted).max() <= NETWORKS["mixed"] * np.abs(wanted).max()


def test_a_constant_that_is_an_output_or_has_an_override_stays_single() -> None:
    """Such values keep their bits, whatever else reads them."""
    rng = np.random.default_rng(9)
    constants = {
        "w": (rng.standard_normal((32, 16, 1, 1)) / 4).astype(np.float32),
        "b": np.array(1 / 3, np.float32),
        "u": (rng.standard_normal((16, 32, 1, 1)) / 6).astype(np.float32),
    }
    nodes = [("Conv", ["x", "w"], "c"), ("Add", ["c", "b"], "d"), ("Conv", ["d", "u"], "y")]
    for outputs, overrides in ((["y", "b"], {}), (["y"], {"b": {"location": "DRAM"}})):
        model = model_of(nodes, {"x": (1, 16, 32, 32)}, ["y"], constants)
        if "b" in outputs:
            model.graph.output.append(
                helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [])
            )
        result, _ = compiled(model, float_dtype="mixed", overrides=overrides)
        assert result.graph.values["b"].dtype is MNDtype.FLOAT
        inputs = {"x": rng.standard_normal((1, 16, 32, 32)).astype(np.float32)}
        found = run(result, inputs)
        assert "b" not in outputs or found["b"] == constants["b"]
