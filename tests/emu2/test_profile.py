"""`emu2 profile`: rows counted by hand, and sums that are the counters of the program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import emu2
from emu2.cli import cli
from emu2.profiling import VIEWS, changes, profile

SPEC = emu2.Spec.load("mini")
VECTORS = sorted((Path(__file__).parents[1] / "data" / "vectors").glob("*.vsm"))
PROGRAM = """\
mvp/n64i01 $p0@0 $d0@0
nop/3
l1bmd $lb0 $lm0v; ladd $lr0v $ls0v $ls8v
ladd $lr0v $lr0v $lr4v
nop; wait i01
mvp/n128i01 $p0@0 $d0@0
nop; wait i01
"""


def test_rows_are_those_counted_by_hand() -> None:
    found = profile(emu2.assemble(PROGRAM, SPEC))
    lines = {row.line: row for row in found.rows["line"]}
    steps = {1: 0, 2: 3, 3: 1, 4: 1, 5: 1, 6: 0, 7: 1}
    assert {number: row.steps for number, row in lines.items()} == steps
    assert {number: row.words for number, row in lines.items() if row.words} == {1: 64, 6: 128}
    assert {row.line: (row.dram, row.pdm) for row in lines.values() if row.pdm} == {
        1: (64, 64),
        6: (128, 128),
    }
    assert (lines[1].slots, lines[2].slots, lines[3].slots) == (["mv"], [], ["l1bm", "alu"])
    # An MV holds its memories for words / 16 cycles and ends 256 later; steps take 4 cycles.
    assert lines[5].stalls == 64 // 16 + 256 - 4 * 5
    assert lines[7].stalls == 128 // 16 + 256
    assert [row.line for row in found.rows["line"]][:2] == [7, 5]
    names = {row.text: row for row in found.rows["instruction"]}
    assert names["ladd"].steps == 2
    assert names["l1bmd"].cycles == 4
    assert names["nop"].steps == 5
    assert names["wait"].stalls == lines[5].stalls + lines[7].stalls
    assert names["mvp"].words == 192
    mvs = {row.line: row for row in found.rows["mv"]}
    assert {line: row.stalls for line, row in mvs.items()} == {
        1: lines[5].stalls,
        6: lines[7].stalls,
    }
    assert lines[7].text == "nop; wait i01"


@pytest.mark.parametrize("path", VECTORS[::12], ids=lambda path: path.stem)
def test_rows_add_up_to_the_counters(path: Path) -> None:
    try:
        program = emu2.assemble(path.read_text(), SPEC)
    except emu2.AssembleError:
        pytest.skip("not for this machine")
    found = profile(program)
    for view in VIEWS:
        for name in ("dram", "pdm"):
            moved = sum(getattr(row, name) for row in found.rows[view])
            assert moved == sum(program.report()["words"].get(name, {}).values()), (view, name)
    rows = found.rows["line"]
    assert sum(row.steps for row in rows) == found.counters["steps"]
    assert sum(row.cycles + row.stalls for row in rows) == found.counters["cycles"]
    assert sum(row.stalls for row in rows) == found.counters["stall_cycles"]
    waited = next((r.stalls for r in found.rows["instruction"] if r.text == "wait"), 0)
    assert waited == found.counters["stall_cycles"]


def test_changes_are_sorted_by_their_size() -> None:
    before, after = (
        profile(emu2.assemble(text, SPEC))
        for text in (PROGRAM, f"nop/70\n{PROGRAM}ladd $r0 $r0 $r4")
    )
    made = changes(before, after)
    assert [change.text for change in made][:2] == ["nop", "ladd"]
    assert made[0].cycles == 280
    assert sum(change.cycles for change in made) >= 284


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.vsm").write_text(PROGRAM)
    (tmp_path / "b.vsm").write_text(PROGRAM.replace("nop/3", "nop/90"))
    run = CliRunner().invoke
    plain = run(cli, ["profile", str(tmp_path / "a.vsm"), "--spec", "mini", "--top", "1"])
    assert plain.exit_code == 0
    assert "waits for line 6: queued 0, holds 8 cycles" in plain.output
    assert "6 more rows" in plain.output
    for view in VIEWS:
        shown = run(cli, ["profile", str(tmp_path / "a.vsm"), "--spec", "mini", "--by", view])
        assert re.search(rf" {view}$", shown.output, re.MULTILINE)
    args = ["profile", str(tmp_path / "a.vsm"), "--spec", "mini"]
    compared = run(cli, [*args, "--compare", str(tmp_path / "b.vsm")])
    assert re.search(r"\+348 +20 +368 +nop", compared.output)
    run(cli, [*args, "--json", str(tmp_path / "out.json")])
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["counters"]["steps"] == sum(row["steps"] for row in data["line"])
    wrong = run(cli, ["profile", str(tmp_path / "none.vsm")])
    assert wrong.exit_code == 1
