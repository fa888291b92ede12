"""Reciprocals of roots become one node, where nothing else reads the root."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.layers.functions.roots import RSQRT
from pycompiler.tolerance import FUNCTION, RELATIVE

CHAIN = [("Sqrt", ["x"], "r"), ("Reciprocal", ["r"], "y")]
#: Models, their outputs, options, and whether the root is fused.
MODELS = {
    "chain": (CHAIN, ["y"], {}, True),
    "read twice": ([*CHAIN, ("Neg", ["r"], "z")], ["y", "z"], {}, False),
    "an output": (CHAIN, ["y", "r"], {}, False),
    "named by an override": (CHAIN, ["y"], {"overrides": {"r": {"location": "LM0"}}}, False),
    "another reader": ([CHAIN[0], ("Neg", ["r"], "y")], ["y"], {}, False),
}


@pytest.mark.parametrize("name", MODELS)
def test_which_roots_are_fused(name: str) -> None:
    nodes, outputs, options, fused = MODELS[name]
    result, _ = compiled(model_of(nodes, {"x": (5, 7)}, outputs), **options)
    ops = [node.op for node in result.graph.nodes]
    assert (RSQRT in ops) == fused
    assert ("Sqrt" in ops) != fused


def test_results() -> None:
    """Small and large numbers, and the ends of the range."""
    rng = np.random.default_rng(3)
    x = np.exp(rng.uniform(-80, 80, (6, 50))).astype(np.float32)
    x[0, :3] = 0, np.inf, 2.0**-126
    result, _ = compiled(model_of(CHAIN, {"x": x.shape}, ["y"]))
    found = run(result, {"x": x})["y"].astype(np.float64)
    with np.errstate(divide="ignore"):
        wanted = 1 / np.sqrt(x.astype(np.float64))
    assert found[0, 0] == np.inf
    assert found[0, 1] == 0
    there = np.isfinite(wanted) & (wanted > 0)
    error = np.abs(found[there] / wanted[there] - 1).max()
    assert error <= RELATIVE["Float", FUNCTION]
