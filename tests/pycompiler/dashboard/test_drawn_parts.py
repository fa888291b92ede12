"""The data of the dashboard's pictures: rows of the time line, L2BM, folded graphs, files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from compiling import model_of

from pycompiler.build import build
from pycompiler.dashboard.buffers import buffers
from pycompiler.dashboard.collect import Compile, read_compile
from pycompiler.dashboard.drawing import fold
from pycompiler.dashboard.files import read_files
from pycompiler.errors import PycompilerError
from pycompiler.graph.graph import MNGraph, MNNode, Stage
from pycompiler.machine import load_target
from pycompiler.model_commands import commands
from pycompiler.profile.programs import WAIT_KINDS, Line, Program, Track, read_program
from pycompiler.runtime.device import Board


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """A network on the whole chip, whose nodes do not share lines."""
    folder = tmp_path_factory.mktemp("compiles") / "one"
    nodes = [("MatMul", ["x", "w"], "h"), ("Softmax", ["h"], "y")]
    weights = {"w": np.ones((64, 96), np.float32)}
    model = model_of(nodes, {"x": (128, 64)}, ["y"], weights)
    build(lambda: model, "emu2", Board(load_target("mncore2")), {"emit": "concat"}, folder)
    return read_compile(folder, "one")


@pytest.fixture(scope="module")
def program(compiled: Compile) -> Program:
    assert compiled.app is not None
    assert compiled.target is not None
    return read_program(compiled.app, compiled.target)


def cycles(program: Program, name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for track, _, length, text, *_ in program.events:
        if program.tracks[track].name == name:
            found[text] += length
    return found


def test_slots_have_the_steps_of_the_report(program: Program, compiled: Compile) -> None:
    assert compiled.target is not None
    busy: Counter[str] = Counter()
    for row in compiled.rows:
        busy.update(row["busy_steps"])
    assert len(busy) >= 4
    for slot, steps in busy.items():
        assert cycles(program, slot.upper()).total() == compiled.target.cycles * steps


def test_waits_have_the_reasons_of_the_report(program: Program, compiled: Compile) -> None:
    waits = cycles(program, "PE: waits")
    wanted = {kind: compiled.report["waits"][kind] for kind in WAIT_KINDS}
    assert {kind: waits[kind] for kind in WAIT_KINDS} == wanted
    assert sum(wanted.values()) > 0


def test_memories_have_a_row_for_each_group(program: Program) -> None:
    names = [track.name for track in sorted(program.tracks)]
    for kind in ("DRAM", "MV ports"):
        own = [name for name in names if name.startswith(kind)]
        assert own == [f"{kind}, group {group}" for group in range(4)]
    assert names.index("PE: steps") < names.index("DRAM, group 0") < names.index("MV 0")


def test_events_name_the_line_where_they_begin(program: Program, compiled: Compile) -> None:
    text = (compiled.folder / "model.vsm").read_text().split("\n")
    moves = [event for event in program.events if program.tracks[event[0]].name.startswith("MV ")]
    assert moves
    for event in moves:
        assert event[3] in text[event[5] - 1]


def made(lines: list[tuple[str, int]], moves: list[tuple[str, int, int]]) -> Program:
    """Return a program with lines (text, cycle) and MVs (text, first cycle, cycles)."""
    own = [Line(k, text, ["l2bm"], ["n"], start, 4) for k, (text, start) in enumerate(lines, 1)]
    events = [(0, start, length, text, "n", 1) for text, start, length in moves]
    return Program({"n": own}, {}, [Track((4, 1), "MV 0")], events, 1000)


def lived(program: Program) -> list[tuple[int, int, int, int]]:
    found = buffers(program, load_target("mncore2"))
    return [(one.start, one.stop, one.addr, one.words) for one in found]


def test_what_an_mv_brings_lives_until_it_is_read() -> None:
    reads = [("l2bmd $lc64 $lb0", 40), ("l2bmd $lc96 $lb0", 60), ("l2bmd $lc128 $lb0", 80)]
    move = [("mvp/n64i01 $d0@0 $lc64@0.0", 8, 20)]
    # The last read of words 64 to 127 is at 60, and takes a step.
    assert lived(made(reads, move)) == [(8, 64, 64, 64)]
    assert lived(made([], move)) == [(8, 28, 64, 64)]


def test_what_is_overwritten_lives_no_longer() -> None:
    reads = [("l2bmd $lc0 $lb0", 40), ("l2bmd $lc0 $lb0", 90)]
    moves = [("mvp/n64i01 $d0@0 $lc0@0.0", 0, 30), ("mvp/n64i02 $d64@0 $lc32@0.0", 50, 30)]
    assert lived(made(reads, moves)) == [(0, 44, 0, 64), (50, 80, 32, 64)]


def test_what_an_mv_takes_lives_from_its_first_write() -> None:
    writes = [("l2bmd $lb0 $lc0", 12), ("l2bmd $lb0 $lc16", 20), ("l2bmd $lb0 $lc512", 4)]
    move = [("mvp/n64i01 $lc0@0.0 $d0@0", 30, 40)]
    assert lived(made(writes, move)) == [(12, 70, 0, 64)]


def test_words_that_are_divided_are_those_of_one_l2bm() -> None:
    assert lived(made([], [("mvd/n1024i01 $p0@0 $lc0", 0, 8)])) == [(0, 8, 0, 128)]


def chain(names: str) -> MNGraph:
    nodes = tuple(
        MNNode(name, "Add", (f"v{k}",), (f"v{k + 1}",), segment=0) for k, name in enumerate(names)
    )
    outputs = (("y", f"v{len(names)}"),)
    return MNGraph("g", "mini", Stage.IMPORTED, ("v0",), outputs, {}, nodes, {})


def test_modules_are_folded() -> None:
    groups, drawing = fold(chain("abcdef"), ["m", "m", "", "n", "n", ""])
    assert [(group.name, group.members) for group in groups] == [
        *(("m", (0, 1)), ("", (2,))),
        *(("n", (3, 4)), ("", (5,))),
    ]
    assert [edge[:2] for edge in drawing.edges] == [(0, 1), (1, 2), (2, 3)]
    assert [row for _, row in drawing.places] == [0, 1, 2, 3]


def test_edges_back_to_a_module_are_left_out() -> None:
    groups, drawing = fold(chain("abc"), ["m", "", "m"])
    assert [group.members for group in groups] == [(0, 2), (1,)]
    assert [edge[:2] for edge in drawing.edges] == [(0, 1)]


DAMAGED = ["", "{", "[]", "{}", '{"rows": []}', '{"rows": [{"values": {}}], "machine": "m"}']


@pytest.mark.parametrize("text", DAMAGED)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(PycompilerError) as found:
        read_files([tmp_path / "a.json"])
    assert found.value.code == "P0001"


def test_files_of_commands_are_taken(compiled: Compile, tmp_path: Path) -> None:
    """Each command writes what the dashboard takes, and the sums in it agree."""
    folder = str(compiled.folder)

    def run(*arguments: str) -> Any:
        path = tmp_path / f"{arguments[0]}.json"
        done = CliRunner().invoke(commands, [*arguments, "--json", str(path)])
        assert done.exit_code == 0, done.output
        return json.loads(path.read_text())

    swept = run("sweep", folder, "--machine", "mini", "--set", "lm_words=1x,2x", "--jobs", "1")
    assert len(swept["rows"]) == 2
    memory = run("memory", folder)
    assert memory["lower_bound"] <= min(way["size"] for way in memory["strategies"])
    gap = run("gap", folder)
    assert sum(row["cycles"] for row in gap["rows"]) == compiled.report["cycles"]
    np.savez(tmp_path / "in.npz", x=np.ones((128, 64), np.float32))
    numbers = run("disassemble", folder, "-i", str(tmp_path / "in.npz"), "--safety", "2")
    (last,) = (row for row in numbers["checks"] if row["value"] == "y")
    # A softmax of equal numbers is one over their count.
    assert (last["least"], last["largest"]) == pytest.approx((1 / 96, 1 / 96))
    assert all(row["checked"] and not row["failed"] for row in numbers["checks"])
    paths = sorted(tmp_path.glob("*.json"))
    arguments = ["dashboard", folder, *map(str, paths), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == 0, done.output
    assert [facts["kind"] for facts, _ in read_files(paths)] == [
        *("numbers", "gap", "memory", "sweep"),
    ]
    assert (tmp_path / "out" / "data" / "file-3.js").is_file()
