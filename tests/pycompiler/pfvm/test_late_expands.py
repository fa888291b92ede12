"""Expands move behind elementwise operators, or go away."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import onnx
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from net import Net

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

SHAPE = (3, 4, 5)


def expanded(net: Net, value: str) -> str:
    return net.put("Expand", value, net.ints(*SHAPE))


def check(net: Net, outputs: list[str]) -> Counter[str]:
    """Count the operators of the optimised model, which must give the same bits."""
    model = net.model(outputs)
    found = optimise(model)
    onnx.checker.check_model(found)
    inputs = {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
    wanted = HostSession(model, "model").run(inputs)
    got = HostSession(found, "found").run(inputs)
    assert [one.name for one in found.graph.output] == outputs
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array)
    return Counter(node.op_type for node in found.graph.node)


def test_behind_what_works_on_fewer_elements_and_into_what_has_the_shape() -> None:
    """As behind a mean: the gradient is divided, and then meets a mask."""
    net = Net(random.Random(0), 3, 1, 1)
    spread = net.put("Div", expanded(net, "x"), net.number(20.0))
    mask = net.put("Relu", net.input(*SHAPE))
    found = check(net, [net.put("Mul", net.put("Neg", spread), mask)])
    assert found["Expand"] == 0
    assert found["Mul"] == 1


def test_an_expand_that_is_needed_stays_behind() -> None:
    net = Net(random.Random(0), 4, 1)
    found = check(net, [net.put("Sqrt", net.put("Abs", expanded(net, "x")))])
    assert found["Expand"] == 1
    net = Net(random.Random(0), 4, 1)
    found = check(net, [net.put("ReduceSum", expanded(net, "x"), net.ints(0))])
    assert found["Expand"] == 1


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(40))
def test_the_same_bits(seed: int) -> None:
    rng = random.Random(seed)
    small = [rng.choice((1, size)) for size in SHAPE[rng.randrange(3) :]]
    net = Net(rng, *small)
    values = ["x", expanded(net, "x"), net.input(*SHAPE)]
    for _ in range(rng.randrange(1, 7)):
        kind = rng.choice(("alone", "two", "two", "expand", "other", "where"))
        one, other = rng.choice(values), rng.choice(values)
        if kind == "alone":
            made = net.put(rng.choice(("Abs", "Neg", "Relu", "Tanh")), one)
        elif kind == "two":
            made = net.put(rng.choice(("Add", "Sub", "Mul", "Div")), one, other)
        elif kind == "expand":
            made = expanded(net, one)
        elif kind == "where":
            made = net.put("Where", net.put("Less", one, other), one, other)
        else:
            made = net.put("Softmax", expanded(net, one))
        values.append(made)
    outputs = sorted({values[-1], rng.choice(values[3:])})
    check(net, outputs)
