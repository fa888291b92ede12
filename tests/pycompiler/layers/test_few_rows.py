"""Linear layers on one to three rows, as in a network that makes one token at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, run, sampled, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional

from pycompiler.tolerance import FUNCTION, RELATIVE, SUM, SUMS

Layer = tuple[np.ndarray, np.ndarray | None]

#: The row of the tolerance table for products, by mode.
COMPUTED_IN = {"float": "Float", "mixed": "Half"}
#: An upper bound of the slope of GELU.
_SLOPE = 1.13


def drawn_layers(sizes: Sequence[int], bias: bool, seed: int) -> list[Layer]:
    rng = np.random.default_rng(seed)
    out: list[Layer] = []
    for inputs, outputs in pairwise(sizes):
        weight = rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)
        added = rng.standard_normal(outputs).astype(np.float32) if bias else None
        out.append((weight.astype(np.float32), added))
    return out


def network(rows: int, layers: Sequence[Layer], gelu: bool) -> onnx.ModelProto:
    """Return a model of Gemm nodes with Gelu between them and, with ``gelu``, after the last."""
    nodes, constants, value = [], [], "x"
    for number, (weight, bias) in enumerate(layers):
        names = [value, f"w{number}"] + ([f"b{number}"] if bias is not None else [])
        arrays = [weight] + ([bias] if bias is not None else [])
        constants += [numpy_helper.from_array(a, n) for a, n in zip(arrays, names[1:], strict=True)]
        last = number == len(layers) - 1
        value = "y" if last and not gelu else f"g{number}"
        nodes.append(helper.make_node("Gemm", names, [value], transB=1, name=f"gemm{number}"))
        if not last or gelu:
            after = "y" if last else f"h{number}"
            nodes.append(helper.make_node("Gelu", [value], [after], name=f"gelu{number}"))
            value = after
    inputs, outputs = layers[0][0].shape[1], layers[-1][0].shape[0]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, inputs))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, outputs))],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def wanted(x: np.ndarray, layers: Sequence[Layer], gelu: bool, mode: str) -> tuple[np.ndarray, ...]:
    """Return torch's result in double precision, and the error that the tolerance table allows."""
    value, error = torch.from_numpy(x).double(), np.zeros(1)
    for number, (weight, bias) in enumerate(layers):
        matrix = torch.from_numpy(weight).double()
        added = None if bias is None else torch.from_numpy(bias).double()
        own = weight.shape[1] * value.abs().max().item() * np.abs(weight).max()
        own *= SUMS[COMPUTED_IN[mode], SUM]
        error = error * np.abs(weight).sum(1).max() + own
        value = functional.linear(value, matrix, added)
        if number < len(layers) - 1 or gelu:
            value = functional.gelu(value)
            error = _SLOPE * error + RELATIVE["Float", FUNCTION] * value.abs().max().item()
    return value.numpy(), error


def check(
    rows: int, sizes: Sequence[int], mode: str, machine: str, *, bias: bool, gelu: bool
) -> None:
    layers = drawn_layers(sizes, bias, rows)
    x = np.random.default_rng(sum(sizes)).standard_normal((rows, sizes[0])).astype(np.float32)
    result, report = compiled(network(rows, layers, gelu), machine, float_dtype=mode)
    assert report["host_fallback"] == []
    found = run(result, {"x": x}, machine)["y"]
    reference, limit = wanted(x, layers, gelu, mode)
    assert np.abs(found - reference).max() <= limit.max()
    # The table bounds the worst case. Most results are much closer.
    off = np.linalg.norm(found - reference) / np.linalg.norm(reference)
    assert off < (1e-4 if mode == "float" else 0.03), off


KNOWN = [
    (1, (64, 3072)),
    (1, (768, 2304)),
    (1, (640, 2560)),
    (1, (768, 3072, 768)),
    (2, (64, 3072)),
    (3, (768, 768)),
]


# The modes take turns: the other half runs in `make test-long`.
@pytest.mark.parametrize(
    ("rows", "sizes", "mode"),
    [
        *sampled([(*layer, "float") for layer in KNOWN], every=4),
        *sampled([(*layer, "mixed") for layer in KNOWN], every=4, first=1),
    ],
    ids=str,
)
def test_layers_of_language_models(rows: int, sizes: tuple[int, ...], mode: str) -> None:
    check(rows, sizes, mode, "mncore2", bias=True, gelu=len(sizes) == 2)


_SIZES = st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 128, 192]))


@settings(max_examples=tried(8, 400))
@given(
    st.integers(1, 3),
    st.lists(_SIZES, min_size=2, max_size=3),
    st.sampled_from(["float", "mixed"]),
    st.booleans(),
    st.booleans(),
)
def test_drawn_layers(rows: int, sizes: list[int], mode: str, bias: bool, gelu: bool) -> None:
    check(rows, sizes, mode, "mini", bias=bias, gelu=gelu)


_WIDE = st.sampled_from([1, 16, 64, 100, 128, 256, 640, 768, 1024, 2048, 2304, 2560, 3072])


@settings(max_examples=tried(2, 120))
@given(
    st.integers(1, 3),
    st.lists(_WIDE, min_size=2, max_size=3),
    st.sampled_from(["mixed", "mixed", "float"]),
    st.booleans(),
    st.booleans(),
)
def test_drawn_layers_on_the_whole_machine(
    rows: int, sizes: list[int], mode: str, bias: bool, gelu: bool
) -> None:
    check(rows, sizes, mode, "mncore2", bias=bias, gelu=gelu)
