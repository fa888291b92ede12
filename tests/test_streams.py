"""Commands whose standard streams are closed, or lead to nobody, end with one diagnostic."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

EMU2 = (sys.executable, "-m", "emu2")
PYCOMPILER = (sys.executable, "-m", "pycompiler.command")
MLSDK = (sys.executable, "-m", "pycompiler.mlsdk")
ASSEMBLE3, PACKAGE = (
    (sys.executable, "-c", f"from emu2.words_cli import run_{name} as run; run()")
    for name in ("assemble3", "gpfn3_package_main")
)
#: Seconds after which a command counts as hanging; torch loads slowly on a busy computer.
PATIENCE = 300.0
SHOWS = "d get $lr0n0c0b0m0p0 1\n"
FAULTY = "fly\n"
DONE, FILE, USAGE = 0, 1, 2
NO_STDIN = "error[F0001]: <stdin>: Bad file descriptor"
NO_STDOUT = "error[F0005]: the output: Bad file descriptor"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    (folder / "quiet.vsm").write_text("nop\n")
    (folder / "shows.vsm").write_text(SHOWS)
    (folder / "faulty.vsm").write_text(FAULTY)
    (folder / "script.py").write_text("import sys\nprint('said')\nsys.exit(4)\n")
    return folder


def run(folder: Path, command: Sequence[str], closed: Sequence[int]) -> tuple[int, str, str]:
    """Run a command with closed streams; exit code, stdout and stderr."""

    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        command,
        cwd=folder,
        input="",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=close,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("closed", "command", "code", "said"),
    [
        ([1], [*EMU2, "--help"], FILE, NO_STDOUT),
        ([1], [*EMU2, "run", "shows.vsm"], FILE, NO_STDOUT),
        ([1], [*EMU2, "run", "quiet.vsm"], DONE, ""),
        ([1], [*EMU2, "run", "faulty.vsm"], FILE, "error[A0102]"),
        ([1], [*EMU2, "run"], USAGE, "Usage: emu2 run"),
        ([1], [*EMU2, "lsp", "--spec", "mini"], FILE, NO_STDOUT),
        ([0], [*EMU2, "lsp", "--spec", "mini"], FILE, NO_STDIN),
        ([0], [*EMU2, "run", "-"], FILE, NO_STDIN),
        ([0], [*EMU2, "debug", "quiet.vsm"], FILE, NO_STDIN),
        ([0], [*EMU2, "dap"], FILE, NO_STDIN),
        ([0, 1, 2], [*EMU2, "run", "faulty.vsm"], FILE, ""),
        ([0, 1, 2], [*EMU2, "run", "quiet.vsm", "-d", "dump.txt"], DONE, ""),
        ([0], ASSEMBLE3, FILE, NO_STDIN),
        ([1], [*ASSEMBLE3, "quiet.vsm"], FILE, NO_STDOUT),
        ([0], PACKAGE, FILE, NO_STDIN),
        ([1], [*PYCOMPILER, "explain"], FILE, "error[P0003]: cannot write `standard output`"),
        ([1, 2], [*PYCOMPILER, "explain", "P0"], USAGE, ""),
        pytest.param([0, 1, 2], [*MLSDK, "script.py"], 4, "", marks=pytest.mark.long),
    ],
)
def test_closed_streams(
    folder: Path, closed: list[int], command: Sequence[str], code: int, said: str
) -> None:
    found, out, err = run(folder, command, closed)
    assert (found, out) == (code, ""), err
    assert err.startswith(said)
    assert bool(err) == bool(said)
    assert "Traceback" not in err
    assert "B0001" not in err


def test_no_file_takes_the_place_of_a_closed_stream(folder: Path) -> None:
    """A dump file with the number of stderr would get the diagnostics."""
    command = [*EMU2, "run", "shows.vsm", "-d", "dump.txt", "--report", "report.json"]
    assert run(folder, command, [1, 2])[0] == DONE
    assert (folder / "dump.txt").read_text().count("\n") == 1
    assert (folder / "report.json").read_text().startswith("{")


@pytest.mark.parametrize(
    ("stream", "command", "code"),
    [
        ("stdout", [*EMU2, "spec"], FILE),
        ("stderr", [*EMU2, "check", "faulty.vsm"], FILE),
        ("stderr", [*EMU2, "run"], USAGE),
        ("stderr", [*PYCOMPILER, "explain", "P0"], USAGE),
    ],
)
def test_nobody_reads(folder: Path, stream: str, command: Sequence[str], code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ends = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
    done = subprocess.run(command, cwd=folder, timeout=PATIENCE, **ends)  # type: ignore[call-overload]
    os.close(writer)
    assert done.returncode == code
    assert not done.stdout
    assert not done.stderr
