"""Forced layouts from files: followed by every planner, shown in dumps, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.cache import cache_key
from pycompiler.errors import LayoutSpecWarning, PycompilerError
from pycompiler.graph import MNGraph, parse_graph
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.session import HostSession
from pycompiler.pipeline import Compiled

MUST_FAIL = Path(__file__).parent / "layout_specs" / "must_fail"
RNG = np.random.default_rng(5)
CONSTANTS = {"model.weight": RNG.standard_normal((32, 24)).astype(np.float32)}
MODEL = model_of(
    [("MatMul", ["x", "model.weight"], "a"), ("Relu", ["a"], "r"), ("Mul", ["r", "a"], "y")],
    {"x": (16, 32)},
    ["y"],
    CONSTANTS,
)
INPUTS = {"x": RNG.standard_normal((16, 32)).astype(np.float32)}
PLANNERS = ("lpz", "first_arrival")


def made(**options: Any) -> tuple[Compiled, dict[str, Any]]:
    """Compile the model with ``options`` and check its result."""
    result, report = compiled(MODEL, "mini", **options)
    assert report["host_fallback"] == []
    wanted = HostSession(MODEL, "model").run(INPUTS)["y"]
    assert np.abs(run(result, INPUTS)["y"] - wanted).max() <= 2e-4
    return result, report


def laid_out(result: Compiled) -> MNGraph:
    return parse_graph(result.dumps["layout.layout.txt"])


def operand(result: Compiled, op: str, number: int) -> str:
    """Return the layout of an operand of the only node ``op``, counted over inputs and outputs."""
    graph = laid_out(result)
    (node,) = (node for node in graph.nodes if node.op == op)
    return str(graph.values[(*node.inputs, *node.outputs)[number]].layout)


def written(path: Path, *entries: dict[str, Any]) -> str:
    path.write_text(json.dumps(entries))
    return str(path)


def axes(text: str) -> str:
    """Return a layout's text without its copies and the last bracket."""
    return text.split(";")[0] if ";" in text else text.removesuffix(")")


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_input_that_only_forced_nodes_read(tmp_path: Path, planner: str) -> None:
    """No region and no layer names its layout: it has the forced one."""
    model = model_of(
        [("MatMul", ["x", "w"], "a"), ("Mul", ["a", "z"], "y")],
        {"x": (16, 32), "z": (16, 24)},
        ["y"],
        {"w": CONSTANTS["model.weight"]},
    )
    text = "((4:6, 4_PE:1), (6:1, 2_MAB:2, 2_W:1))"
    entry = {"trigger": "SwitchInput", "op_type": "Mul", "shape": [16, 24], "layout": text}
    spec = written(tmp_path / "spec.json", entry)
    result, _ = compiled(model, "mini", layout_spec=spec, layout_planner=planner)
    assert axes(operand(result, "Mul", 1)) == axes(text)


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("op", "trigger", "number"),
    [("Relu", "SwitchInput", 0), ("Relu", "FixOutput", 1), ("Mul", "FixOutput", 2)],
)
def test_any_layout_of_an_elementwise_operand(
    tmp_path: Path, planner: str, op: str, trigger: str, number: int
) -> None:
    text = "((4:6, 4_PE:1), (6:1, 2_MAB:2, 2_W:1))"
    entry = {"trigger": trigger, "op_type": op, "shape": [16, 24], "layout": text}
    spec = written(tmp_path / "spec.json", entry)
    result, report = made(layout_spec=spec, layout_planner=planner)
    assert operand(result, op, number) == text
    assert report["layout_spec_unused"] == []


@pytest.mark.parametrize("planner", PLANNERS)
def test_products_by_the_name_of_their_weight(tmp_path: Path, planner: str) -> None:
    free, _ = made(layout_planner="first_arrival", layout_spec=None)
    given = {
        "A": "((2_L1B:1, 2_MAB:2, 4:4), (4:1, 4_PE:1, 2_W:1); B@[2_MAB:1])",
        "BT": "((2_MAB:1, 16:4), (4:1, 4_PE:1, 2_W:1); B@[2_MAB:2,L1B])",
        "C": "((2_L1B:1, 2_MAB:2, 4:2), (2_MAB:1, 2:1, 4_PE:1, 2_W:1))",
    }
    assert not operand(free, "MatMul", 2).startswith(axes(given["C"]))
    spec = written(tmp_path / "gemm.json", {"key": "weight", **given})
    result, _ = made(gemm_layout_spec=spec, layout_planner=planner)
    # There may be more copies than the spec asks for.
    assert axes(operand(result, "MatMul", 0)) == axes(given["A"])
    assert axes(operand(result, "MatMul", 2)) == axes(given["C"])
    columns, contracted = axes(given["BT"]).removeprefix("((").removesuffix(")").split("), (")
    assert axes(operand(result, "MatMul", 1)) == f"(({contracted}), ({columns})"


def test_what_fits_nothing_is_named(tmp_path: Path) -> None:
    entry = {"trigger": "FixOutput", "op_type": "Tanh", "shape": [16, 24], "layout": "((1:1), (1))"}
    other = {"key": "nobody", "A": "((16:1))", "BT": "((16:1))", "C": "((16:1))"}
    options = {
        "layout_spec": written(tmp_path / "spec.json", entry),
        "gemm_layout_spec": written(tmp_path / "gemm.json", other),
    }
    with pytest.warns(LayoutSpecWarning, match="entry 0 of spec.json, entry 0 of gemm.json"):
        _, report = made(**options)
    assert report["layout_spec_unused"] == ["entry 0 of spec.json", "entry 0 of gemm.json"]
    assert any("fit no operator" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("no_json", "P0310", "no JSON"),
        ("no_list", "P0310", "no list of entries"),
        ("missing_key", "P0310", "layout, op_type, shape, trigger"),
        ("unknown_trigger", "P0310", "'Sometimes' is none of SwitchInput, FixOutput"),
        ("bad_shape", "P0310", "'16x24' is no list of sizes"),
        ("bad_layout", "P0310", "is not a layout"),
        ("too_short", "P0311", "axis 1 has 24 elements, its digits reach 16"),
        ("wrong_words", "P0311", "W reaches 3"),
        ("no_product_can", "P0311", "MatMul has no other operands' layouts that go with it"),
        ("operands_differ", "P0311", "Mul has no other operands' layouts that go with it"),
    ],
)
def test_refusals(name: str, code: str, reason: str) -> None:
    with pytest.raises(PycompilerError) as caught:
        compiled(MODEL, "mini", layout_spec=str(MUST_FAIL / f"{name}.json"))
    assert caught.value.code == code
    assert reason in caught.value.message


def test_every_refusal_has_its_file() -> None:
    assert len(list(MUST_FAIL.glob("*.json"))) == 10


def test_a_missing_file() -> None:
    with pytest.raises(PycompilerError) as caught:
        compiled(MODEL, "mini", gemm_layout_spec="nowhere/at/all.json")
    assert caught.value.code == "P0001"


def test_the_cache_knows_the_content(tmp_path: Path) -> None:
    target = load_target("mini")
    entry = {"trigger": "FixOutput", "op_type": "Relu", "shape": [16, 24]}
    keys = set()
    for text in ("((16:24), (24:1); B@[W])", "((16:12), (12:1, 2_W:1))"):
        spec = written(tmp_path / "spec.json", {**entry, "layout": text})
        keys.add(cache_key(MODEL, target, parse_options({"layout_spec": spec})))
    keys |= {cache_key(MODEL, target, parse_options({"layout_planner": p})) for p in PLANNERS}
    assert len(keys) == 4
