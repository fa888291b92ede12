"""The log, the graph without data, and the time line that a compile leaves."""

from __future__ import annotations

import io
import json
import random
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, tried
from hypothesis import given
from hypothesis import strategies as st
from random_models import random_model

import emu2
from pycompiler import build, command, search_passes
from pycompiler.app.model import DeviceSegment
from pycompiler.emit.segments import emit_segments
from pycompiler.errors import PycompilerError, error
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph
from pycompiler.layers.functions.fused import FUSED
from pycompiler.machine import load_target
from pycompiler.model_commands import commands
from pycompiler.pipeline import Compiled
from pycompiler.report.codegen_dir import L3IR, LOG_JSON, LOG_TEXT, STRIPPED, TRACE
from pycompiler.report.node_trace import in_use
from pycompiler.report.stripped import DOMAIN
from pycompiler.runtime.device import Board

#: Text that a host operator and everything around it give a program in two pieces.
HOSTED = [("Relu", ["x"], "a"), ("Sin", ["a"], "b"), ("Neg", ["b"], "y")]


def events_of(result: Compiled) -> list[dict[str, Any]]:
    return list(json.loads(result.files[TRACE])["traceEvents"])


def track(events: list[dict[str, Any]], process: str) -> list[dict[str, Any]]:
    """Return the slices of a process."""
    (pid,) = (e["pid"] for e in events if e["ph"] == "M" and e["args"]["name"] == process)
    return [e for e in events if e["pid"] == pid and e["ph"] == "X"]


def checked_trace(result: Compiled) -> None:
    """Compare a time line with what `emu2` says of the programs, and with the graph."""
    events = events_of(result)
    at, wanted = 0, Counter[tuple[int, int, int]]()
    for segment in result.app.segments:
        if isinstance(segment, DeviceSegment):
            program = emu2.assemble(segment.code, load_target("mini").spec)
            written = io.StringIO()
            program.trace(written)
            theirs = json.loads(written.getvalue())["traceEvents"]
            (pid,) = (
                e["pid"]
                for e in theirs
                if e["name"] == "process_name" and e["args"]["name"] == "MV"
            )
            for move in theirs:
                if move["pid"] == pid and move["ph"] == "X":
                    wanted[at + move["ts"], move["dur"], move["args"]["long words"]] += 1
            at += segment.cycles
    moves = track(events, "MV")
    assert Counter((m["ts"], m["dur"], m["args"]["words"]) for m in moves) == wanted
    nodes, host = track(events, "device"), track(events, "host")
    assert sum(one["dur"] for one in nodes) == sum(one["dur"] for one in host) == at
    for slices in (nodes, moves, host):
        ends: dict[int, int] = {}
        for one in sorted(slices, key=lambda e: (e["ts"], e["dur"])):
            assert one["ts"] >= ends.get(one["tid"], 0)
            ends[one["tid"]] = one["ts"] + one["dur"]
    names = {f"{node.op} {node.name}" for node in result.graph.nodes}
    assert {one["name"] for one in nodes} <= names
    for event in events:
        if event["ph"] == "C":
            memory = event["name"].partition(" ")[0].lower()
            assert 0 <= event["args"]["used"] <= load_target("mini").words(memory)


@pytest.mark.parametrize("seed", range(tried(5)))
def test_drawn_models(seed: int) -> None:
    model, _ = random_model(random.Random(seed))
    result, _ = compiled(model, emit=("concat", "l1merge")[seed % 2])
    checked_trace(result)
    checked_model(result)


def checked_model(result: Compiled) -> None:
    """Compare the graph without data with the graph."""
    model = onnx.load_from_string(result.files[STRIPPED])
    onnx.checker.check_model(model, full_check=True)
    graph: MNGraph = parse_graph(result.files[L3IR].decode())
    assert [(n.op_type, n.name) for n in model.graph.node] == [(n.op, n.name) for n in graph.nodes]
    assert {node.domain for node in model.graph.node} <= {DOMAIN}
    known = {
        info.name: info
        for info in (*model.graph.input, *model.graph.output, *model.graph.value_info)
    }
    assert known.keys() == graph.values.keys()
    assert not model.graph.initializer
    for name, info in known.items():
        value = graph.values[name]
        tensor = info.type.tensor_type
        assert tuple(d.dim_value for d in tensor.shape.dim) == value.shape
        facts = {prop.key: prop.value for prop in info.metadata_props}
        assert facts["location"] == value.location.value
        assert facts.get("addr") == (None if value.addr is None else str(value.addr))
        assert (facts.get("constant") == "yes") is (name in graph.constants)
    for node, drawn in zip(graph.nodes, model.graph.node, strict=True):
        found = {a.name: onnx.helper.get_attribute_value(a) for a in drawn.attribute}
        assert found.keys() == {name for name, value in node.attributes if value != ()}


def test_a_graph_with_nodes_on_the_host() -> None:
    with pytest.warns(UserWarning, match="Sin"):
        result, _ = compiled(model_of(HOSTED, {"x": (3, 5)}, ["y", "a"]))
    checked_trace(result)
    checked_model(result)
    marks = [e for e in events_of(result) if e["ph"] == "i"]
    assert [e["name"] for e in marks] == ["Sin n1_Sin"]
    assert len(track(events_of(result), "host")) == 2


def test_outputs_that_are_inputs_or_constants_or_twice() -> None:
    model = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"], {"c": np.ones(3, np.float32)})
    for name, size in (("c", 3), ("x", 4)):
        info = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (size,))
        model.graph.output.append(info)
    result, _ = compiled(model)
    whole = onnx.load_from_string(result.files[STRIPPED])
    onnx.checker.check_model(whole, full_check=True)
    assert {info.name for info in whole.graph.output} >= {"y", "x"}


rooms = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 9), st.integers(0, 9)).map(
        lambda r: (min(r[:2]), max(r[:2]), min(r[2:]), max(r[2:]))
    ),
    max_size=8,
)


@given(rooms)
def test_words_in_use(rooms: list[tuple[int, int, int, int]]) -> None:
    """Compare with sets of words at every time."""
    changes = dict(in_use(rooms))
    assert changes[0] >= 0
    used = 0
    for at in range(13):
        used = changes.get(at, used)
        words = {w for a, b, low, high in rooms if a <= at < b for w in range(low, high)}
        assert used == len(words)


def test_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    onnx.save(model_of([("Relu", ["x"], "y")], {"x": (3, 7)}, ["y"]), tmp_path / "m.onnx")
    out = tmp_path / "out"
    arguments = ["compile", str(tmp_path / "m.onnx"), "-o", str(out), "--device", "emu2:mini"]
    commands.main(arguments, standalone_mode=False)
    report = json.loads((out / "report.json").read_text())
    log = json.loads((out / LOG_JSON).read_text())
    assert log["status"] == "ok"
    passes = [e for e in log["events"] if e["event"] == "pass"]
    assert [e["pass"] for e in passes] == [row["pass"] for row in report["passes"]]
    assert all(e["seconds"] >= 0 and e["peak_mib"] > 0 for e in passes)
    assert all(a["time"] <= b["time"] for a, b in pairwise(passes))
    assert next(e for e in passes if e["pass"] == "address")["nodes"] == len(report["nodes"])
    text = (out / LOG_TEXT).read_text().splitlines()
    assert [line.split("] ")[1].split()[0] for line in text if line.startswith("[")] == [
        e["pass"] for e in passes
    ]
    # What the command printed stands there too.
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    table = [line for line in printed if line.startswith(("│", "┃"))]
    assert table
    cells = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in table]
    assert all(row in [re.split("  +", line) for line in text] for row in cells)
    assert printed[-1] in text
    assert text[-1] == "ok"


def test_rewrites_are_counted_and_dumped(tmp_path: Path) -> None:
    """In the report and both logs; a later compile without any leaves no dump behind."""
    nodes = [("Mul", ["x", "x"], "m"), ("Neg", ["m"], "n"), ("Relu", ["n"], "y")]
    model = model_of(nodes, {"x": (3, 7)}, ["y"])
    board = Board(load_target("mini"))
    build.build(lambda: model, "emu2:mini", board, {}, tmp_path)
    for name in ("report.json", LOG_JSON):
        data = json.loads((tmp_path / name).read_text())
        rows = [row for row in data.get("passes", data.get("events", ())) if "rewrites" in row]
        assert [row["rewrites"] for row in rows] == [{"fuse_elementwise": 2}]
    assert "rewrite fuse_elementwise: 2 times" in (tmp_path / LOG_TEXT).read_text()
    (dump,) = tmp_path.glob("rewrite.*.txt")
    assert [node.op for node in parse_graph(dump.read_text()).nodes] == [FUSED]
    build.build(lambda: model, "emu2:mini", board, {"fuse_elementwise": False}, tmp_path)
    assert not list(tmp_path.glob("rewrite.*.txt"))


def written(folder: Path) -> None:
    """Compile a small model into a folder."""
    model = model_of([("Relu", ["x"], "y")], {"x": (3, 7)}, ["y"])
    build.build(lambda: model, "emu2:mini", Board(load_target("mini")), {}, folder)


def test_dump_gpfnapp(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "o")
    app = str(tmp_path / "o" / "model.app")
    printed = []
    for arguments in (["pycompiler", "dump", app], ["dump_gpfnapp", app]):
        monkeypatch.setattr(sys, "argv", arguments)
        run = command.main if len(arguments) == 3 else command.dump_gpfnapp
        with pytest.raises(SystemExit) as caught:
            run()
        assert caught.value.code == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "GPFNApp by" in printed[0]


def test_a_failed_compile_keeps_its_log(tmp_path: Path) -> None:
    def stop(*_: object, **__: object) -> None:
        raise error("P0302", words=9, memory="dram", capacity=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pycompiler.search_passes.emit_segments", stop)
        with pytest.raises(PycompilerError):
            written(tmp_path / "out")
    failed = tmp_path / "out.failed"
    log = json.loads((failed / LOG_JSON).read_text())
    assert log["status"] == "failed"
    assert log["error"]["code"] == "P0302"
    assert log["events"][-1]["pass"] == "emit"
    text = (failed / LOG_TEXT).read_text()
    assert "P0302" in text
    # What the passes before it made is there.
    onnx.checker.check_model(onnx.load(failed / STRIPPED))
    assert parse_graph((failed / L3IR).read_text()).nodes
    assert not (failed / TRACE).exists()
    written(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_long_compile_keeps_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the folder in a late pass: that is what is left if the process is killed there."""
    seen: list[dict[str, Any]] = []

    def look(*arguments: Any) -> Any:
        failed = tmp_path / "out.failed"
        seen.append(json.loads((failed / "report.json").read_text()))
        assert json.loads((failed / LOG_JSON).read_text())["status"] == "running"
        assert "dump" in (failed / LOG_TEXT).read_text()
        assert not (tmp_path / "out").exists()
        return emit_segments(*arguments)

    monkeypatch.setattr(build, "_KEEP_SECONDS", 0.0)
    monkeypatch.setattr(search_passes, "emit_segments", look)
    written(tmp_path / "out")
    assert [report["status"] for report in seen] == ["running"]
    assert [row["pass"] for row in seen[0]["passes"]][-1] == "estimate"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
