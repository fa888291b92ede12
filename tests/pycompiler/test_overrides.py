"""Decisions of the user: followed, shown in the dumps, refused where nothing can follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.errors import PycompilerError
from pycompiler.graph import Location, parse_graph
from pycompiler.pfvm.session import HostSession
from pycompiler.pipeline import Compiled

RNG = np.random.default_rng(3)
CONSTANTS = {
    "w": RNG.standard_normal((32, 24)).astype(np.float32),
    "b": RNG.standard_normal(24).astype(np.float32),
}
MODEL = model_of(
    [
        ("MatMul", ["x", "w"], "a"),
        ("Add", ["a", "b"], "h"),
        ("Relu", ["h"], "r"),
        ("Mul", ["r", "a"], "y"),
    ],
    {"x": (16, 32)},
    ["y"],
    CONSTANTS,
)
INPUTS = {"x": RNG.standard_normal((16, 32)).astype(np.float32)}


def made(limit: float = 2e-4, **overrides: dict[str, str]) -> Compiled:
    """The model compiled with ``overrides``, its result checked."""
    result, report = compiled(MODEL, "mini", overrides=overrides)
    assert report["host_fallback"] == []
    wanted = HostSession(MODEL.SerializeToString(), "model").run(INPUTS)["y"]
    assert np.abs(run(result, INPUTS)["y"] - wanted).max() <= limit
    return result


def shown(result: Compiled, name: str) -> list[Any]:
    """Records of a value and its copies in the final dump."""
    graph = parse_graph(result.dumps["layout.address.txt"])
    return [v for n, v in graph.values.items() if n.split(".")[0] == name and ".own" not in n]


@pytest.mark.parametrize("value", ["x", "w", "a", "h", "r", "y"])
def test_any_layout_for_any_value(value: str) -> None:
    rows, columns = (32, 24) if value == "w" else (16, 32 if value == "x" else 24)
    text = f"(({rows // 4}:{columns // 4}, 4_PE:1), ({columns // 4}:1, 2_MAB:2, 2_W:1))"
    result = made(**{value: {"layout": text}})
    layouts = {str(record.layout) for record in shown(result, value)}
    assert text in layouts
    first = parse_graph(result.dumps["layout.layout.txt"])
    assert str(first.values[value].layout) == text


@pytest.mark.parametrize("bank", ["LM0", "LM1"])
def test_locations(bank: str) -> None:
    result = made(h={"location": bank})
    assert Location(bank) in {record.location for record in shown(result, "h")}
    result = made(h={"location": "DRAM"})
    assert Location.DRAM in {record.location for record in shown(result, "h")}
    assert Location.DRAM not in {record.location for record in shown(made(), "h")}


def test_dtype_of_one_product() -> None:
    half, single = made(2.0, a={"dtype": "Half"}), made()
    differ = run(half, INPUTS)["y"] - run(single, INPUTS)["y"]
    assert np.abs(differ).max() > 1e-3


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"nobody": {"layout": "((16:1))"}}, "no such value"),
        ({"h": {"color": "red"}}, "no planner decides `color`"),
        ({"h": {"location": "GRF"}}, "no location GRF"),
        ({"h": {"dtype": "Half"}}, "no matrix product"),
        ({"a": {"dtype": "Long"}}, "no product computes in Long"),
        ({"h": {"layout": "((16:1), (12:16, 4_W:1))"}}, "W reaches"),
        ({"x": {"location": "LM1"}}, "no node has it in LM1"),
    ],
)
def test_refusals(overrides: dict[str, dict[str, str]], reason: str) -> None:
    with pytest.raises(PycompilerError) as caught:
        compiled(MODEL, "mini", overrides=overrides)
    assert caught.value.code == "P0306"
    assert reason in caught.value.message


def test_not_a_dict_of_decisions() -> None:
    with pytest.raises(PycompilerError) as caught:
        compiled(MODEL, "mini", overrides={"h": "LM0"})
    assert caught.value.code == "P0702"


def test_a_dump_after_every_planner() -> None:
    dumps = made().dumps
    assert [name.split(".")[1] for name in dumps] == [
        "side",
        "dtype",
        "location",
        "layout",
        "time_slice",
        "slices",
        "reuse_consecutive",
        "address",
    ]
    for text in dumps.values():
        parse_graph(text)
