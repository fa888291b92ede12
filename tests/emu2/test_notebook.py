"""The cell magic `%%vsm` in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

import emu2
from emu2.notebook import Result

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
    assert run(shell, "--spec mini --check", "ladd $lm0 $lm0 $lr0\nladd $lr0 $lr0 $ls0\n") is None
    assert "A0702" in capsys.readouterr().err


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
    ],
)
def test_faults_are_told_without_a_traceback(
    shell: Any, line: str, cell: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, line, cell) is None
    err = capsys.readouterr().err
    assert text in err
    assert "Traceback" not in err
