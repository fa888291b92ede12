"""Depthwise convolutions: a layer of their own, against torch and onnxruntime."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from compiling import compiled, run, tried
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from one_node import one_node
from onnx import TensorProto, helper, numpy_helper
from operator_convolutions import conv
from operator_rows import HOST_ERROR, REAL, Row

from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.half import halves_of, singles_of
from pycompiler.layers.switch.layer import SWITCH
from pycompiler.machine import load_target
from pycompiler.pfvm.device_functions import TILES
from pycompiler.pfvm.session import HostSession
from pycompiler.pfvm.windows import DEPTHWISE
from pycompiler.tolerance import SUM, SUMS

F = torch.nn.functional


def single_channels(rng: random.Random, halves: bool) -> tuple[int, int, int]:
    """Groups of one channel, which makes one or two results."""
    return rng.choice([2, 3, 5, 8, 17]), 1, rng.choice([1, 1, 2])


ROW = Row("Conv", "Float", REAL, conv(halves=False, channels=single_channels), SUM, range(3, 6))


@pytest.mark.parametrize(
    ("mode", "machine", "examples"), [("float", "mini", 8), ("mixed", "mini", 4), ("mixed", "", 2)]
)
def test_against_torch_and_onnxruntime(mode: str, machine: str, examples: int) -> None:
    """Strides, dilations, padding of all kinds, one to three axes, bias; weights may be inputs."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples), phases=[Phase.explicit, Phase.generate])
    def case(seed: int) -> None:
        sample = ROW.sample(random.Random(seed))
        model, name = ROW.model(sample), machine or "mncore2"
        result, report = compiled(model, name, float_dtype=mode)
        assert report["host_fallback"] == []
        assert any(node.op == DEPTHWISE for node in result.graph.nodes)
        found = run(result, sample.given, name)["y0"]
        wanted = sample.wanted()[0]
        limit = sample.terms * sample.scale * SUMS["Half" if mode == "mixed" else "Float", SUM]
        other = HostSession(model, "model").run(sample.given)["y0"]
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() <= limit
        assert np.abs(found - other).max() <= HOST_ERROR * limit

    case()


def _rounded(array: np.ndarray) -> np.ndarray:
    return singles_of(halves_of(array)).astype(np.float64)


def test_halves() -> None:
    """In `mixed` factors are halves, their sums singles, and a result is rounded once."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(5), phases=[Phase.explicit, Phase.generate])
    def case(seed: int) -> None:
        rng, made = random.Random(seed), np.random.default_rng(seed)
        channels, taps = rng.choice([4, 8, 12, 20]), (rng.randint(1, 5), rng.randint(2, 7))
        size = tuple(rng.randint(tap, 19) for tap in taps)
        pads, stride = [rng.randint(0, tap - 1) for tap in taps], rng.choice([1, 1, 2])
        x = made.standard_normal((rng.randint(1, 3), channels, *size)).astype(np.float32)
        w = made.standard_normal((channels, 1, *taps)).astype(np.float32)
        b = made.standard_normal(channels).astype(np.float32)
        constants = {"w": w, "b": b} if rng.random() < 0.7 else {"w": w}
        facts = {"pads": [*pads, *pads], "strides": [stride, stride]}
        model = one_node("Conv", {"x": x.shape}, constants, group=channels, **facts)
        result, _ = compiled(model, float_dtype="mixed")
        (node,) = (node for node in result.graph.nodes if node.op == DEPTHWISE)
        if x.size >= 2 * 64:  # a long word for each PE of `mini`
            assert result.graph.values[node.outputs[0]].dtype is MNDtype.HALF
        bias = torch.from_numpy(b.astype(np.float64)) if "b" in constants else None
        operands = (torch.from_numpy(_rounded(one)) for one in (x, w))
        wanted = F.conv2d(*operands, bias, stride, pads, groups=channels).numpy()
        found = run(result, {"x": x})["y0"]
        limit = np.abs(wanted) * 2.0**-10 + 2.0**-18 * np.abs(x).max() * np.abs(w).max()
        assert found.shape == wanted.shape
        assert (np.abs(found - wanted) <= limit).all()

    case()


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    # more taps than registers of a register file
    "long": ((2, 3, 440), (3, 1, 400), {}),
    "long with padding": ((1, 3, 40), (3, 1, 301), {"pads": [150, 150]}),
    # results that read nothing but padding
    "far padding": ((1, 2, 3, 4), (2, 1, 2, 2), {"pads": [2, 3, 3, 2]}),
    "one tap": ((2, 4, 5, 6), (4, 1, 1, 1), {"strides": [2, 3]}),
    "one tap on padding": ((2, 4, 3, 3), (4, 1, 1, 1), {"pads": [1, 0, 1, 2]}),
    "squares": ((2, 4, 9, 9), (4, 1, 7, 7), {"pads": [3, 3, 3, 3]}),
    "repeated": ((2, 4, 6, 6), (12, 1, 3, 3), {"pads": [1, 1, 1, 1]}),
}


@pytest.mark.parametrize(
    ("case", "biased"),
    [
        pytest.param(case, biased, marks=() if number % 2 == biased else pytest.mark.long)
        for number, case in enumerate(CASES)
        for biased in (False, True)
    ],
)
def test_forms(case: str, biased: bool) -> None:
    shape, weights, facts = CASES[case]
    made = np.random.default_rng(1)
    constants = {"w": made.standard_normal(weights).astype(np.float32)}
    if biased:
        constants["b"] = made.standard_normal(weights[0]).astype(np.float32)
    x = made.standard_normal(shape).astype(np.float32)
    model = one_node("Conv", {"x": shape}, constants, group=shape[1], **facts)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    assert any(node.op == DEPTHWISE for node in result.graph.nodes)
    found = run(result, {"x": x})["y0"]
    wanted = HostSession(model, "model").run({"x": x})["y0"]
    taps = int(np.prod(weights[2:])) + 1
    limit = HOST_ERROR * taps * 2.0**-20 * max(np.abs(x).max() * np.abs(constants["w"]).max(), 4)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= limit


def test_steps_of_a_picture_that_fits() -> None:
    """Nothing is copied: 9 steps for a vector of results that read 9 taps, fewer at the edges."""
    w = np.ones((64, 1, 3, 3), dtype=np.float32)
    model = one_node("Conv", {"x": (128, 64, 16, 16)}, {"w": w}, group=64, pads=[1, 1, 1, 1])
    _, report = compiled(model, "mncore2")
    assert {node["op"] for node in report["nodes"]} <= {
        DEPTHWISE,
        "MNCoreDownload",
        "MNCoreUpload",
        "MNCoreLayoutSwitch",
    }
    steps = sum(node["steps"] for node in report["nodes"] if node["op"] == DEPTHWISE)
    pixels, cycles = 16 * 16, load_target("mncore2").cycles
    assert steps <= 1.1 * 9 * pixels / cycles


@pytest.mark.parametrize(
    ("channels", "size", "most"),
    [
        pytest.param(96, 112, 3.0, marks=pytest.mark.long),
        # Channels that do not fill their digits.
        (144, 56, 3.0),
    ],
)
def test_tiles_of_large_pictures(channels: int, size: int, most: float) -> None:
    """Channels and batch lie on words and units, pixels in Addr: no switch from and to DRAM."""
    w = np.ones((channels, 1, 3, 3), dtype=np.float32)
    shape = (16, channels, size, size)
    model = one_node("Conv", {"x": shape}, {"w": w}, group=channels, pads=[1, 1, 1, 1])
    _, report = compiled(model, "mncore2", float_dtype="mixed", scheduler="spill_opt")
    ops = {node["op"] for node in report["nodes"]}
    assert TILES in ops
    assert SWITCH not in ops
    assert report["cycles"] <= most * report["bound"]["cycles"]


def test_between_products() -> None:
    """Tiles and batch fill the MABs, so that all three convolutions have their pixels there."""
    made = np.random.default_rng(1)
    shapes = {"a": (96, 16, 1, 1), "b": (96, 1, 3, 3), "c": (16, 96, 1, 1)}
    weights = {n: made.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "a"], ["wide"]),
            helper.make_node("Conv", ["wide", "b"], ["sums"], group=96, pads=[1, 1, 1, 1]),
            helper.make_node("Conv", ["sums", "c"], ["y"]),
        ],
        "block",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (16, 16, 28, 28))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (16, 16, 28, 28))],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    _, report = compiled(model, "mncore2", float_dtype="mixed")
    steps: Counter[str] = Counter()
    for node in report["nodes"]:
        steps[node["op"]] += node["steps"]
    # No pixel changes its unit, but for the halo: the switches move within LM.
    assert steps[SWITCH] <= steps[DEPTHWISE]
    assert report["cycles"] <= 8 * report["bound"]["cycles"]
