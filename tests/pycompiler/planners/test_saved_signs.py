"""Signs that the backward pass of a ReLU takes from halves."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from compiling import compiled, run
from net import Net

from pycompiler.graph import MNDtype
from pycompiler.layers.half_conversions import NARROW, WIDEN
from pycompiler.machine import load_target
from pycompiler.planners import saved_signs

MACHINE, TERMS = "mncore2", 32
#: Values this large are rounded where they are made.
ROWS = 2 * prod(load_target(MACHINE).pe_shape) // TERMS


def _masked(compares: str, last: str, made: str = "Relu") -> tuple[Net, str]:
    """Return products of the result of the operator ``made``, and a late comparison of it.

    ``last`` says whether a product reads the halves behind the comparison.
    """
    net = Net(random.Random(1), ROWS, TERMS)
    p = net.put(made, net.put("MatMul", "x", net.weights(TERMS, TERMS)))
    q = net.put("MatMul", p, net.weights(TERMS, TERMS))
    for _ in range(3):
        q = net.put("Tanh", q)
    zero = net.array(np.zeros((), np.float32))
    masked = net.put("Where", net.put(compares, p, zero), q, zero)
    if last == "product":
        masked = net.put("Add", net.put("MatMul", p, net.weights(TERMS, TERMS)), masked)
    return net, masked


def test_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison with zero gives the same as that of the singles, which live shorter."""
    net, y = _masked("Greater", "product")
    model = net.model([y])
    data = {"x": np.random.default_rng(3).standard_normal((ROWS, TERMS)).astype(np.float32)}
    found = []
    for full in (0.0, 1.0):
        monkeypatch.setattr(saved_signs, "_FULL", full)
        result, _ = compiled(model, MACHINE, float_dtype="mixed")
        wide = [node for node in result.graph.nodes if node.op == WIDEN]
        assert len(wide) == (full == 0.0)
        assert all(result.graph.values[n.inputs[0]].dtype is MNDtype.HALF for n in wide)
        found.append(run(result, data, MACHINE)[y])
    assert found[0].tobytes() == found[1].tobytes()
    assert (found[0] != 0).any()


def test_halves_that_nobody_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the halves are not alive, keeping them would save nothing."""
    monkeypatch.setattr(saved_signs, "_FULL", 0.0)
    net, y = _masked("Less", "nothing")
    result, _ = compiled(net.model([y]), MACHINE, float_dtype="mixed")
    assert WIDEN not in {node.op for node in result.graph.nodes}


def test_other_values_are_compared_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small elements are zeros as halves, but they are not equal to zero."""
    monkeypatch.setattr(saved_signs, "_FULL", 0.0)
    net, y = _masked("Greater", "product", "Sigmoid")
    result, _ = compiled(net.model([y]), MACHINE, float_dtype="mixed")
    assert NARROW in {node.op for node in result.graph.nodes}
    assert WIDEN not in {node.op for node in result.graph.nodes}
