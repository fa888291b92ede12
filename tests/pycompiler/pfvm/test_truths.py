"""Reductions of truth values that torch casts to whole numbers: counts, any, all."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from onnx import TensorProto

from pycompiler.pfvm.optimise import optimise

OPERATORS = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min}


@pytest.mark.parametrize("elem", [TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize("op", OPERATORS)
def test_truths_are_reduced_on_the_device(op: str, elem: int) -> None:
    kind = onnx.helper.tensor_dtype_to_string(elem).partition(".")[2].lower()
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> g (float[5, 7] x) => ({kind}[5, 1] y)'
        f" <int64[1] axes = {{1}}, float zero = {{0}}>"
        f"{{ b = Greater(x, zero) c = Cast<to = {elem}>(b) y = {op}(c, axes) }}"
    )
    x = np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32)
    x[2], x[3] = -1, 1
    result, report = compiled(optimise(model))
    assert report["host_fallback"] == []
    found = run(result, {"x": x})["y"]
    wanted = OPERATORS[op]((x > 0).astype(found.dtype), axis=1, keepdims=True)
    assert found.dtype == onnx.helper.tensor_dtype_to_np_dtype(elem)
    assert (found == wanted).all()
