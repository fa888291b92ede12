"""Chains of views become a cut, an exchange and a join of axes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from net import Net

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

VIEWS = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")


def ops(model: onnx.ModelProto) -> list[str]:
    """Return the views of a model, in order."""
    return [node.op_type for node in model.graph.node if node.op_type in VIEWS]


def check(net: Net, outputs: list[str]) -> onnx.ModelProto:
    """Return the optimised model, which must give the same bits."""
    model = net.model(outputs)
    found = optimise(model)
    onnx.checker.check_model(found)
    inputs = {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
    wanted = HostSession(model, "model").run(inputs)
    got = HostSession(found, "found").run(inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array)
    return found


def regrouped(rng: random.Random, shape: Sequence[int]) -> list[int]:
    """Return another shape of as many elements: axes are joined, cut, or get ones between them."""
    factors = [p for size in shape for p in _primes(size)]
    if rng.random() < 0.3:
        rng.shuffle(factors)
    out = [1]
    for factor in factors:
        if rng.random() < 0.5:
            out[-1] *= factor
        else:
            out.append(factor)
    return [size for size in out if size > 1 or rng.random() < 0.3] or [1]


def _primes(size: int) -> list[int]:
    found, factor = [], 2
    while size > 1:
        while size % factor == 0:
            found.append(factor)
            size //= factor
        factor += 1
    return found


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(40), deadline=None)
def test_any_chain_gives_the_same_bits_with_no_more_views(seed: int) -> None:
    rng = random.Random(seed)
    shape = [rng.choice([1, 2, 3, 4, 6, 12]) for _ in range(rng.randint(1, 4))]
    net = Net(rng, *shape)
    value, ends = net.put("Neg", "x"), list[str]()
    for _ in range(rng.randint(1, 6)):
        if rng.random() < 0.5:
            order = rng.sample(range(len(shape)), len(shape))
            shape = [shape[axis] for axis in order]
            value = net.put("Transpose", value, perm=order)
        else:
            shape = regrouped(rng, shape)
            value = net.view(value, *shape)
        if rng.random() < 0.2:
            # Another reader keeps the value.
            ends.append(net.put("Abs", value))
    assert prod(shape) == prod(net.inputs["x"])
    outputs = [*ends, net.put("Neg", value) if rng.random() < 0.7 else value]
    model = net.model(outputs)
    assert len(ops(check(net, outputs))) <= len(ops(model))


@pytest.mark.parametrize("last", ["Neg", None])
def test_heads_that_are_joined_with_the_batch_are_cut_from_the_columns(last: str | None) -> None:
    """As torch writes them: 4 pictures of 6 tokens, 2 heads of width 8."""
    net = Net(random.Random(1), 6, 4, 16)
    p = net.view(net.put("Neg", "x"), 1, 6, 4, 1, 16)
    p = net.view(net.put("Transpose", p, perm=[3, 1, 2, 0, 4]), 6, 4, 16)
    p = net.put("Transpose", net.view(p, 6, 8, 8), perm=[1, 0, 2])
    p = net.view(p, 4, 2, 6, 8)
    found = check(net, [net.put(last, p) if last else p])
    assert ops(found) == ["Reshape", "Transpose"]


def test_views_that_undo_each_other_vanish() -> None:
    net = Net(random.Random(2), 3, 8)
    p = net.put("Transpose", net.view(net.put("Neg", "x"), 3, 2, 4), perm=[1, 0, 2])
    p = net.view(net.put("Transpose", p, perm=[1, 0, 2]), 3, 8)
    assert ops(check(net, [net.put("Neg", p)])) == []


@pytest.mark.parametrize("last", ["Neg", None])
def test_views_of_an_input_that_change_nothing_leave_its_name(last: str | None) -> None:
    net = Net(random.Random(3), 2)
    p = net.view("x", 2)
    found = check(net, [net.put(last, p) if last else p])
    assert [value.name for value in found.graph.input] == ["x"]
