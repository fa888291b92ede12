"""The vendor's two tools at the prompt: flags, file names, texts and exit codes of the documents.

A transcript is a page of commands, each behind `$ `, with what it prints below. Lines that begin
with `#` say what the next commands show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "transcripts"
ROOT = Path(__file__).parents[2]
ONE = "d set $lm0n0c0b0m0p0 1 4000000000000000\n"
LOAD, SAVE = {"region": "pdm0", "offset": 0}, {"region": "dram0", "offset": 0, "length": 16}
FILES = {
    "in.vsm": f"{ONE}dvadd $lm0v $lm0v $ln0v\nnop\nd get $lm0n0c0b0m0p0 1\n",
    "bad.vsm": "nop\nlpasa $lm0 $ln0\n",
    "host.vsm": f"{ONE}c 0 0 i01 i00 0 000000040 000001 0000000000000005\nnop; wait i01\nf\n"
    "e 0 0 i02 i00 0 000000040 000001\n",
    "copy.asm": "s mvp/n64 $p0@0 $d0@0\n",
    "both.json": json.dumps(
        {"load": [{**LOAD, "file": "in.bin"}], "save": [{**SAVE, "file": "out.bin"}]}
    ),
    "save.json": json.dumps({"save": [SAVE]}),
}


def sessions(text: str) -> list[tuple[str, str]]:
    """Return the commands of a transcript, each with what it prints."""
    lines = [line for line in text.splitlines(True) if not line.startswith("#")]
    found: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the files of the transcripts, and the tools in its folder `bin`."""
    (tmp_path / "bin").mkdir()
    for name in ("assemble3", "gpfn3_package_main"):
        tool = tmp_path / "bin" / name
        call = f"from emu2.words_cli import run_{name} as run; run()"
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{call}" "$@"\n')
        tool.chmod(0o755)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "in.bin").write_bytes(bytes([*[0] * 7, 1, *[0] * 7, 2, *[0] * 496]))
    return tmp_path


@pytest.mark.parametrize("tool", ["assemble3", "gpfn3_package_main"])
def test_a_transcript(tool: str, place: Path) -> None:
    path = os.pathsep.join([str(place / "bin"), os.environ["PATH"]])
    for command, wanted in sessions((FOLDER / f"{tool}.txt").read_text()):
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=place,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert (command, done.stdout) == (command, wanted)
