"""Pools in the host's slow runtime, and pools of -inf in both runtimes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import with_seeds
from onnx import helper

from pycompiler.pfvm.session import HostSession, evaluator


def model_of(
    op: str, x: np.ndarray, attributes: dict[str, Any], results: int = 1
) -> onnx.ModelProto:
    names = ["y", "places"][:results]
    kinds = [helper.np_dtype_to_tensor_dtype(x.dtype), onnx.TensorProto.INT64]
    infos = [helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=False)]
    node = helper.make_node(op, ["x"], names, **attributes)
    given = helper.make_tensor_value_info("x", kinds[0], x.shape)
    graph = helper.make_graph([node], "g", [given], infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    model.ir_version = 10
    return model


def check(op: str, seed: int) -> None:
    draw = random.Random(seed)
    rank = draw.choice([1, 2, 2, 3])
    kernel = [draw.randint(1, 3) for _ in range(rank)]
    facts: dict[str, Any] = {"kernel_shape": kernel}
    facts["strides"] = [draw.randint(1, 3) for _ in range(rank)]
    covered = all(s <= k for s, k in zip(facts["strides"], kernel, strict=True))
    if op != "LpPool" and draw.random() < 0.3:
        facts["dilations"] = [draw.randint(1, 2) for _ in range(rank)]
    if draw.random() < 0.3 and covered and "dilations" not in facts:
        facts["auto_pad"] = draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        facts["pads"] = [draw.randint(0, size - 1) for size in (*kernel, *kernel)]
        facts["ceil_mode"] = draw.randint(0, 1)
    if op == "AveragePool":
        facts["count_include_pad"] = draw.randint(0, 1)
    if op == "LpPool":
        facts["p"] = draw.randint(1, 3)
    results = draw.randint(1, 2) if op == "MaxPool" else 1
    shape = (draw.randint(1, 2), draw.randint(1, 3), *(draw.randint(5, 9) for _ in range(rank)))
    x = np.random.default_rng(seed).integers(-5, 6, shape).astype(np.float32)
    model = model_of(op, x, facts, results)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    slow = evaluator(model)
    assert slow is not None
    for own, other in zip(slow.run(None, {"x": x}), wanted, strict=True):
        assert own.shape == other.shape, (seed, facts)
        assert own.dtype == other.dtype, (seed, facts)
        assert np.allclose(own, other, rtol=1e-5, atol=1e-6), (seed, facts)


@pytest.mark.parametrize("op", ["AveragePool", "LpPool", "MaxPool"])
def test_every_form(op: str) -> None:
    with_seeds(lambda seed: check(op, seed), 60, 2000)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "int64"])
def test_windows_of_the_least_number(kind: str, rank: int) -> None:
    low = -np.inf if kind.startswith("f") else np.iinfo(kind).min
    x = np.full((1, 2, *[7] * rank), low, kind)
    inside = {"kernel_shape": [3] * rank, "pads": [1] * 2 * rank, "strides": [2] * rank}
    for op, facts in (("MaxPool", inside), ("GlobalMaxPool", {})):
        if op == "GlobalMaxPool" and kind in ("float64", "int8", "int64"):
            continue  # composites write it as a maximum
        session = HostSession(model_of(op, x, facts), op)
        assert (session.run({"x": x})["y"] == low).all(), op


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_places_behind_padding(kind: str) -> None:
    low = -np.inf if kind == "float64" else np.iinfo(kind).min
    x = np.full((1, 2, 3), low, kind)
    model = model_of("MaxPool", x, {"kernel_shape": [2], "pads": [1, 1], "strides": [2]}, 2)
    slow = evaluator(model)
    assert slow is not None
    assert slow.run(None, {"x": x})[1].tolist() == [[[0, 1], [3, 4]]]
