"""What a compiled function answers: cycles, time, bound, kinds, slowest nodes, the picture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from compiling import context, model_of, report_of

from pycompiler.build import build
from pycompiler.machine import load_target
from pycompiler.mlsdk import CompiledFunction
from pycompiler.partitioning import partition
from pycompiler.runtime.app_file import load_app
from pycompiler.runtime.device import Board
from pycompiler.summary import Performance
from pycompiler.summary.performance import in_turn
from pycompiler.summary.time_line import Slice, slices_of, time_line

CLOCK = load_target("mini").spec.clock_mhz


def network() -> onnx.ModelProto:
    weights = {"w": np.ones((16, 32), np.float32)}
    return model_of(
        [("MatMul", ["x", "w"], "h"), ("Exp", ["h"], "y")], {"x": (8, 16)}, ["y"], weights
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CompiledFunction:
    folder = tmp_path_factory.mktemp("made") / "net"
    board = Board(load_target("mini"))
    return CompiledFunction(build(network, "emu2:mini", board, {}, folder), folder)


def test_answers_are_those_of_the_report(made: CompiledFunction) -> None:
    facts, found = report_of(made.codegen_dir), made.report
    assert facts["clock_mhz"] == CLOCK
    assert found.cycles == facts["cycles"] > 0
    assert found.microseconds == facts["cycles"] / CLOCK
    assert found.times_the_bound == facts["bound"]["factor"]
    kinds = found.cycles_by_kind
    assert sum(kinds.values()) == found.cycles
    for kind, share in facts["cycle_shares"].items():
        assert kinds[kind] / found.cycles == pytest.approx(share, abs=1e-4)
    most = max(facts["nodes"], key=lambda row: row["cycles"])
    assert found.slowest(1) == [most]
    assert len(found.slowest(3)) == 3


def test_a_compiled_function_prints_five_lines(made: CompiledFunction) -> None:
    lines = str(made).split("\n")
    assert [line.split(":")[0] for line in lines] == [
        *("net for emu2", "bound", "shares of the cycles", "slowest", "then")
    ]
    cycles = made.report.cycles
    assert f"{cycles} cycles, {cycles / CLOCK:.4g} us at {CLOCK} MHz" in lines[0]
    assert made.report.slowest(1)[0]["node"] in lines[3]


def test_the_page_of_a_notebook_has_the_time_line(made: CompiledFunction) -> None:
    page = made._repr_html_()
    assert "<script" not in page
    picture = page[page.index("<svg") : page.index("</svg>") + 6]
    root = ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    said = [one.text for one in root.iter(f"{space}text")]
    assert {"nodes", "MVs", "cycles", "us", "products", "0"} <= set(said)
    events = json.loads((made.codegen_dir / "trace.json").read_text())["traceEvents"]
    told = [one.text or "" for one in root.iter(f"{space}title")]
    for event in events:
        if event["ph"] == "X" and event["pid"] in (2, 3):
            end = event["ts"] + event["dur"]
            assert any(f"{event['name']}: cycles {event['ts']} to {end}" in one for one in told)
    for row in made.report.slowest():
        assert f"<code>{row['node']}</code>" in page


def test_a_folder_that_was_written_anew_has_no_time_line(tmp_path: Path) -> None:
    board = Board(load_target("mini"))

    def one(op: str) -> CompiledFunction:
        model = model_of([(op, ["x"], "y")], {"x": (8, 16)}, ["y"])
        made = build(lambda: model, "emu2:mini", board, {}, tmp_path / "net")
        return CompiledFunction(made, tmp_path / "net")

    first = one("Exp")
    second = one("Neg")
    assert first.report.slices == []
    assert first.report.cycles != second.report.cycles == report_of(tmp_path / "net")["cycles"]
    assert "<svg" not in first._repr_html_()
    assert second.report.slices


def test_an_app_says_what_it_does_not_know(made: CompiledFunction) -> None:
    alone = load_app(made.codegen_dir / "model.app").report
    whole = made.report
    assert (alone.cycles, alone.microseconds) == (whole.cycles, whole.microseconds)
    assert [(row["node"], row["cycles"]) for row in alone.slowest(2)] == [
        (row["node"], row["cycles"]) for row in whole.slowest(2)
    ]
    assert alone.times_the_bound is None
    assert alone.cycles_by_kind == {}
    assert "not known: the bound and the kinds of work" in str(alone)
    loaded = context("emu2:mini").load_codegen_dir(made.codegen_dir / "model.app")
    assert str(loaded) == str(alone)
    assert str(context("emu2:mini").load_codegen_dir(made.codegen_dir)) == str(made)


def test_the_host_has_no_cycles(tmp_path: Path) -> None:
    made = CompiledFunction(build(network, "pfvm:cpu", None, {}, tmp_path / "a"), tmp_path / "a")
    assert str(made) == "a for pfvm:cpu: nothing runs on the device, so it has no cycles"
    assert (made.report.cycles, made.report.microseconds) == (0, None)
    assert "<svg" not in made._repr_html_()


def test_pieces_add_up() -> None:
    found = partition(network(), "emu2:mini", threshold=float("inf"))
    report = found.report
    (piece,) = report.parts
    assert report.cycles == piece.cycles > 0
    assert report.times_the_bound == piece.times_the_bound
    twice = in_turn("two", "mini", [piece, piece], ["the rest"])
    assert (twice.cycles, twice.times_the_bound) == (2 * piece.cycles, piece.times_the_bound)
    assert twice.cycles_by_kind == {kind: 2 * own for kind, own in piece.cycles_by_kind.items()}
    assert [one.start for one in twice.slices] == [
        *(one.start for one in piece.slices),
        *(one.start + piece.cycles for one in piece.slices),
    ]
    assert str(twice).endswith("not known: the rest")
    assert str(in_turn("none", "emu2", [])).endswith("so it has no cycles")


@pytest.mark.parametrize("cycles", [1, 7, 999, 1000, 123_456_789])
def test_ticks_are_few_and_round(cycles: int) -> None:
    lane = Slice(("nodes", 0), "Gemm <a>", 0, cycles, "")
    picture = time_line([lane], cycles, 500)
    assert "Gemm &lt;a&gt;" in picture
    ticks = re.findall(r'y="43" text-anchor="middle">([\d,]+)<', picture)
    assert ticks[0] == "0"
    assert 2 <= len(ticks) <= 11
    step = int(ticks[1].replace(",", ""))
    assert step in {base * 10**power for base in (1, 2, 5) for power in range(9)}
    assert [int(tick.replace(",", "")) for tick in ticks] == list(range(0, cycles + 1, step))


def test_no_trace_no_slices() -> None:
    for text in (b"", b"[]", b'{"traceEvents": [{}]}'):
        assert slices_of(text) == []
    facts = {"device": "mini", "clock_mhz": 1, "cycles": 4, "nodes": [], "bound": {}}
    empty = Performance("a", {**facts, "cycle_shares": {}, "host_fallback": []})
    assert str(empty) == "a for mini: 4 cycles, 4 us at 1 MHz"
