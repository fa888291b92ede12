"""Pools: the indices of maxima, infinities, and the code of windows."""

from __future__ import annotations

import random

import numpy as np
import operator_windows
import pytest
import torch
from compiling import compiled, model_of, run, sampled, tried
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from one_node import one_node
from onnx import TensorProto, helper

from pycompiler.pfvm.device_functions import TILES
from pycompiler.pfvm.session import HostSession

F = torch.nn.functional


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(4), phases=[Phase.explicit, Phase.generate])
def test_indices_of_maxima(seed: int) -> None:
    """Indices of the first of equal elements, as onnxruntime and torch give them."""
    rng = random.Random(seed)
    axes, facts = operator_windows.pool_axes(rng, dilates=True)
    facts.pop("auto_pad", None)
    facts["pads"] = [axis.before for axis in axes] + [axis.after for axis in axes]
    x = np.round(operator_windows.images(rng, axes) / 64)  # many are equal
    model = one_node("MaxPool", {"x": x.shape}, {}, 2, **facts)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    found = run(result, {"x": x})
    other = HostSession(model, "model").run({"x": x})
    wanted, places = operator_windows.maximum(torch.from_numpy(x), axes, indices=True)
    assert np.array_equal(found["y0"], wanted.numpy())
    assert np.array_equal(found["y0"], other["y0"])
    assert np.array_equal(found["y1"], other["y1"])
    assert found["y1"].dtype == np.int64
    if all(axis.before == axis.after == axis.reach == 0 for axis in axes):
        # torch counts in each image of the padded input.
        images = np.arange(np.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(axes))
        assert np.array_equal(found["y1"], places.numpy() + images * np.prod(x.shape[2:]))


@pytest.mark.parametrize("outputs", [1, 2])
def test_windows_of_infinities(outputs: int) -> None:
    """Padding never wins: neither its value nor its index."""
    x = np.full((1, 1, 5, 4), -np.inf, dtype=np.float32)
    x[0, 0, 4, 3] = np.inf
    facts = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    result, report = compiled(one_node("MaxPool", {"x": x.shape}, {}, outputs, **facts))
    assert report["host_fallback"] == []
    found = run(result, {"x": x})
    wanted, places = F.max_pool2d(torch.from_numpy(x), 3, 2, 1, return_indices=True)
    assert np.array_equal(found["y0"], wanted.numpy())
    if outputs == 2:
        assert np.array_equal(found["y1"], places.numpy())


@pytest.mark.parametrize(
    ("op", "size", "facts"),
    [
        ("MaxPool", 3, {"kernel_shape": [2], "dilations": [4], "pads": [1, 1]}),
        ("AveragePool", 3, {"kernel_shape": [2], "dilations": [4], "pads": [1, 1]}),
        ("MaxPool", 5, {"kernel_shape": [2], "storage_order": 1}),
        ("MaxPool", 5001, {"kernel_shape": [3]}),
        ("AveragePool", 5001, {"kernel_shape": [2], "strides": [2]}),
        ("LpPool", 5001, {"kernel_shape": [3]}),
    ],
)
def test_forms_that_run_on_the_host(op: str, size: int, facts: dict[str, object]) -> None:
    """A window without an element, indices by columns, and long axes are left to the host."""
    outputs = 2 if "storage_order" in facts else 1
    shape = (1, 2, size)
    model = one_node(op, {"x": shape}, {}, outputs, **facts)
    result, report = compiled(model)
    assert [row["op"] for row in report["host_fallback"]] == [op]
    given = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    wanted = HostSession(model, "model").run(given)
    for name, found in run(result, given).items():
        assert np.array_equal(found, wanted[name], equal_nan=True)


def test_a_long_axis_in_blocks() -> None:
    """Windows that follow each other are a reduction, whose axes may have any length."""
    model = one_node("MaxPool", {"x": (1, 2, 6000)}, {}, kernel_shape=[2], strides=[2])
    result, report = compiled(model)
    assert report["host_fallback"] == []
    x = np.random.default_rng(1).standard_normal((1, 2, 6000)).astype(np.float32)
    wanted = x.reshape(1, 2, 3000, 2).max(3)
    assert np.array_equal(run(result, {"x": x})["y0"], wanted)


@pytest.mark.parametrize("kernel", [2, 3])
def test_a_tap_costs_one_step(kernel: int) -> None:
    """Windows along an axis are read in place: nothing is copied or padded."""
    facts = {"kernel_shape": [kernel, 1], "pads": [kernel - 1, 0, 0, 0]}
    model = one_node("MaxPool", {"x": (4, 16, 28, 8)}, {}, **facts)
    _, report = compiled(model, "mncore2")
    (pool,) = [node for node in report["nodes"] if node["op"] == "MaxPool"]
    vectors = -(-pool["num_lw"] // 4)
    assert pool["steps"] <= kernel * (vectors + kernel) + 4
    assert not [node for node in report["nodes"] if node["op"] in ("Pad", "Slice")]


@pytest.mark.parametrize("op", sampled(["MaxPool", "AveragePool"]))
def test_pools_in_tiles(op: str) -> None:
    """Overlapping windows of large pictures work in tiles, unless zeros would be wrong."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(2), phases=[Phase.explicit, Phase.generate], deadline=None)
    def case(seed: int) -> None:
        rng = random.Random(seed)
        shape = (rng.choice([1, 3]), rng.choice([4, 6]), rng.choice([16, 20, 25]), 24)
        stride, pad = rng.choice([1, 2]), rng.choice([0, 1])
        facts = {"kernel_shape": [3, 3], "strides": [stride] * 2, "pads": [pad] * 4}
        if op == "AveragePool":
            facts["count_include_pad"] = 1
        x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        for before in ("Relu", "Neg"):
            model = model_of([(before, ["x"], "a")], {"x": shape}, ["a"])
            model.graph.node.append(helper.make_node(op, ["a"], ["y"], name="pool", **facts))
            value = np.maximum(x, 0) if before == "Relu" else -x
            tensor = torch.from_numpy(value)
            if op == "MaxPool":
                wanted = F.max_pool2d(tensor, 3, stride, pad).numpy()
            else:
                wanted = F.avg_pool2d(tensor, 3, stride, pad).numpy()
            del model.graph.output[:]
            model.graph.output.append(
                helper.make_tensor_value_info("y", TensorProto.FLOAT, wanted.shape)
            )
            result, report = compiled(model)
            assert report["host_fallback"] == []
            tiles = any(node.op == TILES for node in result.graph.nodes)
            if op == "MaxPool" and before == "Neg" and pad:
                assert not tiles, f"seed {seed}"
            found = run(result, {"x": x})["y"]
            limit = 0.0 if op == "MaxPool" else 1e-6
            assert np.abs(found - wanted).max() <= limit, f"seed {seed}"

    case()
