"""A small program in `mixed` takes no more cycles than one in `float`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from compiling import model_of, run, sampled
from onnx import numpy_helper

from pycompiler.errors import error
from pycompiler.graph.dtypes import MNDtype
from pycompiler.halves_or_singles import compile_cheapest
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pipeline import Compiled
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.summary.table import closing_lines

#: Rows, terms and columns of a product between elementwise operators, and the cheaper mode.
CASES = [
    ((4, 24, 24), "float"),
    ((4, 40, 24), "float"),
    ((1, 64, 64), "mixed"),
    ((3, 20, 50), "mixed"),
]


def _model(rows: int, terms: int, columns: int) -> onnx.ModelProto:
    weight = np.random.default_rng(rows).standard_normal((terms, columns)).astype(np.float32)
    nodes = [
        ("Tanh", ["x"], "a"),
        ("MatMul", ["a", "w"], "y0"),
        ("Tanh", ["y0"], "y1"),
        ("Softmax", ["y1"], "y"),
    ]
    return model_of(nodes, {"x": (rows, terms)}, ["y"], {"w": weight})


def _compiled(model: onnx.ModelProto, **options: Any) -> tuple[Compiled, Report]:
    report = Report("mini", {})
    made = compile_cheapest(Request(model, load_target("mini"), parse_options(options), report))
    return made, report


def _halves(made: Compiled) -> set[str]:
    return {n for n, value in made.graph.values.items() if value.dtype is MNDtype.HALF}


def _tried(report: Report) -> list[dict[str, Any]]:
    return [row for row in report.data["passes"] if row["pass"] == "float"]


@pytest.mark.parametrize(("sizes", "cheaper"), sampled(CASES))
def test_the_cheaper_mode_is_taken(sizes: tuple[int, int, int], cheaper: str) -> None:
    model = _model(*sizes)
    cycles = {
        mode: _compiled(model, float_dtype=mode, compare_float=False)[1].data["cycles"]
        for mode in ("float", "mixed")
    }
    made, report = _compiled(model, float_dtype="mixed")
    (row,) = _tried(report)
    assert row["cycles"] == cycles
    assert min(cycles, key=lambda mode: cycles[mode]) == cheaper
    assert report.data["cycles"] == cycles[cheaper]
    assert bool(_halves(made)) == (cheaper == "mixed")
    assert bool(report.data["notes"]) == (cheaper == "float")
    assert any("`mixed` would take" in one for one in closing_lines(report.data)) == (
        cheaper == "float"
    )
    asked = _compiled(model, float_dtype="mixed", compare_float=False)[1].data["bound"]
    assert report.data["bound"]["cycles"] == asked["cycles"]

    x = np.random.default_rng(1).standard_normal(sizes[:2]).astype(np.float32)
    exponentials = np.exp(np.tanh(np.tanh(x) @ numpy_helper.to_array(model.graph.initializer[0])))
    wanted = exponentials / exponentials.sum(axis=1, keepdims=True)
    assert np.abs(run(made, {"x": x})["y"] - wanted).max() < 0.01


@pytest.mark.parametrize(("sizes", "cheaper"), CASES[::3])
def test_all_presets_decide_alike(sizes: tuple[int, int, int], cheaper: str) -> None:
    """Or results would have other bits."""
    model = _model(*sizes)
    x = np.random.default_rng(2).standard_normal(sizes[:2]).astype(np.float32)
    wanted = None
    for preset in ("O3", "O0", "O1"):
        made, _ = _compiled(model, float_dtype="mixed", option_json=preset)
        assert bool(_halves(made)) == (cheaper == "mixed")
        found = run(made, {"x": x})["y"]
        wanted = found if wanted is None else wanted
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    "options",
    [
        {"float_dtype": "float"},
        {"float_dtype": "mixed", "compare_float": False},
        {"float_dtype": "mixed", "gemm_precision": "half"},
    ],
)
def test_no_comparison_that_was_not_asked_for(options: dict[str, Any]) -> None:
    assert not _tried(_compiled(_model(4, 24, 24), **options)[1])


def test_stored_halves_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal((16, 16, 1, 1)).astype(np.float32) for n in ("v", "w")}
    nodes = [("Conv", ["x", "v"], "a"), ("Relu", ["a"], "b"), ("Conv", ["b", "w"], "y")]
    model = model_of(nodes, {"x": (4, 16, 16, 16)}, ["y"], weights)
    made, report = _compiled(model, float_dtype="mixed", layout_planner="first_arrival")
    made_by = {node.op for node in made.graph.nodes for n in node.outputs if n in _halves(made)}
    assert "Conv" in made_by  # the node stores halves, with the Relu behind it
    assert not _tried(report)


def test_a_comparison_that_fails_leaves_the_program_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan in singles is there, but its program cannot be made."""

    def fails(ways: Any) -> Any:
        assert list(ways) == ["mixed", "float"]
        raise error("P0704", name="the program", value="in singles", legal="another")

    monkeypatch.setattr("pycompiler.halves_or_singles.cheapest", fails)
    made, report = _compiled(_model(4, 24, 24), float_dtype="mixed")
    assert _halves(made)
    assert "taken" not in _tried(report)[0]
