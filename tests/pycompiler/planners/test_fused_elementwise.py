"""Chains of elementwise operators that become one operator, and those that do not."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.layers.functions.fused import FUSED, STEPS, steps_of, text_of

SHAPE = (8, 64)
CONSTANTS = {"zero": np.float32(0), "row": np.linspace(-2, 2, 64, dtype=np.float32)}
#: Nodes, the operators of the fused node (none: nothing is fused), and what the result should be.
CASES = {
    "factor, addend and ReLU": (
        [("Mul", ["x", "row"], "a"), ("Add", ["a", "z"], "b"), ("Relu", ["b"], "y")],
        ["Mul", "Add", "Relu"],
        lambda x, z, row: np.maximum(x * row + z, 0),
    ),
    "the gradient of ReLU": (
        [("Greater", ["x", "zero"], "a"), ("Where", ["a", "z", "zero"], "y")],
        ["Greater", "Where"],
        lambda x, z, row: np.where(x > 0, z, 0),
    ),
    "a square": (
        [("Sub", ["x", "row"], "a"), ("Mul", ["a", "a"], "y")],
        ["Sub", "Mul"],
        lambda x, z, row: (x - row) ** 2,
    ),
    "two chains that meet": (
        [("Mul", ["x", "row"], "a"), ("Neg", ["z"], "b"), ("Add", ["a", "b"], "y")],
        ["Mul", "Neg", "Add"],
        lambda x, z, row: x * row - z,
    ),
    "a third operand of full size": (
        [("Mul", ["x", "z"], "a"), ("Exp", ["x"], "e"), ("Add", ["a", "e"], "y")],
        [],
        lambda x, z, row: x * z + np.exp(x),
    ),
    "a value that two read": (
        [("Mul", ["x", "z"], "a"), ("Exp", ["a"], "e"), ("Add", ["a", "e"], "y")],
        [],
        lambda x, z, row: x * z + np.exp(x * z),
    ),
    "a smaller value": (
        [
            ("Neg", ["row"], "a"),
            ("Add", ["a", "x"], "b"),
            ("Exp", ["b"], "e"),
            ("Mul", ["e", "z"], "y"),
        ],
        [],
        lambda x, z, row: np.exp(x - row) * z,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_chains(name: str) -> None:
    nodes, wanted, formula = CASES[name]
    used = {one for _, reads, _ in nodes for one in reads}
    constants = {key: value for key, value in CONSTANTS.items() if key in used}
    shapes = {key: SHAPE for key in ("x", "z") if key in used}
    result, _ = compiled(model_of(nodes, shapes, ["y"], constants))
    rng = np.random.default_rng(3)
    x, z = (rng.uniform(-3, 3, SHAPE).astype(np.float32) for _ in "xz")
    x[:, :3] = 0.0, -0.0, 1.0
    data = {key: value for key, value in (("x", x), ("z", z)) if key in shapes}
    got = run(result, data)["y"]
    np.testing.assert_allclose(got, formula(x, z, CONSTANTS["row"]), rtol=1e-5, atol=1e-6)
    fused = [node for node in result.graph.nodes if node.op == FUSED]
    found = [op for node in fused for op, _, _ in steps_of(dict(node.attributes))]
    assert sorted(found) == sorted(wanted)


def test_outputs_and_overrides_stay() -> None:
    nodes = [("Mul", ["x", "row"], "a"), ("Add", ["a", "z"], "b"), ("Relu", ["b"], "y")]
    constants = {"row": CONSTANTS["row"]}
    shapes = {"x": SHAPE, "z": SHAPE}
    result, _ = compiled(model_of(nodes, shapes, ["y", "a"], constants))
    assert [node.op for node in result.graph.nodes].count(FUSED) == 1
    assert any(node.op == "Mul" for node in result.graph.nodes)
    decided = {"b": {"location": "LM0"}}
    result, _ = compiled(model_of(nodes, shapes, ["y"], constants), overrides=decided)
    assert any(node.op == "Relu" for node in result.graph.nodes)


def test_text() -> None:
    nodes = [("Mul", ["x", "row"], "a"), ("Add", ["a", "z"], "y")]
    constants = {"row": CONSTANTS["row"]}
    result, _ = compiled(model_of(nodes, {"x": SHAPE, "z": SHAPE}, ["y"], constants))
    (node,) = (node for node in result.graph.nodes if node.op == FUSED)
    text = dict(node.attributes)[STEPS]
    assert text_of(steps_of(dict(node.attributes))) == text
