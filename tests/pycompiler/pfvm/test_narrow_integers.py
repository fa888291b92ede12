"""Integers of every width against numpy: drawn values, with both ends of the range."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiling import compiled, run, sampled
from onnx import helper

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Array = np.ndarray[Any, Any]
SMALL = ("int8", "uint8", "int16", "uint16", "uint32")


def wrapped(numbers: list[int], dtype: Any) -> Array:
    """Return integers modulo two to the power of the width."""
    return np.array([number % (1 << 64) for number in numbers], np.uint64).astype(dtype)


def quotient(a: Array, b: Array) -> Array:
    """Divide towards zero, in Python's integers."""
    made = [
        abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
        for x, y in zip(a, b, strict=True)
    ]
    return wrapped(made, a.dtype)


def remainder(a: Array, b: Array) -> Array:
    return wrapped([int(x) % int(y) for x, y in zip(a, b, strict=True)], a.dtype)


def truncated(a: Array, b: Array) -> Array:
    made = [int(x) - int(q) * int(y) for x, y, q in zip(a, b, quotient(a, b), strict=True)]
    return wrapped(made, a.dtype)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": quotient,
    "Mod": remainder,
    "Mod fmod": truncated,
    "Min": np.minimum,
    "Max": np.maximum,
    "Less": np.less,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseXor": np.bitwise_xor,
}
CASES = [(op, dtype) for op in BINARY for dtype in SMALL] + [
    (op, dtype) for op in ("Div", "Mod", "Mod fmod") for dtype in ("int32", "int64")
]
CASES += [(op, "uint64") for op in BINARY]


def drawn(dtype: str, seed: int) -> tuple[Array, Array]:
    made, info = np.random.default_rng(seed), np.iinfo(dtype)
    ends = np.array([info.min, info.max, 0, 1, info.max // 2], dtype)
    far = made.integers(info.min, info.max, 60, dtype=dtype, endpoint=True)
    near = made.integers(max(info.min, -9), 10, 60).astype(dtype)
    a = np.concatenate([ends, far, near])
    b = np.concatenate([ends[::-1], near, far])
    return a, np.where(b == 0, np.ones_like(b), b)


@pytest.mark.parametrize(("named", "dtype"), sampled(CASES))
def test_against_numpy(named: str, dtype: str) -> None:
    op, _, mode = named.partition(" ")
    a, b = drawn(dtype, len(named) + len(dtype))
    with np.errstate(all="ignore"):
        wanted = BINARY[named](a, b)
    elem = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    result = int(helper.np_dtype_to_tensor_dtype(wanted.dtype))
    info = helper.make_tensor_value_info
    node = helper.make_node(op, ["a", "b"], ["y"], **({"fmod": 1} if mode else {}))
    inputs = [info(name, elem, a.shape) for name in "ab"]
    graph = helper.make_graph([node], "g", inputs, [info("y", result, a.shape)])
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, report = compiled(model, "mini")
    assert report["host_fallback"] == []
    found = run(made, {"a": a, "b": b}, "mini")["y"]
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted), (a[found != wanted][:4], b[found != wanted][:4])


#: Reductions that make reals, of numbers of which none is below 0.
REALS: dict[str, Callable[[Array], Array]] = {
    "ReduceMean": lambda x: x.mean(1),
    "ReduceL2": lambda x: np.sqrt((x * x).sum(1)),
    "ReduceLogSum": lambda x: np.log(x.sum(1)),
    "ReduceLogSumExp": lambda x: np.logaddexp.reduce(x, 1),
}


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("op", REALS)
def test_reductions_to_reals(op: str, dtype: str) -> None:
    """Their sums leave the type, and those of squares leave 64 bits."""
    x = np.abs(drawn(dtype, len(op))[0][1:121].reshape(5, 24)) // np.array(8, dtype)
    of, kind = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
    axes = helper.make_tensor("axes", 7, [1], [1])
    graph = helper.make_graph([node], "g", [of("x", kind, x.shape)], [of("y", kind, (5,))], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    wanted = np.trunc(REALS[op](x.astype(np.float64)))
    made, report = compiled(model, "mini")
    assert report["host_fallback"] == []
    session = HostSession(model, op)
    for found in (run(made, {"x": x}, "mini")["y"], session.run({"x": x})["y"]):
        assert found.dtype == x.dtype
        assert np.allclose(found, wanted, rtol=1e-14, atol=0 if op == "ReduceMean" else 1)


@pytest.mark.parametrize("dtype", [*SMALL, "int32", "int64", "float64"])
def test_shrink_by_parts_of_integers(dtype: str) -> None:
    """ONNX's function of Shrink would cut `lambd` and `bias` first; onnxruntime keeps singles."""
    x = np.array([0, 1, 2, 3, 100, 7, 120] if dtype[0] == "u" else [0, 1, -1, -3, 100, -100, 7])
    x = x.astype(dtype)
    of, kind = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("Shrink", ["x"], ["y"], lambd=1.5, bias=0.3)
    graph = helper.make_graph([node], "g", [of("x", kind, x.shape)], [of("y", kind, x.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    bias = np.sign(x.astype(float)) * float(np.float32(0.3))
    wanted = np.where(np.abs(x.astype(float)) > 1.5, x - bias, 0).astype(dtype)
    session = HostSession(model, "Shrink")
    for found in (
        run(compiled(model, "mini")[0], {"x": x}, "mini")["y"],
        session.run({"x": x})["y"],
    ):
        assert found.dtype == x.dtype
        assert np.allclose(found, wanted, rtol=1e-12, atol=0)


REDUCTIONS: dict[str, Callable[..., Array]] = {
    "ReduceSum": np.add.reduce,
    "ReduceMax": np.maximum.reduce,
    "ReduceMin": np.minimum.reduce,
}
REDUCED = [
    (op, dtype)
    for op in REDUCTIONS
    for dtype in ("int32", "int64", "uint64", "uint32")
    if (op, dtype) != ("ReduceSum", "uint32")
]


@pytest.mark.parametrize(("op", "dtype"), REDUCED)
def test_reductions_against_numpy(op: str, dtype: str) -> None:
    """Sums wrap; an axis that is no power of two has padding on units and in long words."""
    x = drawn(dtype, len(op))[0][:125].reshape(5, 25)
    elem = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    info = helper.make_tensor_value_info
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
    axes = helper.make_tensor("axes", 7, [1], [1])
    graph = helper.make_graph(
        [node], "g", [info("x", elem, x.shape)], [info("y", elem, (5,))], [axes]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    made, report = compiled(model, "mini")
    assert report["host_fallback"] == []
    found = run(made, {"x": x}, "mini")["y"]
    wanted = REDUCTIONS[op](x, axis=1, dtype=x.dtype)
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", SMALL[:4])
@pytest.mark.parametrize("source", ["int32", "int64", "float32"])
def test_cast_takes_the_low_bits(source: str, dtype: str) -> None:
    made = np.random.default_rng(5)
    x = made.integers(-(1 << 20), 1 << 20, 64).astype(source)
    elems = [int(helper.np_dtype_to_tensor_dtype(np.dtype(name))) for name in (source, dtype)]
    info = helper.make_tensor_value_info
    node = helper.make_node("Cast", ["x"], ["y"], to=elems[1])
    graph = helper.make_graph(
        [node], "g", [info("x", elems[0], (64,))], [info("y", elems[1], (64,))]
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    compiled_one, report = compiled(model, "mini")
    assert report["host_fallback"] == []
    found = run(compiled_one, {"x": x}, "mini")["y"]
    assert np.array_equal(found, x.astype(np.int64).astype(dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_clip_against_numpy(dtype: str) -> None:
    """The ends may lie in either half of the range, or be left out."""
    x = drawn(dtype, 3)[0]
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.max // 3, limits.max // 3 * 2, limits.max]
    elem = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    info, opsets = helper.make_tensor_value_info, [helper.make_opsetid("", 18)]
    for low, high in [(1, 2), (0, 1), (2, 3), (None, 1), (2, None)]:
        bounds = {"low": low, "high": high}
        constants = [
            helper.make_tensor(name, elem, [], [ends[place]])
            for name, place in bounds.items()
            if place is not None
        ]
        names = ["" if place is None else name for name, place in bounds.items()]
        node = helper.make_node("Clip", ["x", *names], ["y"])
        values = [info("x", elem, x.shape)], [info("y", elem, x.shape)], constants
        graph = helper.make_graph([node], "g", *values)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        made, report = compiled(optimise(model), "mini")
        assert report["host_fallback"] == []
        found = run(made, {"x": x}, "mini")["y"]
        wanted = np.clip(
            x, *(None if place is None else x.dtype.type(ends[place]) for place in (low, high))
        )
        assert np.array_equal(found, wanted), (low, high)
