"""Doubles: functions over their whole range, networks of `float64`, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from compiling import compiled, context, model_of, run
from double_functions import FUNCTIONS, LONG, SMALLEST, drawn_doubles, errors, results
from onnx import TensorProto
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.tolerance import FUNCTION, RELATIVE, WIDE_NETWORKS

LONG_RUN = bool(os.environ.get("EMU2_LONG"))


@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="the host has no wider numbers")
@pytest.mark.parametrize("op", FUNCTIONS if LONG_RUN else ("Reciprocal", "Sqrt", "Exp", "Log"))
def test_functions_over_their_whole_range(op: str) -> None:
    _, found, wanted, relative = errors(op)
    assert relative.max() <= RELATIVE["Double", FUNCTION]
    small, large = np.abs(wanted) < SMALLEST / 2, np.abs(wanted) > 1.8e308
    assert not found[small].any()
    assert np.array_equal(found[large], np.sign(wanted[large]).astype(float) * np.inf)


def test_powers_of_zero_and_infinity() -> None:
    x, y = np.array([0.0, 0.0, 0.0, np.inf, 5.0]), np.array([2.0, -2.0, 0.0, 3.0, 0.0])
    assert results("Pow", (x, y)).tolist() == [0, np.inf, 1, np.inf, 1]


def test_celu_of_a_negative_alpha() -> None:
    """Below 0 its exponent is positive; the bound at 0 made all of these results 0."""
    x = np.array([-900.0, -3.0, -0.5, -1e-9, 0.0, 0.5, 3.0, 900.0])
    found = results("Celu with a negative alpha", (x,))
    wanted = nn.functional.celu(torch.from_numpy(x), -1.5).numpy()
    np.testing.assert_allclose(found, wanted, RELATIVE["Double", FUNCTION], 0)


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


def test_norms_keep_an_epsilon_of_doubles(tmp_path: Path) -> None:
    """The numbers are so small that an epsilon of a single would show."""
    made, F = torch.Generator().manual_seed(5), nn.functional  # noqa: N806
    x = torch.randn(2, 6, 5, 3, dtype=torch.float64, generator=made) * 1e-2
    w, b, mean = torch.randn(3, 6, dtype=torch.float64, generator=made)
    variance = mean.square() * 1e-3

    def norms(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x, w, b, mean, variance = d.values()
        return {
            "layer": F.layer_norm(x, (5, 3)),
            "group": F.group_norm(x, 2, w, b),
            "instance": F.instance_norm(x, weight=w, bias=b),
            "instance, known": F.instance_norm(x, mean, variance, use_input_stats=False),
            "batch": F.batch_norm(x, None, None, w, b, training=True),
            "batch, known": F.batch_norm(x, mean, variance, w, b),
        }

    inputs = {"x": x, "w": w, "b": b, "mean": mean, "variance": variance}
    function = context("emu2:mini").compile(
        norms, inputs, tmp_path / "out", options={"strict": True}
    )
    found = function(inputs)
    for name, wanted in norms(inputs).items():
        torch.testing.assert_close(found[name].cpu(), wanted, rtol=1e-12, atol=1e-12)


def test_trigamma_is_the_zeta_function(tmp_path: Path) -> None:
    """torch's own trigamma of doubles is 5e-10 off, so the reference is a zeta function."""
    x = torch.linspace(0.3, 9, 40, dtype=torch.float64)
    zeta = torch.special.zeta(torch.tensor(2.0, dtype=torch.float64), x)
    host = context("pfvm:cpu")
    run = host.compile(lambda d: {"y": torch.polygamma(1, d["x"])}, {"x": x}, tmp_path / "out")
    torch.testing.assert_close(run({"x": x})["y"].cpu(), zeta, rtol=1e-14, atol=0)


def test_what_is_refused() -> None:
    shapes = {"a": (4, 8), "b": (8, 4)}
    model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"], elem=TensorProto.DOUBLE)
    for decision in ({"precision": "half"}, {"dtype": "Half"}):
        with pytest.raises(PycompilerError, match="products of doubles have one precision"):
            compiled(model, overrides={"y": decision})


@pytest.mark.parametrize("count", [96, 20000] if LONG_RUN else [96])
def test_remainders_are_exact_over_the_whole_range(count: int) -> None:
    """Draw any two numbers, fractions with ends of ones or zeros, and neighbours of multiples."""
    made = np.random.default_rng(7)
    x, y = drawn_doubles(made, count), drawn_doubles(made, count)
    third = count // 3
    y[:third] = x[:third] / made.uniform(1, 2000, third)
    few = np.round(made.uniform(-900, 900, third))
    with np.errstate(all="ignore"):
        x[third : 2 * third] = np.nextafter(y[third : 2 * third] * few, few.sum())
    y = np.where(np.abs(y) < SMALLEST, 1.0, y)
    x = np.where((np.abs(x) < SMALLEST) | ~np.isfinite(x), 0.0, x)
    found, wanted = results("Mod with fmod", (x, y)), np.fmod(x, y)
    wanted = np.where(np.abs(wanted) < SMALLEST, 0, wanted)
    bad = found != wanted
    assert not bad.any(), (x[bad][:5], y[bad][:5], found[bad][:5], wanted[bad][:5])


def test_the_bound_of_products_of_doubles() -> None:
    shapes = {"a": (16, 16), "b": (16, 16)}
    bounds = {}
    for elem in (TensorProto.FLOAT, TensorProto.DOUBLE):
        model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"], elem=elem)
        bounds[elem] = compiled(model)[1]["bound"]["mau"]
    # 8 MABs do 4 x 8 multiply-adds of singles a cycle, and 4 x 4 / 2 of doubles.
    assert bounds == {TensorProto.FLOAT: 16, TensorProto.DOUBLE: 64}
