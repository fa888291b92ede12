"""How benches/guard.py compares counts; the counting needs valgrind and runs in `make guard`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[2] / "benches" / "guard.py"


@pytest.fixture(scope="module")
def guard() -> ModuleType:
    spec = importlib.util.spec_from_file_location("guard", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (1000, []),
        (1049, []),
        (951, []),
        (1100, ["v3 fvfma: 1100 instructions, +10.0%"]),
        (900, ["v3 fvfma: 900 instructions, -10.0%"]),
    ],
)
def test_a_tenth_more_is_noticed(guard: ModuleType, now: int, said: list[str]) -> None:
    assert guard.changes({"v3": {"fvfma": 1000}}, {"v3": {"fvfma": now}}) == said


def test_what_is_not_on_record_is_noticed(guard: ModuleType) -> None:
    assert len(guard.changes({"v3": {}}, {"v3": {"new": 5}})) == 1
    assert len(guard.changes({}, {"v3": {"new": 5}})) == 1


def test_the_record_can_be_read_back(guard: ModuleType) -> None:
    counted = {"baseline": {"a": 1}, "v3": {"a": 2, "b": 3}}
    text = guard.record(counted, "rustc 1", "Linux x86_64")
    read = tomllib.loads(text)
    assert read == {"compiler": "rustc 1", "target": "Linux x86_64", "counts": counted}


def test_the_committed_record_has_five_kernels_a_level(guard: ModuleType) -> None:
    counts = tomllib.loads(guard.RECORD.read_text())["counts"]
    assert list(counts) == list(guard.LEVELS)
    assert all(len(kernels) == 5 and min(kernels.values()) > 0 for kernels in counts.values())


def test_a_host_without_valgrind_is_one_diagnostic(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    command = [sys.executable, str(PATH)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: valgrind is not installed\n  help: ")
