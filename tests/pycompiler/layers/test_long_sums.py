"""Gemm whose sums are so long that LM cannot hold a block of rows of the matrix."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from compiling import compiled, model_of, run, tried
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from pycompiler.machine import load_target
from pycompiler.pfvm.composites.gemm import sums_are_long
from pycompiler.tolerance import SUM, SUMS

FLOAT = TensorProto.FLOAT
#: A search for a smaller case compiles for minutes.
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
BOUND = {"float": "Float", "mixed": "Half"}


@pytest.mark.parametrize(
    ("terms", "long"),
    [
        (25088, True),  # VGG: 512 channels of 7 x 7 pixels
        (9216, False),  # AlexNet: the L1Bs of an L2B hold a block of rows together
        (16384, False),
        (16385, True),
    ],
)
def test_sums_are_long_if_the_l1bs_cannot_share_them(terms: int, long: bool) -> None:
    assert sums_are_long(terms, load_target("mncore2")) is long


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(BOUND)))
@settings(max_examples=tried(1, 30), deadline=None, phases=NO_SHRINKING)
def test_a_classifier_of_many_channels_and_pixels(seed: int, mode: str) -> None:
    """Flatten makes one axis of channels and pixels, which time slices cannot cut."""
    rng = random.Random(seed)
    rows, channels = rng.choice([1, 2, 3, 5]), rng.choice([32, 48, 96])
    pixels = rng.choice([(5, 7), (6, 6), (9, 8), (40,), (3, 4, 5)])
    shape, terms, columns = (
        (rows, channels, *pixels),
        channels * prod(pixels),
        rng.choice([1, 10, 33]),
    )
    data = np.random.default_rng(seed)
    x, matrix, bias = (
        data.standard_normal(s).astype(np.float32) for s in (shape, (terms, columns), (columns,))
    )
    turned = rng.randrange(2)
    nodes = [
        ("Relu", ["x"], "r"),
        rng.choice([("Flatten", ["r"], "a"), ("Reshape", ["r", "s"], "a")]),
        ("Gemm", ["a", "w", "c"], "y"),
    ]
    given_matrix = np.ascontiguousarray(matrix.T) if turned else matrix
    constants = {"w": given_matrix, "c": bias, "s": np.array([rows, terms], np.int64)}
    model = model_of(nodes, {"x": shape}, ["y"], constants)
    model.graph.node[-1].attribute.append(helper.make_attribute("transB", turned))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, (rows, columns)))
    result, report = compiled(model, **({} if mode == "float" else {"float_dtype": mode}))
    assert report["host_fallback"] == []
    flat = np.maximum(x, 0).reshape(rows, terms).astype(np.float64)
    most = float(np.abs(flat).max() * np.abs(matrix).max())
    limit = (terms + 1) * SUMS[BOUND[mode], SUM] * most
    assert np.abs(run(result, {"x": x})["y"] - (flat @ matrix + bias)).max() <= limit
