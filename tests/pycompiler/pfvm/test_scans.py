"""Sums and products of prefixes: long axes are rows and columns, in both directions."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from net import Net


@pytest.mark.parametrize("size", [1, 2, 31, 33, 100, 131])
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_prefixes(op: str, size: int) -> None:
    """The same as numpy's, from either end, with or without the element itself."""
    seed = random.randrange(10**6)
    print(f"{seed=}")
    rng = random.Random(seed)
    net = Net(rng, *((3, size) if rng.random() < 0.5 else (size, 3)))
    axis = net.inputs["x"].index(size)
    reverse, exclusive = rng.randrange(2), rng.randrange(2)
    place = net.array(np.array(axis), np.int64)
    out = net.put(op, "x", place, reverse=reverse, exclusive=exclusive)
    model = net.model([out])
    model.opset_import[0].version, model.ir_version = 26, 12  # the first that has CumProd
    model = onnx.shape_inference.infer_shapes(model)
    x = net.draw.uniform(0.9, 1.1, net.inputs["x"]).astype(np.float32)
    if op == "CumSum":  # an infinity reaches what follows only
        x.reshape(-1)[rng.randrange(x.size)] = rng.choice([1.0, np.inf])
    result, report = compiled(model, "mini")
    assert report["host_fallback"] == []
    found = run(result, {"x": x}, "mini")[out]
    np.testing.assert_allclose(found, _prefixes(op, x, axis, reverse, exclusive), rtol=2e-5)


def _prefixes(op: str, x: np.ndarray, axis: int, reverse: int, exclusive: int) -> np.ndarray:
    wide = np.flip(x.astype(np.float64), axis) if reverse else x.astype(np.float64)
    join, neutral = (np.add, 0.0) if op == "CumSum" else (np.multiply, 1.0)
    if exclusive:
        ends = [(0, 0), (0, 0)]
        ends[axis] = (1, 0)
        wide = np.pad(wide, ends, constant_values=neutral)
        wide = wide.take(range(x.shape[axis]), axis)
    found = join.accumulate(wide, axis)
    return np.flip(found, axis) if reverse else found


@pytest.mark.parametrize("size", [1, 2, 7, 12, 33])
def test_products_of_an_axis(size: int) -> None:
    """All factors meet once, whatever their number."""
    seed = random.randrange(10**6)
    print(f"{seed=}")
    net = Net(random.Random(seed), 5, size)
    out = net.put("ReduceProd", "x", net.ints(1), keepdims=0)
    x = net.draw.uniform(0.9, 1.1, (5, size)).astype(np.float32)
    result, report = compiled(net.model([out]), "mini")
    assert report["host_fallback"] == []
    found = run(result, {"x": x}, "mini")[out]
    np.testing.assert_allclose(found, x.astype(np.float64).prod(1), rtol=1e-5)
