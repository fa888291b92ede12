"""What the report says of cycles: bound, factor, shares by kind of work, cycles of each node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, context, model_of, report_of
from onnx import TensorProto, helper

from pycompiler.code.lines import BlockOperand, Fragment, Move, single_step
from pycompiler.emit.program import concatenate
from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.machine import Target, load_target
from pycompiler.report.cycle_shares import KINDS, cycle_shares
from pycompiler.report.report import Report
from pycompiler.summary.table import closing_lines, cost_lines, summary_table

HALF_OF_KINDS = 1e-4 * len(KINDS) / 2  # each share is rounded to four digits


def product(rows: int, inner: int, columns: int) -> onnx.ModelProto:
    """Return a model that multiplies its input by a matrix."""
    weights = {"w": np.ones((inner, columns), np.float32)}
    return model_of([("MatMul", ["x", "w"], "y")], {"x": (rows, inner)}, ["y"], weights)


#: Machine, rows, contracted axis and columns of a product in single precision; the cycles of the
#: MAU and of DRAM. A MAB does 8 x 4 multiply-adds a cycle; mini has 8 MABs, mncore2 1024. A DRAM
#: gives 16 long words a cycle, of two singles each; mini has one, mncore2 four.
PRODUCTS = (
    ("mini", 32, 32, 32, 32**3 // (8 * 32), 3 * 32**2 // 2 // 16),
    ("mncore2", 64, 64, 128, 64 * 64 * 128 // (1024 * 32), (64 * 64 + 64 * 128 * 2) // 2 // 64),
)


@pytest.mark.parametrize(("machine", "rows", "inner", "columns", "mau", "dram"), PRODUCTS)
def test_bound_of_a_product(
    machine: str, rows: int, inner: int, columns: int, mau: int, dram: int
) -> None:
    _, report = compiled(product(rows, inner, columns), machine)
    bound, most = report["bound"], max(mau, dram)
    assert (bound["mau"], bound["dram"], bound["cycles"]) == (mau, dram, most)
    assert bound["multiply_adds"] == rows * inner * columns
    assert bound["factor"] == pytest.approx(report["cycles"] / most, abs=0.005)
    assert bound["factor"] >= 1
    assert bound["reason"] is None


def test_the_options_choose_the_rate() -> None:
    model = product(64, 256, 256)
    given: tuple[dict[str, Any], ...] = (
        {},
        {"float_dtype": "mixed"},
        {"gemm_precision": "half"},
        {"overrides": {"y": {"precision": "half"}}},
    )
    slow, *others = (compiled(model, "mncore2", **options)[1]["bound"] for options in given)
    assert slow["mau"] > 64 * 256 * 256 // 262144
    for bound in others:
        assert (bound["mau"], 2 * bound["dram"]) == (64 * 256 * 256 // 262144, slow["dram"])


def networks() -> list[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    """Return models of which several kinds of work come out, with options."""
    weights = {n: np.ones(shape, np.float32) for n, shape in (("w", (48, 32)), ("v", (32, 48)))}
    nodes = [
        ("MatMul", ["x", "w"], "h"),
        ("Relu", ["h"], "r"),
        ("MatMul", ["r", "v"], "l"),
        ("Softmax", ["l"], "y"),
    ]
    network = model_of(nodes, {"x": (24, 48)}, ["y"], weights)
    return [
        ("network", network, {}),
        ("network that keeps values", network, {"scheduler": "spill_opt"}),
        ("sum", model_of([("Add", ["x", "x"], "y")], {"x": (4, 8)}, ["y"]), {}),
    ]


@pytest.mark.parametrize(("name", "model", "options"), networks())
def test_nodes_add_up(name: str, model: onnx.ModelProto, options: dict[str, Any]) -> None:
    _, report = compiled(model, "mini", **options)
    rows, shares = report["nodes"], report["cycle_shares"]
    assert sum(row["cycles"] for row in rows) == report["cycles"]
    stalls = report["cycles"] - 4 * report["steps"]
    assert 0 < stalls <= sum(row["wait_cycles"] for row in rows) < report["cycles"]
    assert all(0 <= row["wait_cycles"] <= row["cycles"] for row in rows)
    assert tuple(shares) == KINDS
    assert sum(shares.values()) == pytest.approx(1, abs=HALF_OF_KINDS)
    waits = sum(row["wait_cycles"] for row in rows)
    assert sum(report["waits"].values()) == waits
    assert sum(report["waits"].values()) - report["waits"]["dependence"] == stalls
    assert shares["waits"] == pytest.approx(waits / report["cycles"], abs=1e-4)
    assert (shares["products"] > 0) == ("network" in name)
    assert shares["transfers"] > 0
    assert shares["elementwise"] > 0


def test_cycles_of_a_sum() -> None:
    """Its program has two MVs of 64 long words, which take 256 + 64 / 16 cycles each.

    The first step of the download waits for its MV. The upload waits with a `nop` at the end.
    """
    model = model_of([("Add", ["x", "x"], "y")], {"x": (4, 8)}, ["y"])
    _, report = compiled(model, "mini")
    found = {
        row["op"]: (row["steps"], row["cycles"], row["wait_cycles"]) for row in report["nodes"]
    }
    assert found == {
        "MNCoreDownload": (3, 3 * 4 + 260, 260),
        "Add": (3, 3 * 4, 0),
        "MNCoreUpload": (7, 7 * 4 + 260, 4 + 260),
    }
    total = 3 * 4 + 260 + 3 * 4 + 7 * 4 + 260
    assert report["cycles"] == total
    # Each MV takes 4 cycles for its words and 256 on the way; the `nop` of the upload is a step.
    assert report["waits"] == {"queue": 0, "transfer": 8, "latency": 512, "dependence": 4}
    shares = (0, 0, (3 * 4 + 6 * 4) / total, 3 * 4 / total, (260 + 264) / total)
    assert tuple(report["cycle_shares"].values()) == pytest.approx(shares, abs=5e-5)


def row(op: str, cycles: int, waits: int = 0) -> dict[str, Any]:
    """Return what shares are made of."""
    return {"op": op, "cycles": cycles, "wait_cycles": waits}


#: Rows of nodes with their cycles, and the shares of products, switches, transfers, elementwise
#: operators and waits.
SHARES: tuple[tuple[list[dict[str, Any]], tuple[float, ...]], ...] = (
    ([row("MatMul", 100)], (1, 0, 0, 0, 0)),
    ([row("MNCoreDownload", 100, 100)], (0, 0, 0, 0, 1)),
    (
        [row("Gemm", 30, 10), row("Conv", 20), row("MNCoreGroupedConv", 10),
         row("MNCoreDepthwise", 20)],
        (0.875, 0, 0, 0, 0.125),
    ),
    (
        [row("MNCoreDownload", 60, 50), row("MNCoreLayoutSwitch", 20), row("Exp", 15),
         row("MNCoreUpload", 5)],
        (0, 0.2, 0.15, 0.15, 0.5),
    ),
    ([row("MNCoreCopy", 1), row("MNCoreLookup", 1), row("ReduceSum", 2)], (0, 0, 0.5, 0.5, 0)),
)  # fmt: skip


@pytest.mark.parametrize(("rows", "wanted"), SHARES)
def test_shares(rows: list[dict[str, Any]], wanted: tuple[float, ...]) -> None:
    assert tuple(cycle_shares(rows).values()) == wanted


def test_no_cycles_have_no_shares() -> None:
    assert cycle_shares([]) == cycle_shares([row("Reshape", 0)]) == {}


def test_waits_for_a_long_mv() -> None:
    """An MV brings 640 long words, and the next line reads them.

    On mini a DRAM gives 16 long words a cycle, and the MV ends 256 cycles after the last one. The
    wait is on the line itself, so it costs no step.
    """
    target, words = load_target("mini"), 640
    move = Move(
        "mvp", words, BlockOperand("dram", 0, words, "x"), BlockOperand("l2bm", 0, words, l2b=0)
    )
    found = target.transfer("l2bmb", "down", l1bs_first=0, l1bs_free=1)
    down = single_step(
        "l2bm",
        "l2bmb",
        (BlockOperand("l2bm", 0, found.source_words),),
        BlockOperand("l1bm", 0, found.destination_words),
    )
    fragments = [("move", "move", Fragment((move,))), ("down", "down", Fragment((down,)))]
    code = concatenate(fragments, {"x": 0}, target)
    report = target.assemble(code.text, "p.vsm")
    ((line, stalled),) = report.stalls()
    assert stalled == 256 + words // 16
    assert [run.nodes for run in code.runs if run.line < line][-1] == (1,)
    assert [node.wait_steps for node in code.nodes] == [0, 0]


def test_nops_before_an_mv_are_waits() -> None:
    """On a machine where MVs may read L2BM only three steps after it was written, two are nops.

    The third wait step is the one for the MV at the end.
    """
    target = Target(load_target("mini").spec)
    rules = (replace(h, steps=2) if "mv" in h.readers else h for h in target.hazards)
    target.__dict__["hazards"] = tuple(rules)  # takes the place of the cached property
    words = target.transfer("l2bm", "up", l1b_number=0)
    above = BlockOperand("l2bm", 0, words.destination_words)
    below = BlockOperand("l1bm", 0, words.source_words)
    up = single_step("l2bm", "l2bm@0", (below,), above)
    size = target.mv_unit
    ends = BlockOperand("l2bm", 0, size, l2b=0), BlockOperand("dram", 0, size, "y")
    fragments = [("up", "", Fragment((up,))), ("move", "", Fragment((Move("mvp", size, *ends),)))]
    code = concatenate(fragments, {"y": 0}, target)
    assert "nop/2" in code.lines
    assert [(node.steps, node.wait_steps) for node in code.nodes] == [(1, 0), (3, 3)]


def test_no_bound_of_a_body() -> None:
    """Its work is not counted, so any number would be wrong."""
    then = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["t"], name="neg")],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, (3,))],
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], name="n", then_branch=then, else_branch=then)],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, (3,)),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3,))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    with pytest.warns(HostFallbackWarning):
        _, report = compiled(model)
    bound = dict(report["bound"])
    assert bound.pop("reason") == "the work in the body of If `n` is not counted"
    assert set(bound.values()) == {None}
    assert report["cycle_shares"] == {}
    assert cost_lines(report) == [
        "bound: none, because the work in the body of If `n` is not counted"
    ]


def test_operators_on_the_host_have_no_factor() -> None:
    """The bound is that of the whole model, but the cycles are those of a part."""
    weights = {"w": np.ones((33, 8), np.float32)}
    nodes = [("Det", ["x"], "d"), ("MatMul", ["x", "w"], "y")]
    with pytest.warns(HostFallbackWarning):
        _, report = compiled(model_of(nodes, {"x": (33, 33)}, ["d", "y"], weights))
    bound = report["bound"]
    assert bound["multiply_adds"] == 33 * 33 * 8
    assert bound["factor"] is None
    assert bound["reason"] == "the work on the host (1 operators) costs no cycles of the device"
    assert "; not compared, because the work on the host" in cost_lines(report)[0]


def test_a_failed_compile_has_neither(tmp_path: Path) -> None:
    with pytest.raises(PycompilerError):
        context("emu2:mini").compile(
            lambda d: {"y": torch.nonzero(d["x"]).sum()},  # as many places as values say
            {"x": torch.arange(16.0)},
            tmp_path / "out",
            options={"strict": True},
        )
    report = report_of(tmp_path / "out.failed")
    assert (report["bound"], report["cycle_shares"], report["waits"]) == ({}, {}, {})
    assert cost_lines(report) == []
    late = Report("mini", {})
    late.data |= {"bound": {"mau": 1}, "cycle_shares": {"waits": 1.0}}
    late.failed(ValueError("after the last pass"))
    assert (late.data["bound"], late.data["cycle_shares"]) == ({}, {})


def test_lines() -> None:
    bound = {"mau": 30, "dram": 40, "vector": 20, "cycles": 40, "binds": "dram"}
    bound |= {"factor": 2.5, "reason": None}
    facts = {"bound": bound, "cycle_shares": {"products": 0.756, "waits": 0.244}}
    assert cost_lines(facts) == [
        "bound: 40 cycles (products 30, DRAM 40 binds, vectors 20); "
        "the program takes 2.5 times as long",
        "shares of the cycles: products 76 %, waits 24 %",
    ]


def test_the_table_of_a_compile() -> None:
    """Cycles stand beside steps; `top` takes the slowest; the end says what the bound is."""
    name, model, options = networks()[0]
    _, report = compiled(model, "mini", **options)
    whole, top = (summary_table(report, name, most) for most in (None, 3))
    heads = [str(column.header) for column in whole.columns]
    at = heads.index("cycles")
    assert heads[at + 1] == "steps"
    cycles = [row["cycles"] for row in report["nodes"]]
    assert list(whole.columns[at].cells) == list(map(str, cycles))
    assert list(top.columns[at].cells) == list(map(str, sorted(cycles)[:-4:-1]))
    assert top.caption == f"{len(cycles) - 3} more rows (--top)"
    counts, leaves_out, above, waits = closing_lines(report)[-4:]
    assert waits.startswith("cycles of waits: queue ")
    assert counts.startswith("the bound counts multiply-adds")
    assert "the latency of the first load" in leaves_out
    kinds = report["cycle_shares"]
    most = max(kinds, key=kinds.__getitem__)
    assert above.startswith(f"{report['cycles'] - report['bound']['cycles']} cycles stand above it")
    assert f"; {most} (" in above
    report["bound"]["factor"] = None
    assert not closing_lines(report)[-1].endswith("of the program")
