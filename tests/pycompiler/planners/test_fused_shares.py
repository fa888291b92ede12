"""Means of singles multiply by the reciprocal of a count in one node, rounded once."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run
from net import Net

from pycompiler.graph.dtypes import MNDtype
from pycompiler.layers.functions.arithmetic import SHARE

MEAN = [("ReduceMean", ["x"], "y")]
ROWS = [("ReduceMean", ["x", "axes"], "y")]
LAST = {"axes": np.array([1])}
#: Models by name: nodes, shape of x, and whether the mean is one node.
MODELS = {
    "seven": (MEAN, (5, 7), True),
    "a power of two": (MEAN, (4, 8), False),
    "mean of several": ([("Mean", ["x", "x", "x"], "y")], (5, 7), True),
    "a batch": ([("GlobalAveragePool", ["x"], "y")], (2, 3, 7, 7), True),
}


@pytest.mark.parametrize("name", MODELS)
def test_which_means_are_one_node(name: str) -> None:
    nodes, shape, one = MODELS[name]
    result, _ = compiled(model_of(nodes, {"x": shape}, ["y"]))
    on_device = [node.op for node in result.graph.nodes]
    assert (SHARE in on_device) == one
    wide = [v.name for v in result.graph.values.values() if v.dtype is MNDtype.DOUBLE and v.shape]
    assert not wide, "an axis of singles and doubles has no digit on W"
    assert "Cast" not in on_device


@pytest.mark.parametrize("name", ["wide", "narrow"])
def test_a_value_between_that_an_override_names_stays(name: str) -> None:
    model = model_of(MEAN, {"x": (5, 7)}, ["y"])
    plain, _ = compiled(model, fuse_elementwise=False)
    between = {"wide": "y.Cast", "narrow": "y.Mul"}[name]
    result, _ = compiled(model, overrides={between: {"location": "LM0"}})
    assert SHARE in [node.op for node in plain.graph.nodes]
    assert SHARE not in [node.op for node in result.graph.nodes]


@pytest.mark.parametrize("seed", range(3))
def test_a_part_of_a_sum_is_rounded_once(seed: int) -> None:
    """The quotient of the sum that the device has, near the exact one; equal numbers give it."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([3, 7, 49, 100, 197, 999]))
    values = np.exp(draw.uniform(-60, 60, 200)) * draw.choice([-1, 1], 200)
    sums = np.zeros((200, count), np.float32)
    sums[:, 0] = values
    # A sum of equal numbers: few bits, so that no sum on the way is rounded.
    equal = np.arange(1, 65, dtype=np.float32)
    x = np.concatenate([sums, np.repeat(equal[:, None], count, 1)])
    result, _ = compiled(model_of(ROWS, {"x": x.shape}, ["y"], LAST))
    found = run(result, {"x": x})["y"].reshape(-1)
    hint = f"seed {seed}: {count}"
    for value, got in zip(sums[:, 0], found, strict=False):
        exact = Fraction(float(value)) / count
        ulp = Fraction(float(np.spacing(np.abs(np.float32(got)))))
        assert abs(Fraction(float(got)) - exact) <= ulp / 2 * (1 + Fraction(1, 2**20)), hint
    assert np.array_equal(found[200:], equal), hint


@pytest.mark.parametrize(("factor", "one"), [(1e40, False), (1e-50, False), (-1 / 3, True)])
def test_numbers_that_two_singles_do_not_hold(factor: float, one: bool) -> None:
    """A product with a double beyond the range of singles stays one of doubles."""
    net = Net(random.Random(1), 2, 8)
    wide = net.put("Cast", "x", to=onnx.TensorProto.DOUBLE)
    product = net.put("Mul", wide, net.array(np.asarray(factor), np.float64))
    model = net.model([net.put("Cast", product, to=onnx.TensorProto.FLOAT)])
    result, _ = compiled(model)
    assert (SHARE in [node.op for node in result.graph.nodes]) == one
    x = np.float32([[3.0, -1.0, 2.0**-30, 2.0**60, 1e20, 1e-20, 1e-37, 0.0]] * 2)
    found = run(result, {"x": x})[model.graph.output[0].name]
    with np.errstate(over="ignore", under="ignore"):
        wanted = (x.astype(np.float64) * factor).astype(np.float32)
    wanted[np.abs(wanted) < 2.0**-126] = 0
    assert np.array_equal(found, wanted)


def test_infinities_and_zeros() -> None:
    x = np.zeros((4, 7), np.float32)
    x[0, 0], x[1, 3] = np.inf, -np.inf
    x[3] = 3.4e38
    result, _ = compiled(model_of(ROWS, {"x": x.shape}, ["y"], LAST))
    found = run(result, {"x": x})["y"].reshape(-1)
    assert np.array_equal(found, np.float32([np.inf, -np.inf, 0, np.inf]))
