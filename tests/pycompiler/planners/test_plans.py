"""Nodes say which schedule they have: nothing behind the layout planner finds it out again."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import LONG, compiled, model_of, run
from gradient_models import gradient_model, wanted_gradient

from pycompiler.errors import PycompilerError
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.plan import OnePass, PartSums, Plan, Resident, SharedSums, Streamed, WholeSums
from pycompiler.graph.text import parse_graph, print_graph
from pycompiler.graph.verify import STRUCTURE, verify
from pycompiler.layers.operators import LAYERS, RULES
from pycompiler.layers.products import choose, streamed
from pycompiler.layers.weight_gradient import layouts, shares
from pycompiler.machine import load_target
from pycompiler.pipeline import Compiled

ROOT = Path(__file__).parents[3] / "pycompiler"
#: Names under which rooms once found out which schedule was meant, by file or folder.
FORMER = {
    "layers": {"WAY", "PARTS", "way_of", "with_way"},
    "layers/products/streamed.py": {"streams", "spread", "_along", "wanted_layouts", "has_room"},
    "layers/weight_gradient": {"shared_sums", "chosen", "_shares"},
    "planners": {"_takes"},
}


def _names(path: Path) -> Iterator[str]:
    """Yield what a module defines and imports."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))


@pytest.mark.parametrize("place", FORMER)
def test_no_room_finds_out_what_was_meant(place: str) -> None:
    at = ROOT / place
    files = [at] if at.is_file() else sorted(at.rglob("*.py"))
    assert files
    found = {(file.name, name) for file in files for name in _names(file)}
    assert not [one for one in found if one[1] in FORMER[place]]


PRODUCT_SHAPES = {"a": (121, 208), "b": (208, 125)}
PRODUCT = model_of([("MatMul", ["a", "b"], "y")], PRODUCT_SHAPES, ["y"])
CASE = (32, 64, 64, (8, 8), (3, 3), 1, 1, 1)
GRADIENT, SHAPES = gradient_model(CASE)


@cache
def _streamed() -> tuple[MNGraph, str]:
    return compiled(PRODUCT, float_dtype="mixed")[0].graph, "mini"


@cache
def _gradient_compiled() -> Compiled:
    return compiled(GRADIENT, "mncore2", float_dtype="mixed")[0]


def _gradient() -> tuple[MNGraph, str]:
    return _gradient_compiled().graph, "mncore2"


@pytest.mark.parametrize(
    ("made", "wanted"),
    [(_streamed, [Streamed]), (_gradient, [PartSums, SharedSums])],
)
def test_code_comes_from_the_plan_alone(
    made: Any, wanted: list[type[Plan]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No candidates are made for the verifier, for costs, or for code; the text has the plans."""
    graph, machine = made()
    target = load_target(machine)
    shares.shares_by.cache_clear()

    def again(*_: object) -> None:
        raise AssertionError("candidates are made again")

    monkeypatch.setattr(streamed, "_plans", again)
    monkeypatch.setattr(shares, "_offered", again)
    monkeypatch.setattr(layouts, "shares_of", again)
    read = verify(parse_graph(print_graph(graph)), target, (*STRUCTURE, *RULES))
    plans = [type(one.plan) for one in read.nodes if not isinstance(one.plan, OnePass | None)]
    assert plans == wanted
    for node in read.nodes:
        layer = LAYERS[node.op]
        assert layer.emit(node, read, target).lines == layer.emit(node, graph, target).lines
        if node.plan is not None:
            assert layer.cost(node, read, target) > 0


@pytest.mark.parametrize(
    ("plan", "rule", "reason"),
    [
        (None, "plans", "its schedules are Resident, Streamed"),
        (PartSums(), "plans", "its schedules are Resident, Streamed"),
        (Resident(), "accepted", "does not accept"),
        (Streamed(None, (), ()), "accepted", "does not accept"),
    ],
)
def test_a_plan_that_layouts_contradict_is_refused(
    plan: Plan | None, rule: str, reason: str
) -> None:
    graph, machine = _streamed()
    nodes = tuple(replace(one, plan=plan) if one.plan else one for one in graph.nodes)
    with pytest.raises(PycompilerError, match=reason) as caught:
        verify(replace(graph, nodes=nodes), load_target(machine), (*STRUCTURE, *RULES))
    assert (caught.value.code, caught.value.fields["rule"]) == ("P0204", rule)


def test_a_shared_sum_with_other_places_is_refused() -> None:
    graph, machine = _gradient()
    target = load_target(machine)
    (join,) = (node for node in graph.nodes if isinstance(node.plan, SharedSums))
    assert isinstance(join.plan, SharedSums)
    for places in (join.plan.places[1:], join.plan.places[::-1]):
        other = replace(join, plan=replace(join.plan, places=places))
        assert list(LAYERS[join.op].refusals(other, graph, target))


def _text(plan: Plan) -> str:
    return json.dumps(plan.json)


def _planned(found: Compiled) -> list[Plan]:
    graph = parse_graph(found.dumps["layout.layout.txt"])
    plans = [node.plan for node in graph.nodes if node.plan is not None]
    return [plan for plan in plans if not isinstance(plan, OnePass)]


@pytest.mark.parametrize("planner", ["lpz", "first_arrival"])
def test_overrides_give_the_plan_of_a_product(planner: str) -> None:
    shapes = {"a": (121, 64), "b": (64, 61)}
    model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"])
    given = {"float_dtype": "mixed", "layout_planner": planner}
    graph = compiled(model, **given)[0].graph
    (own,) = (node for node in graph.nodes if node.op == "MatMul")
    target = load_target("mini")
    offered = choose.candidate_layouts(own, graph, target, {})
    plans = {plan for one in offered for plan in one.plans.values() if plan is not None}
    assert {type(plan) for plan in plans} == {Resident, Streamed}
    assert len(plans) == 3
    draw = np.random.default_rng(4)
    data = {n: draw.integers(-4, 5, s).astype(np.float32) for n, s in shapes.items()}
    for plan in plans:
        result, _ = compiled(model, overrides={"y": {"plan": _text(plan)}}, **given)
        assert _planned(result) == [plan]
        assert np.array_equal(run(result, data)["y"], data["a"] @ data["b"])


def test_overrides_give_the_plan_of_a_weight_gradient() -> None:
    graph, machine = _gradient()
    (shared,) = (node.plan for node in graph.nodes if isinstance(node.plan, SharedSums))
    draw = np.random.default_rng(4)
    data = {n: draw.integers(-7, 8, s).astype(np.float32) for n, s in SHAPES.items()}
    (value,) = (
        node.outputs[0]
        for node in parse_graph(_gradient_compiled().dumps["layout.dtype.txt"]).nodes
        if node.op == "MNCoreWeightGradient"
    )
    # The other plan is the one that the planner takes.
    for plan in (WholeSums(), shared) if LONG else (WholeSums(),):
        overrides = {value: {"plan": _text(plan)}}
        result, _ = compiled(GRADIENT, machine, float_dtype="mixed", overrides=overrides)
        assert _planned(result) == [plan]
        assert np.array_equal(
            run(result, data, machine)["y"], wanted_gradient(data["x"], data["g"], CASE)
        )


@pytest.mark.parametrize(
    ("value", "text", "reason"),
    [
        ("y", "Streamed", "Expecting value"),
        ("y", '{"Streamed": {}}', "is no plan"),
        ("y", '{"WholeSums": {}}', "its node cannot have the plan WholeSums"),
        ("a", '{"Resident": {}}', "its node cannot have the plan Resident"),
        ("y", '{"Streamed": {"along": null, "columns": "()", "rows": "()"}}', "go with its plan"),
    ],
)
def test_plans_that_cannot_be_followed(value: str, text: str, reason: str) -> None:
    with pytest.raises(PycompilerError, match=reason) as caught:
        compiled(PRODUCT, float_dtype="mixed", overrides={value: {"plan": text}})
    assert caught.value.code == "P0306"
