"""What the README and the pages of host programs and MLSDK show runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXTS = [(ROOT / name).read_text() for name in ("README.md", "docs/host.md", "docs/mlsdk.md")]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", "\n".join(TEXTS), re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
ASSEMBLY = [text for language, text in BLOCKS if language == "" and "d set" in text]


@pytest.mark.parametrize("text", PYTHON)
def test_python(text: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_python_examples() -> None:
    assert len(PYTHON) == 5


def test_assembly(tmp_path: Path) -> None:
    (text,) = ASSEMBLY
    path = tmp_path / "example.vsm"
    path.write_text(text)
    for command in ("check", "run"):
        done = subprocess.run(
            [sys.executable, "-m", "emu2.cli", command, str(path)], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
    promised = re.search(r"# (DEBUG-\S+), \.\.\., (v:\S+)\)", text)
    assert promised is not None
    begin, value = promised.groups()
    assert done.stdout.startswith(begin)
    assert f" {value})" in done.stdout
