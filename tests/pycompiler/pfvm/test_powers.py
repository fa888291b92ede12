"""Powers of floats whose exponent is a constant of another type."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, run

from pycompiler.pfvm.optimise import optimise


@pytest.mark.parametrize(
    ("base", "exponent", "power"), [("float", "int64", 6), ("double", "int32", -7)]
)
def test_integer_exponents_run_on_the_device(base: str, exponent: str, power: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 20]> g ({base}[6] x) => ({base}[6] y)
        <{exponent} power = {{{power}}}> {{ y = Pow (x, power) }}"""
    )
    x = np.array([-3, -1.5, -1, 0.25, 1, 2.5], np.float32 if base == "float" else np.float64)
    result, report = compiled(optimise(model))
    assert report["host_fallback"] == []
    assert np.allclose(run(result, {"x": x})["y"], x**power, rtol=2.0**-20, atol=0)
