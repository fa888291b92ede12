"""Errors and warnings of `emu2 link`: every number, faults of form, the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from link_case import FLAGS, PLACEMENT, POOL, STRUCTURE, faults, linked

from emu2.link.command import link as command
from emu2.link.faults import NUMBERS

SHORT = "@alloc left :omr 9 10 11 :grf0 200 202 :n 0"
NEIGHBOR = "@get_neighbor $lr30 -1 $lm0 f nbuf0 left"
ENTRIES = "((:version :0.1) {})"
SLOT = "(:slot 8 :addr 0 :send_wait_tag #x10 :recv_wait_tag #x1e)"
ALL = [f"@broadcast b{n} from_param {n} size 1 $lr0" for n in range(100, 228)]
MANY, FEW = "\n".join(ALL), "\n".join(ALL[:-2])
PLACES = "".join(f"(:slot {n} :addr {64 * n})" for n in range(100, 230))

CASES = [
    ("E101", "nop", f"(:reserved_wait_tag #x1e) {SLOT}"),
    ("E101", "nop", f"(:reserved_wait_tag #x10) {SLOT}"),
    ("E101", "nop", "(:slot 8 :addr 0 :recv_wait_tag #x3f)"),
    ("E101", "nop", "(:reserved_wait_tags 1 2) (:identify 0 :addr 0 :send_wait_tag 2)"),
    ("E102", "nop", "(:reserved_wait_tag #x40)"),
    ("E102", "nop", "(:reserved_wait_tags 5 0)"),
    ("E103", "nop", "(:reserved_wait_tags 5 6 5)"),
    ("E105", "nop", "(:reserved_wait_tags)"),
    ("E105", "nop", "(:reserved_wait_tag)"),
    ("E106", "nop", "(:reserved_wait_tag 5 6)"),
    ("E110", f"{FEW}\n@collect c to_param 100 size 1 $lm0", PLACES),
    ("E115", "nop", "(:buffer b :addr 0 :buf_size 64) (:buffer b :addr 64 :buf_size 64)"),
    ("E116", f"@alias f $lr40\n{POOL}\n{NEIGHBOR.replace('nbuf0', 'short0')}", None),
    ("E117", MANY, PLACES),
    ("E201", f"{POOL}\n{POOL}", None),
    ("E202", "@alloc", None),
    ("E202", "@alloc :grf0 2", None),
    ("E203", "@alloc a :grf2 2", None),
    ("E204", "@alloc a 2 :grf0 2", None),
    ("E205", "@alloc a :grf0 512", None),
    ("E205", "@alloc a :omr 0", None),
    ("E205", "@alloc a :omr 16", None),
    ("E205", "@alloc a :m x", None),
    ("E206", "@alloc a :grf0" + " 2" * 65, None),
    ("E207", "@alloc a :n 3", None),
    ("E208", "@alloc a", None),
    ("E208", "@alloc a :grf0", None),
    ("E209", "@free", None),
    ("E210", f"{POOL}\n@free right", None),
    ("E210", "@free left", None),
    ("E211", "@boundary_flags_compute f 0 $lm0 left", None),
    ("E211", "@boundary_flags_compute f 0", None),
    ("E212", "@boundary_flags_compute f 3 $lr0 left", None),
    ("E213", "@boundary_flags_compute f 0 $lr0 left", None),
    ("E214", f"{SHORT}\n@boundary_flags_compute f 0 $lr0 left", None),
    ("E215", f"@boundary_flags bf0 3 $lr0 {FLAGS}", None),
    ("E216", "@boundary_flags bf0 0 $lr0", None),
    ("E217", "@boundary_flags bf0 0 $lr0 left_edge", None),
    ("E218", "@reduce r to_param 32 $lr0", None),
    ("E218", "@reduce r from_param 32 $lr0 liadd", None),
    ("E219", "@reduce r to_param 33 $lr0 liadd", None),
    ("E220", "@reduce r to_param 32 $lr0 lmul", None),
    ("E221", f"{POOL}\n@get_neighbor $lr30 -2 $lm0 f nbuf0 left", None),
    ("E221", f"{POOL}\n@get_neighbor $lm30 -1 $lm0 f nbuf0 left", None),
    ("E222", NEIGHBOR, None),
    ("E223", f"{POOL}\n{NEIGHBOR.replace('nbuf0', 'nbuf1')}", None),
    ("E224", f"{POOL}\n{NEIGHBOR}", None),
    ("E225", f"@alias f $lr40\n{SHORT}\n{NEIGHBOR}", None),
    ("E226", "@broadcast b from_param 40 $lr0", None),
    ("E226", "@broadcast b from_param 40 size 1 lr0", None),
    ("E227", "@broadcast b from_param 40 size 5 $lr0", None),
    ("E228", "@broadcast b from_param 48 size 4 $lr0", None),
    ("E229", "@alias f", None),
    ("E230", "@alias f $lm0", None),
    ("E231", "@alias f $lr0\n@alias f $lr2", None),
    ("E232", "@alias f $lr0\n@assign f $lr2", None),
    ("E233", f"{FEW}\n@collect c to_param 100 size 1 $lm0", PLACES),
    ("E235", MANY, PLACES),
    ("E236", "@identify 1 $lr0 4096", None),
    ("E237", f"@boundary_flags bf1 0 $lr0 {FLAGS}", None),
    ("E238", "@distribute a from_param 9 size 1 $lm0", None),
    ("E239", "@broadcast a from_param 9 size 1 $lm0", None),
    ("E240", "@collect a to_param 9 size 1 $lm0", None),
    ("E241", "@collect a to_param 24 size 0 $lm0", None),
    ("E242", "@distribute a from_param 8 size 5 $lm0", None),
]
"""A number, a source that raises it, and the entries of its placement; None: the usual ones."""

UNREACHABLE = {"E234"}
"""Bookkeeping has no limit of its own here."""


@pytest.mark.parametrize(("number", "source", "entries"), CASES)
def test_errors(number: str, source: str, entries: str | None) -> None:
    if entries is None:
        found = faults(source)
    else:
        found = faults(
            source, ENTRIES.replace("{}", entries), STRUCTURE.replace("{more}", ""), whole=True
        )
    assert any(f':id "{number}"' in fault for fault in found), found
    line = len(source.splitlines())
    for fault in found:
        assert (f":line {line})" in fault) == (':id "E2' in fault) or number in ("E110", "E233")


def test_every_number_has_a_case() -> None:
    tested = {number for number, *_ in CASES}
    assert {n for n in NUMBERS if n.startswith("E")} == tested | UNREACHABLE


MALFORMED = [
    ("(", ""),
    (")", ""),
    ("", ""),
    ("((:version :0.1)) ()", ""),
    ("((:slot 8 :addr 0))", ""),
    ("((:version :0.2))", ""),
    ("((:version :0.1) (:slot 8))", ""),
    ("((:version :0.1) (:slot 8 :addr))", ""),
    ("((:version :0.1) (:slot 8 :addr 1 :addr 2))", ""),
    ("((:version :0.1) (:slot 8 :addr -1))", ""),
    ("((:version :0.1) (:slot 8 :addr 12x))", ""),
    ("((:version :0.1) (:slot 8 :addr #xzz))", ""),
    ("((:version :0.1) (:slot 8 :addr 0 :place :dram))", ""),
    ("((:version :0.1) (:slot 8 :addr 0 :send_wait_tag 64))", ""),
    ("((:version :0.1) (:slot 8 :addr 0) (:slot 8 :addr 1))", ""),
    ("((:version :0.1) (:slot x :addr 0))", ""),
    ("((:version :0.1) (:thing 8 :addr 0))", ""),
    ("((:version :0.1) (:buffer b :addr 0 :buf_size 65))", ""),
    ("((:version :0.1) (:buffer b :addr 0))", ""),
    ("(" * 100_000, ""),
    ("((:version :0.1))", "((:version :0.1))"),
    ("((:version :0.1))", "((:version :0.0) (:ndim 4))"),
    ("((:version :0.1))", "((:version :0.0) (:ndim 1) (:pe_shape (4095)) (:pe_local (1)))"),
    ("((:version :0.1))", "((:version :0.0) (:ndim 2) (:pe_shape (4096)) (:pe_local (1)))"),
    ("((:version :0.1))", "((:version :0.0) (:ndim 1) (:pe_shape (4096)))"),
    ("((:version :0.1))", STRUCTURE.replace("{more}", "(:boundary (:mirror))")),
    ("((:version :0.1))", STRUCTURE.replace("{more}", "(:data_layout :other)")),
    ("((:version :0.1))", STRUCTURE.replace("{more}", "(:data_size (0))")),
    ("((:version :0.1))", STRUCTURE.replace("{more}", "(:shape (1))")),
]


@pytest.mark.parametrize(("placement", "structure"), MALFORMED)
def test_malformed_files(placement: str, structure: str) -> None:
    (found,) = faults("nop", placement, structure, whole=True)
    assert found.startswith("error: k.stparam" if structure else "error: k.param")


@pytest.mark.parametrize("name", ["@stencil", "@bind", "@omr_alloc", "@omr_free", "@other", "@"])
def test_unknown_directives(name: str) -> None:
    (found,) = faults(f"nop\n  {name} a b")
    assert found.startswith(f"error: k._vsm:2: unknown directive `{name}`")


def test_good_structures() -> None:
    """Shapes of two and three dimensions, old entries, and shapes without parentheses."""
    for text in (
        "((:version :0.1) (:ndim 2) (:pe_shape (64 64)) (:pe_local (1 1))"
        " (:boundary (:clamp :periodic)))",
        "((:version :0.0) (:ndim 3) (:pe_shape 16 16 16) (:pe_local (1 1 1)) (:variables a b))",
        "((:version :0.0) (:ndim 1) (:pe_shape (4096)) (:pe_local (4)) (:data_layout :native))",
    ):
        placement = "((:version :0.1) (:slot 8 :addr #x40 :dmaid 16 :mvtag 30))"
        assert linked("@distribute a from_param 8 size 1 $lm0", placement, text, whole=True)


def test_command(tmp_path: Path) -> None:
    """The file is written with warnings, and not with errors; other exit codes."""
    names = ("k._vsm", "k.param", "k.stparam", "k.vsm")
    paths = [str(tmp_path / name) for name in names]
    source = "mvp/n64i2a $p0@0 $lc0@0.0\nnop; wait i2a\nnop # i2b $lb0\n"
    texts = (source, ENTRIES.replace("{}", ""), STRUCTURE.replace("{more}", ""))
    for path, text in zip(paths, texts, strict=False):
        Path(path).write_text(text)
    done = CliRunner().invoke(command, [*paths, "--map", str(tmp_path / "map.json")])
    assert done.exit_code == 0
    warnings = done.stderr.splitlines()
    assert [line.split(':id "')[1] for line in warnings] == [
        'W001")',
        'W002" :line 1)',
        'W003" :line 1)',
        'W002" :line 2)',
    ]
    assert Path(paths[3]).read_text().splitlines()[-3:] == source.splitlines()
    assert (tmp_path / "map.json").exists()
    Path(paths[3]).unlink()
    Path(paths[0]).write_text("@alloc\n")
    done = CliRunner().invoke(command, paths)
    expected = '(:error "`@alloc` without an id" :id "E202" :line 1)\n'
    assert (done.exit_code, done.stderr) == (1, expected)
    assert not Path(paths[3]).exists()
    done = CliRunner().invoke(command, [str(tmp_path / "none"), *paths[1:]])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert CliRunner().invoke(command, paths[:3]).exit_code == 2


def test_usual_placement_has_no_warning() -> None:
    assert PLACEMENT.count("reserved") == 1
    assert linked("nop\n").endswith("nop\n")
