"""Compiles with the same layouts share their plans, and make what they make alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from compiling import model_of, sampled
from random_models import random_model

from pycompiler.errors import HostFallbackWarning
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph.graph import Side
from pycompiler.layout_passes import PASSES, LayoutPlans
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pipeline import Compiled, compile_onnx
from pycompiler.planners.lpz.known import Known
from pycompiler.presets.read import names
from pycompiler.report.report import Report
from pycompiler.request import Request

TARGET = load_target("mini")
#: What a row of the report says of time, and what is of one process.
MEASURED = ("seconds", "peak_mib", "kept")


def compiled_with(
    model: Any, plans: LayoutPlans | None, **options: Any
) -> tuple[Compiled, dict[str, Any]]:
    report = Report("emu2:mini", options)
    return compile_onnx(
        Request(model, TARGET, parse_options(options), report, plans=plans or LayoutPlans())
    ), report.data


def plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says, without what was measured."""
    rows = [{k: v for k, v in row.items() if k not in MEASURED} for row in data["passes"]]
    return {**data, "passes": rows}


def kept(data: dict[str, Any]) -> int:
    return sum(bool(row.get("kept")) for row in data["passes"])


@pytest.mark.parametrize("seed", range(3))
def test_presets_share_plans(seed: int) -> None:
    model, _ = random_model(random.Random(seed))
    plans = LayoutPlans()
    for number, preset in enumerate(sorted(set(names()) - {"O4", "dev"})):
        shared, said = compiled_with(model, plans, option_json=preset)
        alone, told = compiled_with(model, None, option_json=preset)
        assert kept(said) == (PASSES if number else 0)
        assert not kept(told)
        assert shared.vsm == alone.vsm
        assert shared.files == alone.files
        assert plain(said) == plain(told)


@pytest.mark.parametrize(
    "other",
    sampled(
        [
            {"float_dtype": "mixed"},
            {"sram_budget": 0.5},
            {"layout_planner": "first_arrival"},
            {"time_slice": "fit"},
            {"fuse_elementwise": False},
            {"gemm_precision": "half"},
            {"update": "immediate"},
            {"strict": True},
            {"overrides": {"p": {"location": "DRAM"}}},
        ],
        every=4,
    ),
    ids=lambda other: next(iter(other)),
)
def test_other_layouts_are_planned(other: dict[str, Any]) -> None:
    nodes = [("MatMul", ["x", "x"], "p"), ("Relu", ["p"], "r"), ("Exp", ["r"], "y")]
    model = model_of(nodes, {"x": (12, 12)}, ["y"])
    plans = LayoutPlans()
    compiled_with(model, plans)
    shared, data = compiled_with(model, plans, **other)
    assert not kept(data)
    assert shared.vsm == compiled_with(model, None, **other)[0].vsm
    assert kept(compiled_with(model, plans)[1]) == PASSES


def test_nodes_on_the_host_are_planned_apart() -> None:
    """A node that goes to the host after a failure changes the graph that is planned."""
    model = model_of([("Relu", ["x"], "r"), ("Exp", ["r"], "y")], {"x": (12, 12)}, ["y"])
    plans, options, report = LayoutPlans(), parse_options({}), Report("emu2:mini", {})
    imported = import_onnx(model, TARGET, options.update)
    plans.graph_of(imported, TARGET, options, {}, report, Known())
    first, second = imported.graph.nodes
    away = replace(first, side=Side.HOST, reason="a test wants it")
    other = replace(imported, graph=replace(imported.graph, nodes=(away, second)))
    with pytest.warns(HostFallbackWarning):
        graph = plans.graph_of(other, TARGET, options, {}, report, Known())
    assert not kept(report.data)
    assert [node.op for node in graph.nodes if node.side is Side.HOST] == ["Relu"]
