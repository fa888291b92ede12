"""Nodes say which schedule they have: nothing behind the layout planner finds it out again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compiling import compiled, model_of
from gradient_models import gradient_model

from pycompiler.errors import PycompilerError
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.plan import PartSums, Plan, Resident, SharedSums, Streamed
from pycompiler.graph.text import parse_graph, print_graph
from pycompiler.graph.verify import STRUCTURE, verify
from pycompiler.layers.operators import LAYERS, RULES
from pycompiler.layers.products import choose
from pycompiler.layers.weight_gradient import layouts, shares
from pycompiler.machine import load_target

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


def _streamed() -> tuple[MNGraph, str]:
    model = model_of([("MatMul", ["a", "b"], "y")], {"a": (121, 208), "b": (208, 125)}, ["y"])
    return compiled(model, float_dtype="mixed")[0].graph, "mini"


def _gradient() -> tuple[MNGraph, str]:
    model, _ = gradient_model((32, 64, 64, (8, 8), (3, 3), 1, 1, 1))
    return compiled(model, "mncore2", float_dtype="mixed")[0].graph, "mncore2"


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

    monkeypatch.setattr(choose, "_streamed_plans", again)
    monkeypatch.setattr(shares, "_offered", again)
    monkeypatch.setattr(layouts, "shares_of", again)
    read = verify(parse_graph(print_graph(graph)), target, (*STRUCTURE, *RULES))
    assert [type(node.plan) for node in read.nodes if node.plan is not None] == wanted
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
