"""Decisions of the user are followed, shown in the dumps, or refused if they are impossible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import Node, compiled, model_of, run

from pycompiler.errors import PycompilerError
from pycompiler.graph import Location, parse_graph
from pycompiler.layers.dram_transfer import DOWNLOAD, UPLOAD
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
    """Compile the model with ``overrides`` and check its result."""
    result, report = compiled(MODEL, "mini", overrides=overrides)
    assert report["host_fallback"] == []
    wanted = HostSession(MODEL, "model").run(INPUTS)["y"]
    assert np.abs(run(result, INPUTS)["y"] - wanted).max() <= limit
    return result


def shown(result: Compiled, name: str) -> list[Any]:
    """Return the records of a value and its copies in the final dump."""
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


#: The second and the last node read the result of the first.
CHAIN = model_of(
    [("Neg", ["x"], "n"), ("Exp", ["n"], "e"), ("Abs", ["e"], "b"), ("Add", ["b", "n"], "y")],
    {"x": (16, 32)},
    ["y"],
)


def transfers(scheduler: str, value: str, **overrides: dict[str, str]) -> list[str]:
    """Return the moves of ``value`` between DRAM and LM in the scheduler's dump."""
    result, _ = compiled(CHAIN, "mini", scheduler=scheduler, overrides=overrides)
    plain, _ = compiled(CHAIN, "mini")
    assert np.array_equal(run(result, INPUTS)["y"], run(plain, INPUTS)["y"])
    graph = parse_graph(result.dumps[f"layout.{scheduler}.txt"])
    down = {n.name: n.inputs[0] for n in graph.nodes if n.op == DOWNLOAD}
    up = {n.name: n.outputs[0] for n in graph.nodes if n.op == UPLOAD}
    moved = {**down, **up}
    return [n.op for n in graph.nodes if moved.get(n.name) == value]


def test_what_stays_in_lm() -> None:
    assert transfers("reuse_consecutive", "n") == [UPLOAD, DOWNLOAD]
    assert transfers("reuse_consecutive", "n", n={"keep": "LM"}) == []
    assert transfers("spill_opt", "n") == []
    assert transfers("spill_opt", "n", n={"keep": "DRAM"}) == [UPLOAD, DOWNLOAD, DOWNLOAD]
    assert transfers("reuse_consecutive", "e", e={"keep": "DRAM"}) == [UPLOAD, DOWNLOAD]
    assert transfers("reuse_consecutive", "x", x={"keep": "LM"}) == [DOWNLOAD]


def test_what_a_product_makes_keeps_its_name() -> None:
    """So the user can give decisions for it."""
    graph = parse_graph(made().dumps["layout.layout.txt"])
    assert graph.producers()["a"].op == "MatMul"
    result = made(a={"address": "LM0:256"})
    assert parse_graph(result.dumps["layout.address.txt"]).values["a.lm0"].addr == 128


@pytest.mark.parametrize("scheduler", ["always_from_dram", "reuse_consecutive", "spill_opt"])
def test_every_scheduler_follows(scheduler: str) -> None:
    """The dumps show the given location and address; the result stays the same."""
    overrides = {"h": {"location": "LM1", "address": "LM1:64"}}
    result, _ = compiled(MODEL, "mini", overrides=overrides, scheduler=scheduler)
    graph = parse_graph(result.dumps[f"layout.{scheduler}.txt"])
    copies = [v for n, v in graph.values.items() if n.startswith("h.")]
    assert Location.LM1 in {record.location for record in copies}
    there = [v for v in shown(result, "h") if v.location is Location.LM1]
    assert {record.addr for record in there} == {32}
    plain, _ = compiled(MODEL, "mini", scheduler=scheduler)
    assert np.array_equal(run(result, INPUTS)["y"], run(plain, INPUTS)["y"])


def test_addresses() -> None:
    """Addresses can be given in any memory, in the units of the dumps; other values make room."""
    overrides = {"x": {"address": "DRAM:4096, LM0:128"}, "b": {"address": "LM1:0"}}
    result, _ = compiled(CHAIN, "mini", overrides=overrides)
    graph = parse_graph(result.dumps["layout.address.txt"])
    assert graph.values["x"].addr == 4096
    assert graph.values["x.lm0"].addr == 64
    assert graph.values["b.lm1"].addr == 0
    assert graph.values["b.lm1"].location is Location.LM1
    assert "addr=4096" in result.dumps["layout.address.txt"]
    plain, _ = compiled(CHAIN, "mini")
    assert np.array_equal(run(result, INPUTS)["y"], run(plain, INPUTS)["y"])


@pytest.mark.parametrize("scheduler", ["always_from_dram", "spill_opt"])
@pytest.mark.parametrize("name", ["x", "x.at1", "x.lm0", "x.at1__2"])
def test_addresses_of_values_named_like_copies(name: str, scheduler: str) -> None:
    """Copies in LM are called ``x.at1`` or ``x.lm0``; the user may call a value so."""
    model = model_of([("Neg", [name], "n"), ("Exp", ["n"], "y")], {name: (16, 32)}, ["y"])
    overrides = {name: {"address": "DRAM:4096, LM0:128"}}
    result, _ = compiled(model, "mini", overrides=overrides, scheduler=scheduler)
    graph = parse_graph(result.dumps["layout.address.txt"])
    assert graph.values[name].addr == 4096
    copy = next(node for node in graph.nodes if node.op == DOWNLOAD).outputs[0]
    assert (graph.values[copy].location, graph.values[copy].addr) == (Location.LM0, 64)
    assert np.array_equal(
        run(result, {name: INPUTS["x"]})["y"],
        run(compiled(model, "mini")[0], {name: INPUTS["x"]})["y"],
    )


def test_a_gene_gives_the_layout_of_an_operand() -> None:
    nodes: list[Node] = [
        ("Relu", ["x"], "r"),
        ("MatMul", ["r", "w"], "y"),
        ("Neg", ["z"], "n"),
        ("Exp", ["n"], "e"),
    ]
    shapes = {"x": (16, 32), "z": (16, 32)}
    model = model_of(nodes, shapes, ["y", "e"], {"w": CONSTANTS["w"]})
    plain, _ = compiled(model, "mini")
    result, report = compiled(model, "mini", overrides={"n": {"gene": "n1_MatMul,A"}})
    assert report["host_fallback"] == []
    graph, before = (parse_graph(r.dumps["layout.layout.txt"]) for r in (result, plain))
    operand = next(n for n in before.nodes if n.op == "MatMul").inputs[0]
    assert graph.values["n"].gene == ("n1_MatMul", "A")
    assert graph.values["n"].layout == before.values[operand].layout
    assert before.values["n"].gene == ("", "")
    assert before.values["n"].layout != graph.values["n"].layout
    inputs = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    found, other = run(result, inputs), run(plain, inputs)
    assert all(np.array_equal(found[name], other[name]) for name in other)


def test_time_slices_show_in_the_dump() -> None:
    result = made(h={"time_slice": "0:4"})
    layout = parse_graph(result.dumps["layout.time_slice.txt"]).values["h"].layout
    assert layout is not None
    assert layout.slices == 4


def test_dtypes_show_in_the_dump() -> None:
    def precision(result: Compiled) -> object:
        graph = parse_graph(result.dumps["layout.dtype.txt"])
        return dict(next(n for n in graph.nodes if n.op == "MatMul").attributes)["precision"]

    assert precision(made()) == "single"
    assert precision(made(2.0, a={"dtype": "Half"})) == "half"
    mixed, _ = compiled(MODEL, "mini", overrides={"a": {"dtype": "Float"}}, float_dtype="mixed")
    assert precision(mixed) == "single"


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
        ({"h": {"keep": "GRF"}}, "it can be kept in LM or DRAM"),
        ({"h": {"address": "LM0"}}, "is not LM0:number"),
        ({"h": {"address": "LM1:3"}}, "3 is no multiple of"),
        ({"h": {"address": "LM1:1000000"}}, "pass the end of lm1"),
        ({"h": {"address": "DRAM:0"}}, "no node has it in DRAM"),
        ({"x": {"address": "DRAM:0"}, "w": {"address": "DRAM:0"}}, "is there at the same time"),
        ({"h": {"gene": "nothing,A"}}, "no operand `nothing,A`"),
        ({"h": {"gene": "n0_MatMul,C"}}, "no operand `n0_MatMul,C`"),
        ({"h": {"gene": "n0_MatMul,A"}}, "has another shape"),
        ({"x": {"gene": "n0_MatMul,A", "layout": "((16:1), (32:1, 2_W:1))"}}, "says the layout"),
    ],
)
def test_refusals(overrides: dict[str, dict[str, str]], reason: str) -> None:
    with pytest.raises(PycompilerError) as caught:
        compiled(MODEL, "mini", overrides=overrides)
    assert caught.value.code == "P0306"
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("decision", "reason"),
    [({"keep": "LM"}, "keeps nothing in LM"), ({"location": "LM1"}, "no node has it in LM1")],
)
def test_what_always_from_dram_cannot_follow(decision: dict[str, str], reason: str) -> None:
    with pytest.raises(PycompilerError, match=reason):
        compiled(CHAIN, "mini", overrides={"x": decision}, scheduler="always_from_dram")


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
        "spill_opt",
        "address",
    ]
    for text in dumps.values():
        parse_graph(text)
