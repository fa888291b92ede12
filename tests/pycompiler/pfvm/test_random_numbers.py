"""Random operators on the device, against a slow generator in numpy."""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled
from onnx import TensorProto, helper, numpy_helper

from pycompiler.build import host_function
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.random_numbers import set_first_call, with_random_numbers
from pycompiler.pfvm.session import Array
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction, Function
from pycompiler.scheduler.schedulers import SCHEDULERS

#: How far a normal number may lie from the formula of Box and Muller in exact arithmetic.
NORMAL_ERROR = 2e-6


def _mixed(bits: int) -> int:
    """Return the finalizer of MurmurHash3, with shifts by 16."""
    for factor in (0x85EBCA6B, 0xC2B2AE35, 1):
        bits = (bits ^ bits >> 16) * factor % 2**32
    return bits


def _uniform(shape: tuple[int, ...], key: int, call: int, digits: int = 24) -> Array:
    """Return the numbers of a draw, one element after the other."""
    start = _mixed((call * 0x9E3779B9 + key) % 2**32)
    top = [_mixed((place + start) % 2**32) >> 32 - digits for place in range(int(np.prod(shape)))]
    # The device reads them as signed integers, and adds a half.
    half = 1 << digits - 1
    return np.array([(one + half) % (2 * half) for one in top]).reshape(shape) / 2.0**digits


def _site(number: int) -> int:
    return number * -2048144789 % 2**31


def _seeded(seed: float, draw: int) -> int:
    bits = int(np.float32(seed).view(np.uint32))
    return _mixed((bits + draw * -2048144789) % 2**32) % 2**31


def _normal(shape: tuple[int, ...], keys: tuple[int, int], call: int) -> Array:
    length, angle = (_uniform(shape, key, call) for key in keys)
    found: Array = np.sqrt(-2 * np.log1p(-length)) * np.cos(2 * np.pi * angle)
    return found


def _model(nodes: list[onnx.NodeProto], inputs: dict[str, Array]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def _function(model: onnx.ModelProto, **options: Any) -> tuple[Function, dict[str, Any]]:
    result, report = compiled(with_random_numbers(optimise(model)), **options)
    return DeviceFunction(result.app, Board(load_target("mini"))), report


def _called(function: Function, inputs: dict[str, Array]) -> dict[str, Array]:
    return {key: held.values() for key, held in function.run(inputs).items()}


def _node(op: str, inputs: list[str], result: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [result], name=result, **attributes)


SHAPE = (6, 10, 7)
CHANCES = np.linspace(0, 1, 420, dtype=np.float32).reshape(SHAPE)


def _all_kinds() -> onnx.ModelProto:
    nodes = [
        _node("RandomUniformLike", ["x"], "like", low=-2.0, high=6.0),
        _node("RandomUniform", [], "half", shape=SHAPE, dtype=TensorProto.FLOAT16),
        _node("RandomUniform", [], "double", shape=SHAPE, dtype=TensorProto.DOUBLE, seed=2.5),
        _node("RandomNormalLike", ["x"], "normal", mean=3.0, scale=2.0, seed=2.5),
        _node("Bernoulli", ["x"], "chosen", dtype=TensorProto.INT32),
    ]
    return _model(nodes, {"x": CHANCES})


def _wanted(call: int) -> dict[str, Array]:
    return {
        "like": (_uniform(SHAPE, _site(1), call) * 8 - 2).astype(np.float32),
        "half": _uniform(SHAPE, _site(2), call, 11).astype(np.float16),
        "double": _uniform(SHAPE, _seeded(2.5, 0), call),
        "chosen": (_uniform(SHAPE, _site(6), call) < CHANCES).astype(np.int32),
    }


@pytest.fixture(scope="module")
def kinds() -> tuple[Function, dict[str, Any]]:
    return _function(_all_kinds(), strict=True)


def test_bits_are_those_of_the_slow_generator(kinds: tuple[Function, dict[str, Any]]) -> None:
    function, report = kinds
    assert report["host_fallback"] == []
    host = host_function(with_random_numbers(optimise(_all_kinds())))
    for call in range(2):
        found, here = _called(function, {"x": CHANCES}), _called(host, {"x": CHANCES})
        for name, wanted in _wanted(call).items():
            assert found[name].dtype == wanted.dtype, name
            assert np.array_equal(found[name], wanted), name
            assert np.array_equal(here[name], wanted), name
        exact = 2 * _normal(SHAPE, (_seeded(2.5, 0), _seeded(2.5, 1)), call) + 3
        for ours in (found, here):
            assert np.abs(ours["normal"] - exact).max() < NORMAL_ERROR * 2


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_no_scheduler_changes_a_number(scheduler: str) -> None:
    nodes = [
        _node("RandomUniform", [], "a", shape=(3, 5)),
        _node("RandomUniformLike", ["x"], "b"),
        _node("Sub", ["a", "b"], "c"),
    ]
    x = np.zeros((3, 5), np.float32)
    found = _called(_function(_model(nodes, {"x": x}), scheduler=scheduler)[0], {"x": x})
    a, b = (_uniform((3, 5), _site(number), 0) for number in (1, 2))
    assert np.array_equal(found["c"], (a - b).astype(np.float32))


def _distance(values: Array, chance: Any) -> float:
    """Return the statistic of Kolmogorov and Smirnov, times the root of the count."""
    values, count = np.sort(values.ravel()), values.size
    wanted, places = chance(values), np.arange(count)
    apart = np.maximum(wanted - places / count, (places + 1) / count - wanted)
    return float(apart.max() * count**0.5)


def _below(values: Array) -> Array:
    """Return the share of a normal distribution below each value."""
    return np.array([(1 + erf(value / sqrt(2))) / 2 for value in values])


@pytest.mark.parametrize("first_call", [0, 1, 77])
def test_distributions(first_call: int) -> None:
    """One draw in a thousand of a good generator has a larger distance than 1.95."""
    nodes = [
        _node("RandomUniform", [], "u", shape=(64, 128)),
        _node("RandomNormal", [], "n", shape=(64, 128)),
    ]
    model = _model(nodes, {"x": np.zeros(1, np.float32)})
    set_first_call(model, first_call)
    host = host_function(with_random_numbers(optimise(model)))
    found = _called(host, {"x": np.zeros(1, np.float32)})
    uniform, normal = found["u"].astype(float), found["n"].astype(float)
    assert _distance(uniform, lambda values: values) < 1.95
    assert _distance(normal, _below) < 1.95
    count = uniform.size
    assert abs(uniform.mean() - 0.5) * (12 * count) ** 0.5 < 4
    assert abs(uniform.var() * 12 - 1) * (count * 5 / 4) ** 0.5 < 4
    assert abs(normal.mean()) * count**0.5 < 4
    assert abs(normal.var() - 1) * (count / 2) ** 0.5 < 4
    assert abs(np.corrcoef(uniform.ravel(), normal.ravel())[0, 1]) * count**0.5 < 4


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE])
def test_no_number_reaches_the_end(kind: int) -> None:
    """One number of 2,048 of 11 digits would round to it."""
    low = 1 if kind == TensorProto.FLOAT16 else 2**20
    shape = (64, 4096)
    node = _node("RandomUniform", [], "y", shape=shape, low=float(low), high=low + 1.0, dtype=kind)
    x = {"x": np.zeros(1, np.float32)}
    host = host_function(with_random_numbers(optimise(_model([node], x))))
    found = _called(host, x)["y"]
    assert low <= found.min()
    assert found.max() < low + 1


def test_classes_without_a_chance_are_never_drawn() -> None:
    logits = np.full((3, 5), -np.inf, np.float32)
    logits[0, [1, 3]] = np.log([0.25, 0.75])
    logits[1, 4] = logits[2, 0] = 7
    node = _node("Multinomial", ["x"], "y", sample_size=64, dtype=TensorProto.INT64)
    function, report = _function(_model([node], {"x": logits}))
    assert report["host_fallback"] == []
    (found,) = _called(function, {"x": logits}).values()
    draws = _uniform((3, 64), _site(1), 0)
    wanted = np.array([np.where(1 - draws[0] > 0.25, 3, 1), np.full(64, 4), np.zeros(64)])
    assert np.array_equal(found, wanted)


def test_dropout_that_an_input_switches() -> None:
    x = np.arange(1, 61, dtype=np.float32).reshape(4, 15)
    node = helper.make_node("Dropout", ["x", "share", "on"], ["y", "mask"], name="d")
    inputs = {"x": x, "share": np.array(0.25, np.float32), "on": np.array(True)}
    model = _model([node], inputs)
    model.graph.output.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, x.shape))
    function, _ = _function(model, strict=True)
    kept = _uniform(x.shape, _site(1), 0) < 0.75
    found = _called(function, inputs)
    assert np.array_equal(found["mask"], kept)
    assert np.allclose(found["y"], np.where(kept, x / 0.75, 0), rtol=2**-18)
    found = _called(function, {**inputs, "on": np.array(False)})
    assert np.array_equal(found["y"], x)
    assert found["mask"].all()


def test_each_turn_of_a_loop_draws_anew() -> None:
    cond = helper.make_tensor_value_info("cond", TensorProto.BOOL, ())
    body = helper.make_graph(
        [
            _node("RandomUniform", [], "drawn", shape=(4, 4)),
            _node("Add", ["state", "drawn"], "next"),
            _node("Identity", ["cond"], "stay"),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, ()),
            cond,
            helper.make_tensor_value_info("state", TensorProto.FLOAT, (4, 4)),
        ],
        [
            helper.make_tensor_value_info("stay", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, (4, 4)),
        ],
    )
    x = np.zeros((4, 4), np.float32)
    model = _model([_node("Loop", ["count", "", "x"], "y", body=body)], {"x": x})
    model.graph.initializer.append(numpy_helper.from_array(np.array(3), "count"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 4)))
    found = _called(_function(model, strict=True)[0], {"x": x})["y"]
    wanted = sum(_uniform((4, 4), _site(number), 0) for number in (1, 2, 3))
    assert np.allclose(found, wanted, atol=2**-20)


def test_without_this_pass_the_device_makes_none() -> None:
    """Pieces of a model, for instance, keep their random operators."""
    x = np.zeros((4, 4), np.float32)
    model = optimise(_model([_node("RandomUniformLike", ["x"], "y")], {"x": x}))
    with pytest.raises(PycompilerError, match="makes no random numbers") as caught:
        compiled(model, strict=True)
    assert caught.value.code == "P0303"
