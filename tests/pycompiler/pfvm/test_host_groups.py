"""Values of unknown size between values of known ones: the host runs the nodes around them."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from compiling import context, report_of

from pycompiler.build import build, host_function, load_function
from pycompiler.errors import PycompilerError
from pycompiler.pfvm.host_groups import GROUP, group_of
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.prepare import static_types
from pycompiler.runtime.device import Board, find_device
from pycompiler.runtime.executable import Function

DEVICE = "emu2:mini"
HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
Arrays = dict[str, Any]


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def compiled(model: onnx.ModelProto, folder: Path) -> tuple[Function, list[dict[str, Any]]]:
    """Return the function on the device, and what its report says about the host."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = build(lambda: model, DEVICE, Board(find_device(DEVICE).target), {}, folder)
    return function, json.loads((folder / "report.json").read_bytes())["host_fallback"]


def results(function: Function, inputs: Arrays) -> list[Any]:
    return [held.values() for held in function.run(inputs).values()]


def expected(model: onnx.ModelProto, inputs: Arrays) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return list(onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs))


X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
#: By name: a model, its inputs, the operators that the report names for each group.
CASES: dict[str, tuple[str, Arrays, list[str]]] = {
    "a length is an input": (
        """g (float n, float[3, 4] x) => (float[3, 4] y) <float zero = {0}, float one = {1}> {
            last = Add(n, one)  long = Range(zero, last, one)  twice = Add(long, long)
            s = ReduceSum<keepdims = 0>(twice)  a = Relu(x)  y = Mul(a, s) }""",
        {"n": np.array(5, np.float32), "x": X},
        ["Add, Range, ReduceSum"],
    ),
    "chosen elements": (
        """g (float[3, 4] x) => (float[3, 4] y) <float zero = {0}, int64[1] all = {-1}> {
            e = Exp(x)  m = Greater(x, zero)  m1 = Reshape(m, all)  k = Compress(e, m1)
            s = ReduceMax<keepdims = 0>(k)  y = Add(e, s) }""",
        {"x": X},
        ["Compress, ReduceMax"],
    ),
    "a way through the device and back": (
        """g (int64 n, float[3, 4] x) => (float[3, 4] y) <int64 zero = {0}, int64 one = {1}> {
            long = Range(zero, n, one)  f = Cast<to = 1>(long)  s = ReduceSum<keepdims = 0>(f)
            a = Mul(x, s)  b = ReduceSum<keepdims = 0>(a)  c = Mul(f, b)
            d = ReduceSum<keepdims = 0>(c)  y = Add(a, d) }""",
        {"n": np.array(4), "x": X},
        ["Range, Cast, ReduceSum, Mul"],
    ),
    "two groups": (
        """g (int64 n, float[3, 4] x) => (float[3, 4] y, float s)
        <int64 zero = {0}, int64 one = {1}, float half = {0.5}> {
            long = Range(zero, n, one)  f = Cast<to = 1>(long)  s = ReduceSum<keepdims = 0>(f)
            a = Mul(x, s)  t = Tanh(a)  m = Greater(t, half)  k = NonZero(m)
            g = Cast<to = 1>(k)  u = ReduceSum<keepdims = 0>(g)  y = Add(t, u) }""",
        {"n": np.array(4), "x": X},
        ["Range, Cast, ReduceSum", "NonZero, Cast, ReduceSum"],
    ),
    "a loop whose count is an input": (
        """g (int64 n, float[4] x) => (float[4] y, float[3, 4] all)
        <bool go = {1}, float[4] z = {0, 0, 0, 0}> {
            e = Relu(x)
            last, rows = Loop(n, go, z) <body = b (int64 i, bool c, float[4] s)
                => (bool d, float[4] t, float[4] u) {
                d = Identity(c)  t = Add(s, e)  u = Mul(t, t) }>
            all = Neg(rows)  y = Add(last, e) }""",
        {"n": np.array(3), "x": X[0]},
        ["Loop, Add"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_groups(name: str, tmp_path: Path) -> None:
    text, inputs, operators = CASES[name]
    model = parsed(text)
    wanted = expected(model, inputs)
    function, rows = compiled(model, tmp_path / "out")
    groups = [row for row in rows if row["op"] == GROUP]
    assert [row["reason"] for row in groups] == [
        f"its sizes depend on values ({names})" for names in operators
    ]
    for found in (
        results(function, inputs),
        results(host_function(optimise(model)), inputs),
        results(load_function(tmp_path / "out", Board(find_device(DEVICE).target)), inputs),
        results(load_function(tmp_path / "out", None), inputs),
    ):
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == other.shape
            assert np.allclose(one, other, rtol=1e-5, atol=1e-5)


def test_the_rest_stays_on_the_device(tmp_path: Path) -> None:
    text, _, _ = CASES["two groups"]
    _, rows = compiled(parsed(text), tmp_path / "out")
    assert {row["op"] for row in rows} == {GROUP}


def test_another_size_than_declared_is_one_diagnostic(tmp_path: Path) -> None:
    model = parsed(
        """g (int64 n, float[3] x) => (float[3] y) <int64 zero = {0}, int64 one = {1}> {
            long = Range(zero, n, one)  twice = Add(long, long)  f = Cast<to = 1>(twice)
            y = Mul(f, x) }"""
    )
    function, _ = compiled(model, tmp_path / "out")
    x = np.ones(3, np.float32)
    for one in (function, host_function(optimise(model))):
        for size in (2, 4, 0):
            with pytest.raises(PycompilerError) as caught:
                one.run({"n": np.array(size), "x": x})
            assert caught.value.code in ("P0602", "P0613")
        (found,) = results(one, {"n": np.array(3), "x": x})
        assert found.tolist() == [0, 2, 4]


def test_a_group_of_another_shape_names_its_value(tmp_path: Path) -> None:
    model = parsed(
        """g (float[4] x) => (float[2] y) <float zero = {0}> {
            m = Greater(x, zero)  k = Compress(x, m)  y = Relu(k) }"""
    )
    function, _ = compiled(model, tmp_path / "out")
    (found,) = results(function, {"x": np.array([1, -1, 2, -2], np.float32)})
    assert found.tolist() == [1, 2]
    with pytest.raises(PycompilerError, match=r"shape \(3,\).*declares \(2,\)") as caught:
        function.run({"x": np.array([1, 1, 2, -2], np.float32)})
    assert caught.value.code == "P0613"


def test_torch_functions_name_the_line(tmp_path: Path) -> None:
    def function(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"y": d["x"].exp() + d["x"][d["x"] > 0].sum()}

    x = torch.tensor(X)
    with pytest.warns(match=GROUP):
        call = context(DEVICE).compile(function, {"x": x}, tmp_path / "out")
    for sample in (x, -x, x.abs()):
        found = call({"x": sample})["y"].cpu()
        assert torch.allclose(found, function({"x": sample})["y"], rtol=1e-5, atol=1e-5)
    (row,) = report_of(tmp_path / "out")["host_fallback"]
    assert row["source"] == f"{__file__}:{function.__code__.co_firstlineno + 1}"


@pytest.mark.parametrize("seed", range(12))
def test_drawn_graphs(seed: int, tmp_path: Path) -> None:
    model = drawn(random.Random(seed))
    optimised = optimise(model)
    static_types(optimised)
    groups = [node for node in optimised.graph.node if group_of(node) is not None]
    assert groups, seed
    function = host_function(optimised)
    on_device = compiled(model, tmp_path / "out")[0] if seed < 4 else None
    for n in (1, 3, 7):
        inputs = {"n": np.array(n), "x": np.random.default_rng(n).random((3, 4), np.float32) - 0.5}
        for one in filter(None, (function, on_device)):
            for found, wanted in zip(results(one, inputs), expected(model, inputs), strict=True):
                assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4), seed


def drawn(source: random.Random) -> onnx.ModelProto:
    """Return a graph that goes from known to unknown sizes and back, some times."""
    lines = ["o0 = Range(zero, n, one)", "p0 = Cast<to = 1>(o0)"]
    known, open_ones, numbers = ["x"], ["p0"], ["half"]

    def add(pool: list[str], text: str) -> None:
        lines.append(f"v{len(lines)} = {text}")
        pool.append(f"v{len(lines) - 1}")

    for _ in range(source.randrange(4, 16)):
        kind, pick = source.randrange(7), source.choice
        if kind == 0:
            add(known, f"Tanh({pick(known)})")
        elif kind == 1:
            add(known, f"Mul({pick(known)}, {pick(numbers)})")
        elif kind == 2:
            add(open_ones, f"Sin({pick(open_ones)})")
        elif kind == 3:
            add(open_ones, f"Add({pick(open_ones)}, {pick(numbers)})")
        elif kind == 4:
            add(numbers, f"ReduceMean<keepdims = 0>({pick(open_ones)})")
        elif kind == 5:
            add(numbers, f"ReduceMean<keepdims = 0>({pick(known)})")
        else:
            chosen = pick(known)
            lines.append(f"m{len(lines)} = Less({chosen}, half)")
            lines.append(f"k{len(lines)} = NonZero(m{len(lines) - 1})")
            lines.append(f"f{len(lines)} = Cast<to = 1>(k{len(lines) - 1})")
            add(numbers, f"ReduceSum<keepdims = 0>(f{len(lines) - 1})")
    add(numbers, f"ReduceMean<keepdims = 0>({open_ones[-1]})")
    lines.append(f"y = Add({known[-1]}, {numbers[-1]})")
    return parsed(
        "g (int64 n, float[3, 4] x) => (float[3, 4] y)"
        f"<int64 zero = {{0}}, int64 one = {{1}}, float half = {{0.5}}> {{ {chr(10).join(lines)} }}"
    )


def test_results_of_unknown_size_are_refused() -> None:
    model = parsed("g (float[4] x) => (int64[1, k] y) { r = Relu(x)  y = NonZero(r) }")
    with pytest.raises(PycompilerError) as caught:
        static_types(optimise(model))
    assert caught.value.code == "P0103"
