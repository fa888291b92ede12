"""The cell magic `%%vsm` in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

import emu2
from emu2.notebook import CellError, Result

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")

PROGRAM = """\
d set $lm0n0c0b0m0p0 1 0000000500000006
nop/2
ladd $lm0 $lm0 $lr0
nop/6
d get $lr0n0c0b0m0p0 1
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        shell = interactiveshell.InteractiveShell()
        shell.run_cell("%load_ext emu2")
        yield shell
        shell.history_manager.end_session()


def run(shell: Any, line: str, cell: str = PROGRAM) -> Any:
    done = shell.run_cell(f"%%vsm {line}\n{cell}")
    assert done.success, done.error_in_exec
    return done.result


def cells(result: Result) -> list[list[str]]:
    """Return the rows of all tables of the result; the text must be well-formed."""
    tree = ElementTree.fromstring(result._repr_html_())
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def test_a_cell_runs_and_shows_its_dump(shell: Any) -> None:
    result = run(shell, "--spec mini")
    assert isinstance(result, Result)
    assert "v:0xA0000000C" in repr(result).replace(" ", "")
    rows = cells(result)
    assert ["steps", "9"] in rows
    (place,) = (row for row in rows if row[0] == "GREG0(n0c0b0m0p0,0)")
    assert "v:0xA0000000C" in place[1]


def test_a_machine_keeps_its_memories_from_cell_to_cell(shell: Any) -> None:
    shell.user_ns["m"] = emu2.Machine(emu2.Spec.load("mini"))
    run(shell, "--machine m", 'imm ui"7" $lr0\n')
    result = run(shell, "--machine m --name kept", "ladd $lr0 $lr0 $ls0\nnop/6\n")
    assert (shell.user_ns["m"].read("grf1") == 0x0000000E0000000E).all()
    assert shell.user_ns["kept"] is result


def test_check_does_not_run(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(shell, "--spec mini --check")
    assert result.report is None
    assert cells(result) == []
    assert "A0702" in failed(shell, "--check", "ladd $lm0 $lm0 $lr0\nladd $lr0 $lr0 $ls0\n", capsys)


def test_findings_name_their_lines(shell: Any) -> None:
    result = run(shell, "--spec mini --sanitize", "# <b>\nd get $lr0n0c0b0m0p0 1\n")
    (row,) = (row for row in cells(result) if row[0] == "Z0101")
    assert row[1:3] == ["2", "d get $lr0n0c0b0m0p0 1"]


@pytest.mark.parametrize(
    ("line", "cell", "text"),
    [
        ("--spec mini", "fly $lm0\n", "A0102"),
        ("--spec nowhere", "nop\n", "S0011"),
        ("--machine none", "nop\n", "no emu2.Machine of that name"),
        ("--colour", "nop\n", "usage: %%vsm"),
        ("--spec 'mini", "nop\n", "No closing quotation"),
        ("--machine stopped", "nop\n", "R0004"),
    ],
)
def test_a_fault_fails_the_cell_and_is_told_without_a_traceback(
    shell: Any, line: str, cell: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = shell.user_ns["stopped"] = emu2.Machine(emu2.Spec.load("mini"))
    with pytest.raises(OSError, match="full"):
        machine.run(emu2.assemble("d get $lm0 1\nnop\n" * 5000, machine.spec), dump=Full())
    assert text in failed(shell, line, cell, capsys)


class Full:
    """A file that takes nothing, so that a run stops half way."""

    def write(self, text: str) -> None:
        raise OSError("full")


def failed(shell: Any, line: str, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a cell that fails prints."""
    capsys.readouterr()
    done = shell.run_cell(f"%%vsm {line}\n{cell}")
    assert not done.success
    assert isinstance(done.error_in_exec, CellError)
    said = "".join(capsys.readouterr())
    assert "Traceback" not in said
    assert str(done.error_in_exec) in said
    return said


def test_a_cell_that_fails_leaves_no_result_of_an_earlier_one(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "--spec mini --name kept", "nop\n")
    failed(shell, "--spec mini --name kept", "fly\n", capsys)
    assert "kept" not in shell.user_ns


def test_lines_are_those_of_the_assembler(shell: Any) -> None:
    cell = "# a page \x0c and a line \u2028 of text\nd get $lr0n0c0b0m0p0 1\n"
    result = run(shell, "--spec mini --sanitize", cell)
    (row,) = (row for row in cells(result) if row[0] == "Z0101")
    assert row[1:3] == ["2", "d get $lr0n0c0b0m0p0 1"]
