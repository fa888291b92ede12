"""Sums, maxima and minima over MABs by the reduction network."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run

from pycompiler.code.lines import BlockOperand
from pycompiler.graph.digits import primes
from pycompiler.layers.scratch import Scratch
from pycompiler.layers.switch.mab_joins import join_steps, joins
from pycompiler.machine import LONGS_PER_WIDE, Target


def test_the_network_joins_whole_sets_of_mabs(target: Target) -> None:
    """All MABs, and every four neighbours: their numbers differ in the lowest digits."""
    count = target.level_range["MAB"]
    found = [join.digits for join in joins("ffadd", target)]
    assert found[0] == frozenset(primes(count))
    low = frozenset(digit for digit in primes(count) if digit.stride < 4)
    assert found[-1] == low


@pytest.mark.parametrize("vectors", [1, 2, 3, 17])
def test_the_number_of_steps(vectors: int, target: Target) -> None:
    for join in joins("fmax", target):
        words = vectors * target.cycles
        steps = list(join_steps(join, Scratch("grf0"), words, target))
        assert len(steps) == 2 * -(-vectors // LONGS_PER_WIDE)
        blocks = [
            operand
            for step in steps
            for one in step.instructions
            for operand in (*one.sources, *one.destinations)
            if isinstance(operand, BlockOperand)
        ]
        assert sum(block.words for block in blocks) == 2 * vectors * join.words


#: Layouts of a value of 8 x 16, reduced along its second axis.
LAYOUTS = {
    "all MABs": "((8:1), (4_MAB:1, 4:8))",
    "half of the MABs": "((2_MAB:2, 4:1), (2_MAB:1, 8:4))",
    "the other half": "((2_MAB:1, 4:1), (2_MAB:2, 8:4))",
    "MABs and PEs": "((8:1), (4_MAB:1, 4_PE:1))",
    "MABs in another order": "((8:1), (2_MAB:1, 2_MAB:2, 4:8))",
    "MABs and words": "((8:1), (4_MAB:1, 2:8, 2_W:1))",
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin"])
def test_results(op: str, layout: str) -> None:
    """Whole numbers have exact sums, so every order of the terms gives the same bits."""
    model: onnx.ModelProto = model_of(
        [("Neg", ["x"], "n"), (op, ["n", "axes"], "y")],
        {"x": (8, 16)},
        ["y"],
        {"axes": np.array([1])},
    )
    kept = LAYOUTS[layout].split("), ")[0] + "), ())"
    overrides = {"n": {"layout": LAYOUTS[layout]}, "y": {"layout": kept}}
    result, _ = compiled(model, overrides=overrides, layout_planner="first_arrival")
    x = np.random.default_rng(1).integers(-99, 99, (8, 16)).astype(np.float32)
    wanted = {
        "ReduceSum": (-x).sum(1, keepdims=True),
        "ReduceMax": (-x).max(1, keepdims=True),
        "ReduceMin": (-x).min(1, keepdims=True),
    }[op]
    assert (run(result, {"x": x})["y"] == wanted).all()
    used = "l1bmr" in result.vsm
    assert used == layout.startswith(("all", "MABs"))
