"""Doubles: functions over their whole range, networks of `float64`, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from compiling import compiled, context, model_of, run
from onnx import TensorProto, helper
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.tolerance import FUNCTION, RELATIVE, WIDE_NETWORKS

Array = np.ndarray[Any, Any]
LONG = np.longdouble
LONG_RUN = bool(os.environ.get("EMU2_LONG"))
SMALLEST, LARGEST = 2.0**-1022, 1.7e308


def everywhere(made: np.random.Generator) -> Array:
    """Return numbers of every exponent and both signs."""
    exponents = np.repeat(np.arange(-1022, 1023), 2)
    signs = np.tile([-1.0, 1.0], len(exponents) // 2)
    return signs * made.uniform(1, 2, len(exponents)) * np.exp2(exponents)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def selu(x: Array) -> Array:
    """SELU with the factors that ONNX keeps as singles."""
    alpha, gamma = (LONG(np.float32(number)) for number in (1.6732632423543772, 1.0507009873554805))
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def by_mpmath(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Return a function of arrays that numpy has no wide form of."""

    def one(x: Any) -> Any:
        with mpmath.workprec(160):
            found = function(mpmath.mpf(float(x)))
            high = float(found)
            return LONG(high) + LONG(float(found - high)) if np.isfinite(high) else LONG(high)

    return lambda x: np.array([one(number) for number in x], LONG)


def gelu(x: Any) -> Any:
    """Return x Q(-x); far from 0, it is x or nothing."""
    if abs(x) > 60:
        return max(x, mpmath.mpf(0))
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


#: The function in more digits, and what is drawn beside numbers of every exponent.
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], tuple[float, float]]] = {
    "Reciprocal": (lambda x: 1 / x, (-4, 4)),
    "Sqrt": (lambda x: np.sqrt(np.abs(x)), (0, 4)),
    "Exp": (np.exp, (-710, 710)),
    "Log": (lambda x: np.log(np.abs(x)), (0.5, 2)),
    "Sigmoid": (sigmoid, (-720, 720)),
    "Tanh": (np.tanh, (-22, 22)),
    "Swish": (lambda x: x * sigmoid(x), (-720, 40)),
    "Softplus": (softplus, (-720, 40)),
    "Elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), (-40, 4)),
    "Selu": (selu, (-40, 4)),
    "Celu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), (-40, 4)),
    "HardSwish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (-4, 4)),
    "Sin": (np.sin, (-9, 9)),
    "Cos": (np.cos, (-9, 9)),
    "Tan": (np.tan, (-9, 9)),
    "Atan": (np.arctan, (-4, 4)),
    "Asin": (np.arcsin, (-1, 1)),
    "Acos": (np.arccos, (-1, 1)),
    "Sinh": (np.sinh, (-711, 711)),
    "Cosh": (np.cosh, (-711, 711)),
    "Asinh": (np.arcsinh, (-4, 4)),
    "Acosh": (np.arccosh, (1, 4)),
    "Atanh": (np.arctanh, (-1, 1)),
    "Erf": (by_mpmath(mpmath.erf), (-6, 6)),
    "Gelu": (by_mpmath(gelu), (-39, 8)),
}
#: Where the functions that are not defined everywhere are.
DOMAINS = {"Asin": (-1, 1), "Acos": (-1, 1), "Atanh": (-1, 1), "Acosh": (1, np.inf)}
#: Doubles that lie near multiples of quarter turns, the nearest of all among them.
NEAR_TURNS = (6381956970095103 * 2.0**797, pi / 2, pi, 3 * pi / 2, 1e22, 355.0)


@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="the host has no wider numbers")
@pytest.mark.parametrize(
    "op", FUNCTIONS if LONG_RUN else ("Reciprocal", "Sqrt", "Exp", "Log", "Sin", "Atan", "Erf")
)
def test_functions_over_their_whole_range(op: str) -> None:
    function, bounds = FUNCTIONS[op]
    made = np.random.default_rng(len(op))
    x = np.concatenate([everywhere(made), made.uniform(*bounds, 2000)])
    if op in ("Sqrt", "Log"):
        x = np.abs(x)
    x = np.clip(np.append(x, NEAR_TURNS), *DOMAINS.get(op, (-np.inf, np.inf)))
    node = helper.make_node(op, ["x"], ["y"])
    infos = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, x.shape) for n in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    found = run(result, {"x": x})["y"]
    with np.errstate(all="ignore"):
        wanted = function(x.astype(LONG))
    inside = (np.abs(wanted) >= SMALLEST) & (np.abs(wanted) <= LARGEST)
    errors = np.abs(found.astype(LONG) - wanted)[inside] / np.abs(wanted)[inside]
    assert errors.max() <= RELATIVE["Double", FUNCTION]
    small, large = np.abs(wanted) < SMALLEST / 2, np.abs(wanted) > 1.8e308
    assert not found[small].any()
    assert np.array_equal(found[large], np.sign(wanted[large]).astype(float) * np.inf)


def test_powers_over_their_whole_range() -> None:
    """Draw a base of any size and an exponent for which the power is in range, and whole ones."""
    made = np.random.default_rng(5)
    x = np.abs(everywhere(made))
    y = made.uniform(-1020, 1020, x.size) / np.maximum(np.abs(np.log2(x)), 1e-3)
    y = np.clip(y, -1e6, 1e6)
    near = 1 + made.uniform(-0.4, 0.4, 2000)
    signed = made.uniform(-9, 9, 500)
    x = np.concatenate([x, near, signed, [0.0, 0.0, 0.0, np.inf, 5.0]])
    y = np.concatenate([y, made.uniform(-700, 700, 2000), made.integers(-20, 20, 500)])
    y = np.concatenate([y, [2.0, -2.0, 0.0, 3.0, 0.0]])
    model = model_of(
        [("Pow", ["x", "y"], "z")], {"x": x.shape, "y": y.shape}, ["z"], elem=TensorProto.DOUBLE
    )
    result, report = compiled(model)
    assert report["host_fallback"] == []
    found = run(result, {"x": x, "y": y})["z"]
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(LONG), y.astype(LONG))
    assert np.array_equal(found[-5:], [0, np.inf, 1, np.inf, 1])
    inside = (np.abs(wanted) >= SMALLEST) & (np.abs(wanted) <= LARGEST)
    errors = np.abs(found.astype(LONG) - wanted)[inside] / np.abs(wanted)[inside]
    assert errors.max() <= RELATIVE["Double", FUNCTION]
    assert not found[np.abs(wanted) < SMALLEST / 2].any()


def test_ends_of_the_range() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, 1e-310])
    with_ends = {
        "Reciprocal": [np.inf, -np.inf, 0, 0, np.inf],
        "Exp": [1, 1, np.inf, 0, 1],
        "Sigmoid": [0.5, 0.5, 1, 0, 0.5],
        "Tanh": [0, 0, 1, -1, 0],
        "Round": [0, 0, np.inf, -np.inf, 0],
        "Floor": [0, 0, np.inf, -np.inf, 0],
    }
    nodes = [(op, ["x"], op.lower()) for op in with_ends]
    outputs = [name.lower() for name in with_ends]
    model = model_of(nodes, {"x": x.shape}, outputs, elem=TensorProto.DOUBLE)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    found = run(result, {"x": x})
    for op, wanted in with_ends.items():
        assert np.array_equal(found[op.lower()], wanted), op


class Network(nn.Module):
    """Layers as people write them."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(13, 20), nn.LayerNorm(20), nn.Linear(20, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return probabilities."""
        hidden = torch.tanh(self.norm(self.one(x)))
        scores = self.two(hidden * torch.sigmoid(hidden)) / (1 + hidden.square().sum(-1, True))
        return torch.where(scores > 0, scores, scores.exp() - 1).softmax(-1)


@pytest.mark.parametrize("mode", ["float", "mixed"] if LONG_RUN else ["mixed"])
def test_a_network_of_float64(mode: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = Network().double().eval()
    model.norm.eps = 2.0**-17  # a single, as ONNX keeps it
    inputs = {"x": torch.randn(5, 13, dtype=torch.float64)}
    made = context("emu2:mini")
    options = {"float_dtype": mode, "strict": True}
    function = made.compile(
        lambda d: {"y": model(d["x"])}, inputs, tmp_path / "out", options=options
    )
    found, wanted = function(inputs)["y"].cpu(), model(inputs["x"])
    assert found.dtype == torch.float64
    assert (found - wanted).abs().max() <= WIDE_NETWORKS * wanted.abs().max()


def test_what_is_refused() -> None:
    shapes = {"a": (4, 8), "b": (8, 4)}
    model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"], elem=TensorProto.DOUBLE)
    for decision in ({"precision": "half"}, {"dtype": "Half"}):
        with pytest.raises(PycompilerError, match="products of doubles have one precision"):
            compiled(model, overrides={"y": decision})
    node = helper.make_node("LRN", ["x"], ["y"], size=3)
    infos = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, (1, 4, 3, 3)) for n in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    with pytest.raises(PycompilerError, match="no layer for LRN") as info:
        compiled(model, strict=True)
    assert info.value.code == "P0303"


def test_the_bound_of_products_of_doubles() -> None:
    shapes = {"a": (16, 16), "b": (16, 16)}
    bounds = {}
    for elem in (TensorProto.FLOAT, TensorProto.DOUBLE):
        model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"], elem=elem)
        bounds[elem] = compiled(model)[1]["bound"]["mau"]
    # 8 MABs do 4 x 8 multiply-adds of singles a cycle, and 4 x 4 / 2 of doubles.
    assert bounds == {TensorProto.FLOAT: 16, TensorProto.DOUBLE: 64}
