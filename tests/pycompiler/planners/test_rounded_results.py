"""16-bit results of products in half: the device stores them as halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import compiled, model_of, run
from onnx import TensorProto
from typed_model import typed_model

from pycompiler.graph import MNDtype
from pycompiler.graph.half import halves_of, singles_of
from pycompiler.layers.half_conversions import NARROW

FACTORS = {"a": (33, 48), "b": (48, 40)}


def factors(dtype: Any) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(7)
    return {n: draw.standard_normal(shape).astype(dtype) for n, shape in FACTORS.items()}


def model(elem: int, *more: tuple[str, list[str], str]) -> Any:
    nodes = [("MatMul", ["a", "b"], "y"), *more]
    return model_of(nodes, FACTORS, ["y", *(out for _, _, out in more)], elem=elem)


@pytest.mark.parametrize("emit", ["concat", "l1merge"])
def test_a_float16_result_is_the_single_rounded_to_half(emit: str) -> None:
    options = {"float_dtype": "mixed", "emit": emit}
    result, report = compiled(model(TensorProto.FLOAT16), **options)
    assert result.graph.values["y"].dtype is MNDtype.HALF
    assert [row["op"] for row in report["nodes"]].count(NARROW) == 1
    inputs = factors(np.float16)
    found = run(result, inputs)["y"]
    assert found.dtype == np.float16
    plain, before = compiled(model(TensorProto.FLOAT), **options)
    singles = run(plain, {n: array.astype(np.float32) for n, array in inputs.items()})["y"]
    assert np.array_equal(found, singles_of(halves_of(singles)).astype(np.float16))
    assert report["dram_words"]["written"] < before["dram_words"]["written"]


@pytest.mark.parametrize(
    ("elem", "options"),
    [
        (TensorProto.FLOAT, {"float_dtype": "mixed"}),
        (TensorProto.FLOAT16, {"float_dtype": "float"}),
        (TensorProto.FLOAT16, {"float_dtype": "mixed", "gemm_precision": "single"}),
        (TensorProto.FLOAT16, {"float_dtype": "mixed", "gemm_precision": "pseudo_single"}),
        # Halves have fewer bits of exponent.
        (TensorProto.BFLOAT16, {"float_dtype": "mixed"}),
    ],
)
def test_other_results_stay_singles(elem: int, options: dict[str, str]) -> None:
    result, report = compiled(model(elem), **options)
    assert result.graph.values["y"].dtype is MNDtype.FLOAT
    assert NARROW not in [row["op"] for row in report["nodes"]]


def test_other_readers_get_the_singles() -> None:
    made = model(TensorProto.FLOAT16, ("Neg", ["y"], "z"))
    result, report = compiled(made, float_dtype="mixed")
    assert report["host_fallback"] == []
    inputs = factors(np.float16)
    found = run(result, inputs)
    assert np.array_equal(found["y"], singles_of(halves_of(-singles(inputs))).astype("e") * -1)
    assert np.array_equal(found["z"], -singles(inputs).astype(np.float16))


def singles(inputs: dict[str, np.ndarray]) -> np.ndarray:
    plain, _ = compiled(model(TensorProto.FLOAT), float_dtype="mixed")
    return run(plain, {n: array.astype(np.float32) for n, array in inputs.items()})["y"]


def test_a_result_with_an_override_keeps_its_bits() -> None:
    inputs = factors(np.float16)
    overrides = {"y": {"precision": "half"}}
    result, _ = compiled(model(TensorProto.FLOAT16), float_dtype="mixed", overrides=overrides)
    assert result.graph.values["y"].dtype is MNDtype.FLOAT
    assert np.array_equal(run(result, inputs)["y"], singles(inputs).astype(np.float16))


def test_a_gemm_in_slices_adds_up_singles() -> None:
    """Parts of a sum are added before the result is rounded."""
    shapes = {"a": (96, 480), "b": (480, 80)}
    draw = np.random.default_rng(1)
    inputs = {n: draw.standard_normal(s).astype(np.float16) for n, s in shapes.items()}
    made = typed_model([("Gemm", ["a", "b"], "y")], inputs, {"y": np.zeros((96, 80), np.float16)})
    result, report = compiled(made, float_dtype="mixed")
    assert "Add" in [row["op"] for row in report["nodes"]]
    assert result.graph.values["y"].dtype is MNDtype.HALF
    found = run(result, inputs)["y"].astype(np.float64)
    wanted = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    assert np.abs(found - wanted).max() <= 2.0**-8 * np.abs(wanted).max()
