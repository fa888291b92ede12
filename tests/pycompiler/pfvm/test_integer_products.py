"""Large products of integers: digits as doubles, and single products of small integers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from pycompiler.machine import load_target
from pycompiler.pfvm.composites import decompose
from pycompiler.pfvm.prepare import prepare, static_types

DTYPES = ("int32", "int64", "uint32", "uint64")
SIZES = st.sampled_from([(40, 30, 20), (3, 800, 4), (100, 7, 60), (1, 1 << 13, 1)])


def _model(a: np.ndarray, b: np.ndarray, dtype: str, *, cast: bool) -> onnx.ModelProto:
    goal = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("MatMul", ["p", "q"], ["y"])]
    if cast:
        nodes = [helper.make_node("Cast", [x], [y], to=goal) for x, y in ("ap", "bq")] + nodes
    names = "ab" if cast else "pq"
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, (a, b), strict=True)
    ]
    result = helper.make_tensor_value_info("y", goal, (a @ b).shape)
    graph = helper.make_graph(nodes, "g", inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return prepare(model)


def _products(model: onnx.ModelProto) -> list[int]:
    """The element types of the matrix products."""
    types = {v.name: v.type.tensor_type.elem_type for v in prepare(model).graph.value_info}
    return [types[n.input[0]] for n in model.graph.node if n.op_type == "MatMul"]


@settings(max_examples=12, deadline=None)
@given(dtype=st.sampled_from(DTYPES), sizes=SIZES, batch=st.integers(1, 2), seed=st.integers(0, 99))
def test_products_of_digits_are_exact(
    dtype: str, sizes: tuple[int, int, int], batch: int, seed: int
) -> None:
    made, (m, k, n) = np.random.default_rng(seed), sizes
    info = np.iinfo(dtype)
    ends = {"dtype": dtype, "endpoint": True}
    a = made.integers(info.min, info.max, (batch, m, k), **ends)
    b = made.integers(info.min, info.max, (k, n), **ends)
    a[0, 0, 0], b[0, 0] = info.min, info.max
    model = _model(a, b, dtype, cast=False)
    written = decompose(model, static_types(model), load_target("mini"))
    assert _products(written) == [onnx.TensorProto.DOUBLE] * (info.bits // 16)
    (found,) = ReferenceEvaluator(written).run(None, {"p": a, "q": b})
    assert np.array_equal(found, a @ b)


@pytest.mark.parametrize(
    ("small", "kind"), [("int8", "FLOAT"), ("uint8", "FLOAT"), ("int16", "DOUBLE")]
)
def test_small_integers_need_one_product(small: str, kind: str) -> None:
    made, info = np.random.default_rng(5), np.iinfo(small)
    a, b = (made.integers(info.min, info.max, s, small, endpoint=True) for s in ((9, 40), (40, 5)))
    model = _model(a, b, "int32", cast=True)
    written = decompose(model, static_types(model), load_target("mini"))
    assert _products(written) == [onnx.TensorProto.DataType.Value(kind)]
    for mode in ("float", "mixed"):
        result, report = compiled(model, float_dtype=mode)
        assert report["host_fallback"] == []
        found = run(result, {"a": a, "b": b})["y"]
        assert np.array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.long
def test_products_of_digits_on_the_device() -> None:
    made, info = np.random.default_rng(6), np.iinfo(np.int32)
    a, b = (made.integers(info.min, info.max, (n, 33), np.int32) for n in (24, 33))
    model = _model(a, b, "int32", cast=False)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    assert np.array_equal(run(result, {"p": a, "q": b})["y"], a @ b)
