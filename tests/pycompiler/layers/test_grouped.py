"""Convolutions in groups: an axis of the product, against torch and onnxruntime."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from compiling import compiled, run, tried
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from one_node import one_node
from operator_convolutions import conv
from operator_rows import HOST_ERROR, REAL, Row
from typed_model import typed_model

from pycompiler.pfvm.session import HostSession
from pycompiler.pfvm.windows import DEPTHWISE, GROUPED
from pycompiler.tolerance import SUM


def groups(rng: random.Random, halves: bool) -> tuple[int, int, int]:
    """Groups that fill blocks of a product alone, joined, or not at all."""
    group, own = rng.choice([(2, 16), (3, 16), (4, 8), (8, 4), (6, 8), (2, 24), (3, 5)])
    return group, own, rng.choice([1, 4, 8, 16, 20])


ROW = Row("Conv", "Float", REAL, conv(halves=False, channels=groups), SUM, range(3, 6))


@pytest.mark.parametrize(
    ("mode", "machine", "examples"), [("float", "mini", 3), ("mixed", "mini", 3), ("mixed", "", 1)]
)
def test_against_torch_and_onnxruntime(mode: str, machine: str, examples: int) -> None:
    """Strides, dilations, padding, one to three axes, bias; weights may be inputs."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 20 * examples), phases=[Phase.explicit, Phase.generate])
    def case(seed: int) -> None:
        sample = ROW.sample(random.Random(seed))
        model, name = ROW.model(sample), machine or "mncore2"
        result, report = compiled(model, name, float_dtype=mode)
        assert report["host_fallback"] == []
        found = run(result, sample.given, name)["y0"]
        wanted = sample.wanted()[0]
        limit = ROW.limit(sample, wanted, mode)
        other = HostSession(model, "model").run(sample.given)["y0"]
        assert found.shape == wanted.shape
        assert (np.abs(found - wanted) <= limit).all()
        assert (np.abs(found - other) <= HOST_ERROR * limit).all()

    case()


@pytest.mark.parametrize(
    ("group", "own", "rows", "axis"),
    [(4, 16, 16, 4), (8, 8, 8, 4), (8, 4, 8, 2), (2, 24, 24, 0), (3, 5, 16, 0), (4, 16, 1, 0)],
)
def test_axis_of_groups(group: int, own: int, rows: int, axis: int) -> None:
    """Small groups are joined until their channels fill blocks; ``axis`` is the number that stay.

    No axis (0) means a convolution over all channels.
    """
    made = np.random.default_rng(2)
    w = made.standard_normal((group * rows, own, 3)).astype(np.float32)
    x = made.standard_normal((2, group * own, 9)).astype(np.float32)
    model = one_node("Conv", {"x": x.shape}, {"w": w}, group=group, pads=[1, 1])
    result, _ = compiled(model)
    nodes = [node for node in result.graph.nodes if node.op in ("Conv", GROUPED)]
    sizes = {result.graph.values[n.inputs[1]].shape[0] for n in nodes if n.op == GROUPED}
    assert nodes
    assert sizes == ({axis} if axis else set())
    found = run(result, {"x": x})["y0"]
    wanted = HostSession(model, "model").run({"x": x})["y0"]
    limit = HOST_ERROR * own * 3 * 2.0**-20 * np.abs(x).max() * np.abs(w).max()
    assert np.abs(found - wanted).max() <= limit


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize(("group", "own", "op"), [(2, 4, "Conv"), (2, 32, GROUPED), (8, 1, None)])
def test_element_types(dtype: str, group: int, own: int, op: str | None) -> None:
    """Groups that are joined, that stay, and of single channels, which doubles have on the host."""
    made = np.random.default_rng(3)
    x, w, b = (
        made.integers(-3, 4, shape).astype(dtype)
        for shape in ((2, group * own, 9), (2 * group * own, own, 3), (2 * group * own,))
    )
    facts = {"group": group, "pads": [1, 1]}
    nodes = [("Conv", ["x", "w", "b"], "y", facts)]
    result, _ = compiled(
        typed_model(nodes, {"x": x}, {"y": np.zeros((2, len(w), 9), dtype)}, {"w": w, "b": b}),
        "mncore2",
    )
    on_device = {node.op for node in result.graph.device_nodes()}
    assert (op or DEPTHWISE) in on_device or (op is None and dtype == "float64")
    wide = [torch.from_numpy(array.astype(np.float64)) for array in (x, w, b)]
    wanted = torch.nn.functional.conv1d(*wide, padding=1, groups=group)
    assert (run(result, {"x": x}, "mncore2")["y"] == wanted.numpy()).all()
