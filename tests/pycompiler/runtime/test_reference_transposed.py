"""Transposed convolutions of doubles on the host, which onnxruntime has for singles only."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import onnxruntime
from compiling import with_seeds
from onnx import helper

from pycompiler.pfvm.session import evaluator


def check(seed: int) -> None:
    draw, arrays = random.Random(seed), np.random.default_rng(seed)
    rank, groups = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 2, 3])
    facts: dict[str, Any] = {"group": groups}
    facts["kernel_shape"] = kernel = [draw.randint(1, 3) for _ in range(rank)]
    facts["strides"] = [draw.randint(1, 3) for _ in range(rank)]
    facts["dilations"] = [draw.randint(1, 2) for _ in range(rank)]
    way = draw.choice(["pads", "auto_pad", "output_padding", "none"])
    if way == "pads":
        facts["pads"] = [draw.randint(0, 2) for _ in range(2 * rank)]
    elif way == "auto_pad":
        facts["auto_pad"] = draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif way == "output_padding":
        facts["output_padding"] = [draw.randint(0, s - 1) for s in facts["strides"]]
    x = arrays.standard_normal([2, 2 * groups, *(draw.randint(4, 6) for _ in range(rank))])
    weights = arrays.standard_normal([2 * groups, 3, *kernel])
    operands = {"x": x, "w": weights, "b": arrays.standard_normal(3 * groups)}
    if draw.random() < 0.5:
        del operands["b"]

    def model_of(dtype: str) -> onnx.ModelProto:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        node = helper.make_node("ConvTranspose", list(operands), ["y"], **facts)
        given = [helper.make_tensor_value_info(n, kind, a.shape) for n, a in operands.items()]
        made = [helper.make_tensor_value_info("y", kind, None)]
        graph = helper.make_graph([node], "g", given, made)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
        model.ir_version = 10
        return model

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model_of("f4").SerializeToString(), options)
        (wanted,) = session.run(None, {n: a.astype("f4") for n, a in operands.items()})
    except Exception:  # results without elements; its errors have no base class
        return
    found = evaluator(model_of("f8"))
    assert found is not None
    (made,) = found.run(None, operands)
    assert made.dtype == np.float64, (seed, facts)
    assert made.shape == wanted.shape, (seed, facts)
    assert np.allclose(made, wanted, rtol=1e-4, atol=1e-4), (seed, facts)


def test_transposed_convolutions() -> None:
    with_seeds(check, 12, 500)
