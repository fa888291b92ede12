"""The order in which resident products read their operands, so that transfers fit beside them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.code.lines import PeOperand, Step
from pycompiler.layers.operators import LAYERS
from pycompiler.layers.products import resident
from pycompiler.machine import load_target


def test_a_product_reads_its_matrix_in_the_order_of_addresses() -> None:
    """Two blocks of rows lie side by side. Downloads bring them, and follow them, in that order."""
    draw = np.random.default_rng(0)
    x, w = draw.standard_normal((64, 64)), draw.standard_normal((64, 256))
    model = model_of(
        [("MatMul", ["x", "w"], "y")], {"x": (64, 64)}, ["y"], {"w": w.astype(np.float32)}
    )
    result, _ = compiled(model, float_dtype="mixed")
    found = run(result, {"x": x.astype(np.float32)})["y"]
    assert np.abs(found - x @ w).max() < 0.2
    graph, target = result.graph, load_target("mini")
    (node,) = (node for node in graph.nodes if node.op == "MatMul")
    reads: dict[str, list[int]] = {name: [] for name in node.inputs}
    steps: dict[str, list[int]] = {name: [] for name in node.inputs}
    for number, line in enumerate(LAYERS[node.op].emit(node, graph, target).lines):
        assert isinstance(line, Step)
        for operand in (one for i in line.instructions for one in i.sources):
            if isinstance(operand, PeOperand) and operand.value in reads:
                reads[operand.value].append(min(operand.offsets))
                steps[operand.value].append(number)
    assert reads[node.inputs[1]] == sorted(reads[node.inputs[1]])
    # Between reads of each memory there are pauses in which a write fits: its step and two more.
    rule = next(h for h in target.hazards if h.rule == "port" and "lm0" in h.memories)
    for own in steps.values():
        pauses = [after - before - 1 for before, after in pairwise(own)]
        assert sum(pause > (rule.steps or 0) for pause in pauses) >= 3


def of_product(rows: int, terms: int, columns: int) -> tuple[Any, dict[str, np.ndarray]]:
    draw = np.random.default_rng(rows)
    shapes = {"x": (rows, terms), "w": (terms, columns)}
    inputs = {n: draw.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    return model_of([("MatMul", ["x", "w"], "y")], shapes, ["y"]), inputs


def of_convolution(channels: int, pixels: int, results: int) -> tuple[Any, dict[str, np.ndarray]]:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((2, channels, pixels, pixels)).astype(np.float32)
    w = draw.standard_normal((results, channels, 3, 3)).astype(np.float32)
    return model_of([("Conv", ["x", "w"], "y")], {"x": x.shape}, ["y"], {"w": w}), {"x": x}


@pytest.mark.parametrize(
    ("made", "mode", "fewer"),
    [
        (of_product(16, 64, 256), "mixed", True),
        (of_product(40, 72, 200), "mixed", True),
        (of_product(40, 72, 200), "float", True),
        (of_product(5, 37, 300), "float", True),
        (of_product(64, 64, 16), "float", False),
        (of_convolution(16, 8, 64), "mixed", True),
    ],
    ids=["rows", "tails", "singles", "few rows", "one tile", "taps"],
)
def test_lines_that_overlap_change_no_bit(
    made: tuple[Any, dict[str, np.ndarray]],
    mode: str,
    fewer: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Vectors that wait in registers are converted once, for all tiles of their batch."""
    model, inputs = made
    found = {}
    for overlap in (True, False):
        if not overlap:
            monkeypatch.setattr(resident, "vector_registers", lambda *_: ())
        result, report = compiled(model, float_dtype=mode, emit="concat")
        (row,) = (row for row in report["nodes"] if row["op"] in ("MatMul", "Conv"))
        found[overlap] = run(result, inputs)["y"], row["busy_steps"]["alu"], row["steps"]
    assert np.array_equal(found[True][0], found[False][0])
    assert (found[True][1] < found[False][1]) == fewer
    # The vectors of the first batch are converted before its rows.
    assert found[True][2] <= found[False][2] + 4
