"""`emu2 new` writes projects that run, with a test and settings for an editor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu2.cli import cli
from emu2.new.command import KINDS

ROOT = Path(__file__).parents[2]
#: The file of each kind that its README tells to run.
FIRST = {"kernel": "test_square.vsm", "model": "network.py", "host": "host.py"}


def run(*words: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def made(kind: str, folder: Path) -> Path:
    done = CliRunner().invoke(cli, ["new", kind, str(folder)])
    assert done.exit_code == 0, done.output
    written = {path for path in folder.rglob("*") if path.is_file()}
    assert {f"wrote {path}" for path in written} == set(done.output.splitlines()[:-1])
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str, tmp_path: Path) -> None:
    folder = made(kind, tmp_path / "new" / "project")
    for name in ("settings", "launch"):
        assert json.loads((folder / ".vscode" / f"{name}.json").read_text())
    assert {"README.md", ".gitignore", "pyproject.toml", FIRST[kind]} < set(os.listdir(folder))
    assert not list(folder.rglob("*.template"))


@pytest.mark.parametrize("kind", ["kernel", "host", pytest.param("model", marks=pytest.mark.long)])
def test_its_test_passes(kind: str, tmp_path: Path) -> None:
    folder = made(kind, tmp_path)
    assert "1 passed" in run("pytest", "-p", "emu2_pytest", "-p", "no:cacheprovider", folder=folder)


def test_programs(tmp_path: Path) -> None:
    kernel, host = made("kernel", tmp_path / "a"), made("host", tmp_path / "b")
    assert "(2.25, 2.25)" in run("emu2", "run", "test_square.vsm", folder=kernel)
    assert run("host", folder=host) == "c[4095] = 6142.5\n"


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for folder in (tmp_path, tmp_path / "mine", tmp_path / "mine" / "below"):
        done = CliRunner().invoke(cli, ["new", "kernel", str(folder)])
        assert done.exit_code == 1, done.output
    assert os.listdir(tmp_path) == ["mine"]
