"""A traced compile: its rows cover all passes and operators, and nest; nothing stays behind."""

from __future__ import annotations

import csv
import io
import json
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from compiling import model_of
from perfetto import read_trace

from pycompiler import cli
from pycompiler.build import build
from pycompiler.machine import load_target
from pycompiler.profile import compile_trace
from pycompiler.profile.compile_trace import COLUMNS, PICTURE, STEPS, TABLE, Trace, traced
from pycompiler.report.report import Report
from pycompiler.runtime.device import Board

MODEL = model_of(
    [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")], {"x": (8, 32), "w": (32, 16)}, ["y"]
)


def replaced() -> list[Any]:
    """All functions that are spans while a compile is traced."""
    found: list[Any] = [Report.running]
    for module, path, _, _ in STEPS:
        owner: Any = import_module(f"pycompiler.{module}")
        for part in path.split("."):
            owner = getattr(owner, part)
        found.append(owner)
    return found


def compiled(where: Path, **options: Any) -> dict[str, Any]:
    build(lambda: MODEL, "emu2:mini", Board(load_target("mini")), options, where / "out")
    found: dict[str, Any] = json.loads((where / "out/report.json").read_text())
    return found


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / TABLE).read_text())))


def test_a_table_and_a_picture_of_all_passes_and_operators(tmp_path: Path) -> None:
    before = replaced()
    report = compiled(tmp_path, trace_compile=tmp_path / "trace")
    assert replaced() == before
    rows = rows_of(tmp_path / "trace")
    assert tuple(rows[0]) == COLUMNS
    assert {row["pass"] for row in report["passes"]} <= {row["pass"] for row in rows}
    fragments = {r["operator"] for r in rows if r["step"] == "fragment"}
    assert fragments == {node["op"] for node in report["nodes"]}
    # What a span takes is its own time, and that of the spans inside it.
    seconds = {name: [float(row[name]) for row in rows] for name in COLUMNS[4:7]}
    whole = seconds["cpu_seconds"][0]
    assert rows[0]["pass"] == "compile"
    assert sum(seconds["own_cpu_seconds"]) == pytest.approx(whole, abs=1e-3)
    assert all(own <= cpu for own, cpu in zip(*list(seconds.values())[:0:-1], strict=True))
    assert max(int(row["peak_mib"]) for row in rows) == int(rows[0]["peak_mib"])
    slices = read_trace((tmp_path / "trace" / PICTURE).read_bytes())
    names = {name for _, name, *_ in slices}
    assert {"compile", "layout", "search", "emit"} <= names
    assert {"cpu_us", "peak_mib", "grown_mib"} == set(slices[0][4])


def test_a_compile_has_the_same_result_and_is_not_traced_without_the_option(tmp_path: Path) -> None:
    compiled(tmp_path / "one", trace_compile=str(tmp_path / "trace"))
    compiled(tmp_path / "two")
    texts = [(tmp_path / name / "out/model.vsm").read_text() for name in ("one", "two")]
    assert texts[0] == texts[1]
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "trace"}


def test_a_compile_that_fails_leaves_what_it_took(tmp_path: Path) -> None:
    before = replaced()

    def fail() -> None:
        with traced({"trace_compile": tmp_path / "trace"}), Report("", {}).running("side"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert replaced() == before
    assert [row["pass"] for row in rows_of(tmp_path / "trace")] == ["compile", "side"]


def test_spans_of_other_threads_count_for_the_one_that_waits() -> None:
    trace = Trace()

    def work() -> None:
        with trace.span("inside"):
            pass

    with trace.span("outside"):
        other = threading.Thread(target=work)
        other.start()
        other.join()
    assert [path for path, _ in trace.rows] == [("outside",)]


def test_short_spans_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_trace, "_SHORT", 1 << 60)
    trace = Trace()
    with trace.span("pass", "Relu"):
        pass
    assert not trace.slices
    assert "pass,,Relu,1" in trace.table()


def test_the_command_writes_the_trace(tmp_path: Path) -> None:
    onnx.save(MODEL, str(tmp_path / "m.onnx"))
    given = ["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--device"]
    given += ["emu2:mini", "--trace-compile", str(tmp_path / "trace")]
    result = CliRunner().invoke(cli.commands, given)
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path / 'trace'}" in result.output
    assert len(rows_of(tmp_path / "trace")) > 10
