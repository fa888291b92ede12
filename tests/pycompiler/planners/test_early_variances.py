"""Variances behind convolutions in half, from the sums of values and of squares."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from net import Net

from pycompiler.graph.text import parse_graph

MACHINE = "mini"


def normalized(
    shape: tuple[int, ...],
    *,
    axes: tuple[int, ...] = (0, 2, 3),
    bias: bool = False,
    between: str | None = None,
    unbiased: bool = False,
    seed: int = 1,
) -> tuple[onnx.ModelProto, str]:
    """Return Conv and BatchNorm, written as torch does; and the name of the variance.

    ``between`` is an operator behind the convolution. The weights of the first channel are zero.
    """
    net = Net(random.Random(seed), *shape)
    channels = shape[1]
    weights = net.draw.standard_normal((16, channels, 1, 1)) / channels
    weights[0] = 0
    given = [net.array(weights), *([net.weights(16)] if bias else [])]
    made = net.put("Conv", "x", *given, kernel_shape=[1, 1])
    if between is not None:
        made = net.put(between, made)
    mean = net.put("ReduceMean", made, net.ints(0, 2, 3), keepdims=1)
    apart = net.put("Sub", made, mean)
    squares = net.put("Mul", apart, apart)
    if unbiased:
        count = shape[0] * shape[2] * shape[3] - 1
        total = net.put("ReduceSum", squares, net.ints(*axes), keepdims=1)
        variance = net.put("Div", total, net.number(count))
    else:
        variance = net.put("ReduceMean", squares, net.ints(*axes), keepdims=1)
    scale = net.put("Sqrt", net.put("Add", variance, net.number(1e-5)))
    return net.model([net.put("Div", apart, scale), variance]), variance


def parted(result: object) -> bool:
    graph = parse_graph(result.dumps["layout.dtype.txt"])  # type: ignore[attr-defined]
    return any(name.endswith(".squares") for name in graph.values)


@pytest.mark.parametrize("seed", range(6))
def test_the_variances_are_the_same(seed: int) -> None:
    """Drawn shapes and means; a channel without deviation gives zeros, no NaN."""
    draw = np.random.default_rng(seed)
    channels = int(draw.choice([16, 32, 48]))
    shape = (int(draw.integers(1, 5)), channels, int(draw.integers(1, 9)), int(draw.integers(2, 9)))
    offset, unbiased = float(draw.choice([0, 1, 30])), bool(draw.integers(2))
    model, variance = normalized(shape, unbiased=unbiased, seed=seed)
    y = model.graph.output[0].name
    result, _ = compiled(model, MACHINE, float_dtype="mixed")
    assert parted(result)
    data = draw.standard_normal(shape).astype(np.float32) + np.float32(offset)
    found = run(result, {"x": data}, MACHINE)
    # The factors are halves for torch too: only the variance is computed in another way.
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])[:, :, 0, 0]
    half = data.astype(np.float16).astype(np.float64)
    exact = np.einsum("oc,nchw->nohw", weights.astype(np.float16).astype(np.float64), half)
    mean = exact.mean((0, 2, 3), keepdims=True)
    wanted = exact.var((0, 2, 3), ddof=int(unbiased), keepdims=True)
    hint = f"seed {seed}: {shape}, offset {offset}, unbiased {unbiased}"
    error = np.abs(found[variance] - wanted)
    # Sums of rounded products: block floats of halves, and bits that a large mean takes.
    bound = 0.02 * wanted + 2.0**-9 * np.sqrt(wanted) * np.abs(mean) + 2.0**-22 * mean**2
    assert (error <= bound + 1e-12).all(), hint
    assert (found[variance] >= 0).all(), hint
    assert np.isfinite(found[y]).all(), hint
    assert not found[y][:, 0].any(), hint


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {"float_dtype": "float"}),
        ({"bias": True}, {}),  # the mean may be as large as it likes
        ({"between": "Tanh"}, {}),  # no result of a product
        ({"axes": (0, 2)}, {}),  # no variance
        ({}, {"overrides": {}}),  # the user decides about the squares
    ],
)
def test_others_wait_for_the_mean(more: dict[str, object], options: dict[str, object]) -> None:
    model, _ = normalized((2, 16, 3, 3), **more)  # type: ignore[arg-type]
    if "overrides" in options:
        mul = next(node for node in model.graph.node if node.op_type == "Mul")
        options = {"overrides": {mul.output[0]: {"keep": "LM"}}}
    result, _ = compiled(model, MACHINE, **{"float_dtype": "mixed", **options})
    assert not parted(result)


def parted_sums(
    *,
    axes: tuple[int, ...] | None = (0, 2, 3),
    turned: bool = False,
    factors: int = 1,
    keep: int = 1,
) -> bool:
    """Whether a variance that nothing else belongs to is computed in parts.

    ``turned`` exchanges both axes of pictures in the mean; the mean is a product with ``factors``
    numbers.
    """
    net = Net(random.Random(1), 4, 16, 4, 4)
    made = net.put("Conv", "x", net.weights(16, 16, 1, 1), kernel_shape=[1, 1])
    over = () if axes is None else (net.ints(*axes),)
    count = np.prod([(4, 16, 4, 4)[axis] for axis in axes or range(4)])
    number = net.array(np.full((1, factors, 1, 1) if factors > 1 else (), 1 / count))
    mean = net.put("Mul", net.put("ReduceSum", made, *over, keepdims=keep), number)
    if turned:
        mean = net.put("Transpose", mean, perm=[0, 2, 1])
    apart = net.put("Sub", made, mean)
    total = net.put("ReduceSum", net.put("Mul", apart, apart), *over, keepdims=keep)
    model = net.model([net.put("Relu", total)])
    result, _ = compiled(model, MACHINE, float_dtype="mixed")
    data = np.random.default_rng(3).standard_normal((4, 16, 4, 4)).astype(np.float32)
    found, plain = (
        run(one, {"x": data}, MACHINE)
        for one in (result, compiled(model, MACHINE, float_dtype="float")[0])
    )
    for name, value in plain.items():
        np.testing.assert_allclose(found[name], value, rtol=0.02, atol=0.01 * value.max())
    return parted(result)


@pytest.mark.parametrize(
    ("wanted", "more"),
    [
        (True, {}),  # the differences have no other reader
        (False, {"axes": None}),
        (False, {"factors": 16}),
        (False, {"axes": (0,), "turned": True, "keep": 0}),
        (False, {"axes": (0,), "keep": 0}),
    ],
)
def test_what_counts_as_a_variance(wanted: bool, more: dict[str, object]) -> None:
    assert parted_sums(**more) == wanted  # type: ignore[arg-type]
