"""Shell runners: a runner that looks two folders above itself finds MLSDK, and tools of boards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pycompiler.mlsdk.__main__ import main
from pycompiler.mlsdk.install import SOURCES

ROOT = Path(__file__).parents[3]
#: Prints where the interpreter would find a package; nothing is imported.
FIND = "import importlib.util as u, sys; print(u.find_spec(sys.argv[1]).origin)"
#: A runner as a user has it: it knows only the place of the file that it reads.
OWN = '#!/bin/bash\n. "$(dirname "${BASH_SOURCE[0]}")"/../../build/codegen_pythonpath.sh\n"$@"\n'


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a tree") / "codegen"
    assert told("tree", "--target", str(folder)) == 0
    examples = folder / "MLSDK" / "examples"
    (examples / "own.sh").write_text(OWN)
    (examples / "own.sh").chmod(0o755)
    return folder


def told(*arguments: str) -> int:
    before, sys.argv = sys.argv, ["mlsdk", *arguments]
    try:
        return main()
    finally:
        sys.argv = before


def ran(tree: Path, *command: str, runner: str = "exec_with_env.sh") -> tuple[int, str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [f"./{runner}", *command],
        cwd=tree / "MLSDK" / "examples",
        env={"PATH": path, "PYTHONPATH": str(ROOT), "CODEGEN_DUMP_VSM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


CASES: dict[str, tuple[list[str], int, str, str]] = {
    # name: (command, exit code, stdout, in stderr)
    "mlsdk": (["python", "-c", FIND, "mlsdk"], 0, f"{SOURCES}/mlsdk/__init__.py\n", ""),
    "fx2onnx": (["python", "-c", FIND, "fx2onnx"], 0, f"{SOURCES}/fx2onnx/__init__.py\n", ""),
    "pycompiler": (
        ["python", "-c", FIND, "pycompiler"],
        0,
        f"{ROOT}/pycompiler/__init__.py\n",
        "",
    ),
    "arguments": (["printf", "%s,", "a b", "", "*"], 0, "a b,,*,", ""),
    "exit code": (["bash", "-c", "exit 7"], 7, "", ""),
    "variables": (["bash", "-c", "echo $CODEGEN_DUMP_VSM"], 0, "1\n", ""),
    "missing": (["no-such-command"], 127, "", "no-such-command"),
    "boards": (["gpfn3-smi", "list"], 0, "0: emu2\n", ""),
    "clocks": (["gpfn3-smi", "config", "emu2", "clock", "--core=750"], 0, "", "nothing to conf"),
    "usage": (["gpfn3-smi", "burn"], 2, "", "usage: gpfn3-smi"),
}


@pytest.mark.parametrize("runner", ["exec_with_env.sh", "own.sh"])
@pytest.mark.parametrize("case", CASES)
def test_a_command_in_the_environment(tree: Path, case: str, runner: str) -> None:
    command, code, out, err = CASES[case]
    found = ran(tree, *command, runner=runner)
    assert found[:2] == (code, out), found[2]
    assert err in found[2]


def test_it_writes_over_its_own_files_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "mine").write_text("mine")
    for _ in range(2):
        assert told("tree", "--target", str(tmp_path)) == 0
        assert capsys.readouterr().out == f"wrote {tmp_path}\n"
    theirs = tmp_path / "build" / "codegen_pythonpath.sh"
    theirs.write_text("theirs")
    (tmp_path / "MLSDK" / "examples" / "exec_with_env.sh").unlink()
    assert told("tree", "--target", str(tmp_path)) == 1
    assert f"error[P0011]: `{theirs}`" in capsys.readouterr().err
    assert theirs.read_text() == "theirs"
    assert not (tmp_path / "MLSDK" / "examples" / "exec_with_env.sh").exists()
    assert (tmp_path / "build" / "mine").read_text() == "mine"


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert told("tree", "--target", str(tmp_path / "file" / "codegen")) == 1
    assert "error[P0003]" in capsys.readouterr().err
