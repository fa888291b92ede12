"""Errors and warnings of `emu2 link`: every number, faults of form, the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from link_case import PLACEMENT, STRUCTURE, faults, linked
from link_fault_cases import CASES, ENTRIES

from emu2.link.command import link as command
from emu2.link.faults import NUMBERS

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
