"""Factors that the backward pass reads late, and that are kept as halves."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from compiling import compiled, run, sampled
from net import Net

from pycompiler.graph import MNDtype
from pycompiler.layers.half_conversions import NARROW, WIDEN
from pycompiler.planners import saved_halves

MACHINE, SHAPE = "mini", (2, 16, 16, 16)


def _normalized(late: str, given: bool) -> tuple[onnx.ModelProto, str, str]:
    """Return a model that reads the differences from a mean late; its result and the differences.

    ``late`` is the operator that reads them; if they are ``given``, they are an output too.
    """
    net = Net(random.Random(1), *SHAPE)
    weights = net.weights(16, 16, 3, 3)
    made = net.put("Conv", "x", weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    mean = net.put("ReduceMean", made, net.ints(0, 2, 3), keepdims=1)
    apart = net.put("Sub", made, mean)
    square = net.put("ReduceMean", net.put("Mul", apart, apart), net.ints(0, 2, 3), keepdims=1)
    other = net.put("Tanh", net.put("Div", made, net.put("Sqrt", square)))
    other = net.put("Conv", other, weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    last = net.put(late, other, apart)
    return net.model([last, apart] if given else [last]), last, apart


def _ran(
    late: str, full: float, monkeypatch: pytest.MonkeyPatch, **options: object
) -> tuple[np.ndarray, int]:
    """Return the result, and how many factors are kept as halves."""
    monkeypatch.setattr(saved_halves, "_FULL", full)
    model, last, apart = _normalized(late, bool(options.pop("given", False)))
    result, _ = compiled(model, MACHINE, **{"float_dtype": "mixed", **options})
    kept = f"{apart}.kept"
    for node in result.graph.nodes:
        if node.op in (NARROW, WIDEN) and kept in (*node.inputs, *node.outputs):
            assert result.graph.values[kept].dtype is MNDtype.HALF
    draw = np.random.default_rng(3)
    data = {"x": draw.standard_normal(SHAPE).astype(np.float32)}
    return run(result, data, MACHINE)[last], sum(
        node.op == WIDEN and node.inputs[0].startswith(kept) for node in result.graph.nodes
    )


def test_late_factors_are_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are rounded where LM is short. The result differs by that rounding only."""
    exact, none = _ran("Mul", 1.0, monkeypatch)
    rounded, one = _ran("Mul", 0.0, monkeypatch)
    assert (none, one) == (0, 1)
    assert (exact != rounded).any()
    np.testing.assert_allclose(rounded, exact, rtol=2**-9, atol=0)


@pytest.mark.parametrize(
    ("late", "options"),
    sampled(
        [
            ("Add", {}),  # a sum would lose small addends
            ("Mul", {"float_dtype": "float"}),
            ("Mul", {"given": True}),  # an output keeps all bits
        ],
        every=3,
    ),
)
def test_what_stays_single(
    late: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, none = _ran(late, 1.0, monkeypatch, **dict(options))
    same, still = _ran(late, 0.0, monkeypatch, **dict(options))
    assert none == still == 0
    assert exact.tobytes() == same.tobytes()
