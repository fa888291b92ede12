"""Every tool that names nodes of lines gives each node the cycles and steps of the report."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compiling import sampled
from random_models import random_model

import emu2
from emu2.profiling import profile
from pycompiler.app.dump import dump_app
from pycompiler.app.make_app import program_text, programs_of
from pycompiler.app.model import App, DeviceSegment
from pycompiler.app.writer import write_app
from pycompiler.build import build, load_function
from pycompiler.debug.moments import Moments
from pycompiler.emit import program as emitted
from pycompiler.emit.line_table import LineTable
from pycompiler.errors import PycompilerError
from pycompiler.graph.text import parse_graph
from pycompiler.machine import Target, load_target
from pycompiler.profile.nodes import lines
from pycompiler.profile.programs import pieces, read_program
from pycompiler.runtime import trace
from pycompiler.runtime.app_file import app_of
from pycompiler.runtime.device import Board

SEED = int(os.environ.get("OWNERS_SEED", "11"))


def folder_of(where: Path, seed: int, emit: str) -> tuple[Path, Any]:
    print(f"OWNERS_SEED={SEED} case {seed} {emit}")
    model, inputs = random_model(random.Random(SEED + seed))
    board = Board(load_target("mini"))
    build(lambda: model, "emu2:mini", board, {"emit": emit}, where / emit)
    return where / emit, inputs


def by_trace(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for event in json.loads((folder / "trace.json").read_text())["traceEvents"]:
        if event["ph"] == "X" and event["pid"] == 2:
            found[event["name"].split(" ", 1)[1]] += event["args"]["cycles"]
    return found


def by_call(folder: Path, inputs: Any) -> Counter[str]:
    recorder = trace.Recorder()
    before = trace.activate(recorder)
    load_function(folder, Board(load_target("mini"))).run(inputs)
    trace.activate(before)
    found: Counter[str] = Counter()
    for one in recorder.slices:
        if one.track == "device" and "steps" not in one.facts:
            found[one.name.split(",")[0].split(" ", 1)[1]] += one.facts["cycles"]
    return found


def by_notes(folder: Path, app: App, target: Target) -> Counter[str]:
    graph = parse_graph((folder / "l3ir.txt").read_text())
    notes = sorted(Moments(graph, target, app, folder).notes().items())
    program = target.assemble((folder / "model.vsm").read_text(), "model.vsm")
    found: Counter[str] = Counter()
    for row in profile(program).rows["line"]:
        note = [text for first, text in notes if first <= row.line][-1]
        found[note.split(" (shared")[0].split(",")[0].split(" ", 1)[1]] += row.cycles + row.stalls
    return found


def by_dump(app: App) -> Counter[str]:
    rows = re.findall(r"^    node \d+: (\d+) cycles, \S+ ([^,\n]+)", dump_app(app), re.MULTILINE)
    return Counter({node: int(cycles) for cycles, node in rows})


def by_time_line(app: App, target: Target) -> Counter[str]:
    program, found = read_program(app, target), Counter[str]()
    own = [k for k, track in enumerate(program.tracks) if track.name.startswith("PE: ")]
    for event in program.events:
        found[event[4]] += event[2] if event[0] in own else 0
    pages = Counter[str]()
    for node, code in program.nodes.items():
        pages[node] = sum(one.cycles + one.waits for one in code if one.nodes[0] == node)
    assert +pages == +found
    return found


@pytest.mark.parametrize("emit", ["concat", "l1merge"])
@pytest.mark.parametrize("seed", sampled(range(8), every=4))
@pytest.mark.parametrize("window", [emitted.WINDOW, 5])
def test_sums_of_all_tools_are_those_of_the_report(
    seed: int, window: int, emit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emitted, "WINDOW", window)  # a short one: the program has many parts
    folder, inputs = folder_of(tmp_path, seed, emit)
    target, app = load_target("mini"), app_of(folder)
    report = json.loads((folder / "report.json").read_text())
    wanted = Counter({row["node"]: row["cycles"] for row in report["nodes"]})
    slices = {o.node: o.row for _, part in programs_of(app, "app") for o in part.lines.owners}

    def rows(found: Counter[str]) -> Counter[str]:
        summed: Counter[str] = Counter()
        for node, cycles in found.items():
            summed[slices[node]] += cycles
        return +summed

    assert rows(by_trace(folder)) == +wanted
    assert rows(by_call(folder, inputs)) == +wanted
    assert rows(by_dump(app)) == +wanted
    assert rows(by_time_line(app, target)) == +wanted
    if not report["host_fallback"]:
        assert rows(by_notes(folder, app, target)) == +wanted
    groups, steps, cut = lines(app, target), Counter[str](), Counter[str]()
    cycles = Counter[str]()
    for group in groups:
        cycles[group.owners[0]] += group.cycles
        steps[group.owners[0]] += group.steps
    for _, segment in programs_of(app, "app"):
        for node, text in pieces(segment):
            cut[slices[node]] += emu2.assemble(text, target.spec).report()["steps"]
    assert +cycles == +wanted
    assert +steps == +cut == +Counter({row["node"]: row["steps"] for row in report["nodes"]})


def named(text: str) -> Iterator[list[int] | None]:
    """Yield for each line the nodes that the comments before it name; None for a comment."""
    now: list[int] = []
    for line in text.split("\n"):
        if line.startswith("#"):
            words = line[2:].split(": ")[0]
            now = [int(word) for word in words.split(" + ")]
            yield None
        else:
            yield now if line else None


@pytest.mark.parametrize("emit", ["concat", "l1merge"])
def test_the_text_names_the_owners_of_the_table(emit: str, tmp_path: Path) -> None:
    shared = 0
    for seed in range(2):
        app = app_of(folder_of(tmp_path, seed, emit)[0])
        for _, segment in programs_of(app, "app"):
            owners = [owner.node for owner in segment.lines.owners]
            for number, nodes in enumerate(named(segment.code)):
                if nodes is not None:
                    own = [owner.node for owner in segment.lines.of(number)]
                    assert [owners[node] for node in nodes] == own
                    shared += len(own) > 1
    assert bool(shared) == (emit == "l1merge")


def test_apps_without_a_table_run_and_are_refused_where_nodes_are_named(tmp_path: Path) -> None:
    folder, inputs = folder_of(tmp_path, 0, "concat")
    app = app_of(folder)
    segments = [
        replace(s, lines=LineTable()) if isinstance(s, DeviceSegment) else s for s in app.segments
    ]
    (folder / "model.app").write_bytes(write_app(replace(app, segments=tuple(segments))))
    assert load_function(folder, Board(load_target("mini"))).run(inputs)
    old = app_of(folder)
    assert program_text(old) == program_text(app)
    assert "node 0" not in dump_app(old)
    with pytest.raises(PycompilerError) as caught:
        lines(old, load_target("mini"))
    assert caught.value.code == "P0504"
