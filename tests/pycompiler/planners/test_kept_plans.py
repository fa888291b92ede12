"""What the planners keep from one set of cuts to the next: it changes no layout and saves runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from compiling import Shape, compiled, model_of, planning, typed

from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.layout import Layout
from pycompiler.machine import Target, load_target
from pycompiler.planners import layout
from pycompiler.planners.layout import LayoutFacts, WithSwitches, plan_layouts
from pycompiler.planners.location import plan_locations
from pycompiler.planners.lpz import planner as lpz
from pycompiler.planners.lpz.known import Known
from pycompiler.planners.lpz.tables import Estimate
from pycompiler.planners.overrides import Overrides
from pycompiler.planners.side import plan_sides
from pycompiler.planners.time_slices.passes import SlicedLayouts


def perceptron(batch: int, sizes: tuple[int, ...], *, residual: bool) -> onnx.ModelProto:
    """Return products with Relu between them; its batch is cut, and planned several times."""
    rng = np.random.default_rng(3)
    weights = {
        f"w{n}": rng.standard_normal(sizes[n : n + 2], np.float32) for n in range(len(sizes) - 1)
    }
    nodes, last = [], "x"
    for name in weights:
        nodes += [("MatMul", [last, name], f"{name}.m"), ("Relu", [f"{name}.m"], f"{name}.r")]
        last = f"{name}.r"
    nodes.append(("Add", [last, "x" if residual else last], "y"))
    shapes: dict[str, Shape] = {"x": (batch, sizes[0])}
    return model_of(nodes, shapes, ["y"], weights)


MODELS = [
    perceptron(3000, (24, 32, 10), residual=False),
    perceptron(500, (64, 128, 64), residual=True),
    perceptron(160, (96, 384, 96), residual=True),
]


#: What `make test` compiles: a batch that is cut.
QUICK = ((0, "float"),)


def plan_anew(
    self: SlicedLayouts,
    graph: MNGraph,
    overrides: Overrides,
    planner: str,
    facts: LayoutFacts | None,
) -> WithSwitches:
    """Plan as `SlicedLayouts._plan_of` does, but keep nothing."""
    return plan_layouts(graph, self.target, overrides, planner, self.given.layout_specs, facts)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    """Return how often each set of cuts is planned from now on, from each start."""
    runs: Counter[object] = Counter()
    plain = layout.PLANNERS["lpz"]

    def plan(
        graph: MNGraph,
        target: Target,
        wanted: Mapping[str, Layout],
        facts: LayoutFacts,
        known: Known,
    ) -> Mapping[str, Layout]:
        runs[known.apart, *(value.type for value in graph.values.values())] += 1
        return plain(graph, target, wanted, facts, known)

    monkeypatch.setattr(layout, "PLANNERS", {**layout.PLANNERS, "lpz": plan})
    return runs


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        pytest.param(model, mode, marks=() if (number, mode) in QUICK else pytest.mark.long)
        for number, model in enumerate(MODELS)
        for mode in ("float", "mixed")
    ],
)
def test_kept_plans_are_those_of_a_new_planner(
    model: onnx.ModelProto, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = counted(monkeypatch)
    kept, report = compiled(model, float_dtype=mode)
    if mode == "float":
        assert set(runs.values()) == {1}, "the same cuts are planned once"
    assert max(row["slices"] for row in report["nodes"]) > 1
    monkeypatch.setattr(SlicedLayouts, "_plan_of", plan_anew)
    anew, _ = compiled(model, float_dtype=mode)
    assert kept.dumps == anew.dumps
    assert kept.vsm == anew.vsm


def planned(widths: tuple[int, ...], known: Known) -> tuple[int, Estimate]:
    """Plan layers of these widths; return the work and the estimate."""
    model, target = perceptron(96, widths, residual=True), load_target("mncore2")
    graph = plan_sides(import_onnx(model, target).graph, strict=True)
    graph = plan_locations(typed(graph, target, planning(float_dtype="float")))
    before, facts = known.work, LayoutFacts()
    plan_layouts(graph, target, facts=facts, known=known)
    return known.work - before, facts.estimates["lpz"]


@pytest.mark.long
def test_a_trial_takes_the_work_of_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where plans are dear, one that differs in few values begins at the plan before it."""
    monkeypatch.setattr(lpz, "CHEAP", 0)
    known = Known()
    planned((40, 56, 40, 48, 40, 56, 40, 56, 40), known)
    other = (40, 56, 40, 24, 40, 56, 40, 56, 40)
    more, found = planned(other, known)
    anew, wanted = planned(other, Known())
    assert more < anew / 2
    assert not found.does_not_fit
    assert found.steps <= 1.05 * wanted.steps
    again, same = planned(other, known)
    assert again <= more
    assert same.steps <= found.steps


def test_the_work_grows_with_the_graph() -> None:
    short, long = (planned((40, *(56, 40) * blocks), Known())[0] for blocks in (2, 4))
    assert long <= 2.5 * short
