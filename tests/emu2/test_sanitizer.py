"""Sanitized runs: clean examples, the bits and reports of plain runs, the commands."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import emu2

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
UNDEFINED = "d set $lr0n0c0b0m0p0 1 0000000000000001\nnop\nd get $lr0n0c0b0m0 1\n"


class Sanitizing:
    """A machine whose runs are sanitized and must be clean, and so must be what is read."""

    def __init__(self, spec: emu2.Spec) -> None:
        self.machine = emu2.Machine(spec)

    def run(self, program: emu2.Program) -> emu2.Report:
        report = self.machine.run(program, sanitize=True)
        assert report.findings == [], report.render_findings()
        return report

    def read(self, memory: str, **place: int) -> np.ndarray:
        assert self.machine.undefined(memory, **place) == []
        return self.machine.read(memory, **place)

    def write(self, memory: str, words: np.ndarray, **place: int) -> None:
        self.machine.write(memory, words, **place)


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_the_examples_are_clean(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    chip_module = importlib.import_module("chip")
    names = vars(emu2) | {"Machine": Sanitizing}
    monkeypatch.setattr(chip_module, "emu2", SimpleNamespace(**names))
    chip = chip_module.Chip(machine)
    sums, transpose, stencil, nbody = (
        importlib.import_module(name) for name in ("chip_sum", "transpose", "stencil", "nbody")
    )
    random = np.random.default_rng(1)
    sums.total(chip, random.normal(size=sums.Layout(chip, 2).words))
    side = transpose.Shape(chip).side
    transpose.transpose(chip, np.arange(side * side, dtype=np.uint64).reshape(side, side))
    stencil.advance(chip, random.normal(size=chip.pes * stencil.D), (5.0, -3.0), 2)
    nbody.simulate(chip, random.normal(size=(70, 3)), random.uniform(0.5, 2, 70), 2.0**-10)


def test_the_report_is_that_of_a_plain_run() -> None:
    spec = emu2.Spec.load("mini")
    program = emu2.assemble(UNDEFINED, spec, filename="it.vsm")
    plain, sanitized = (
        emu2.Machine(spec).run(program, sanitize=sanitize) for sanitize in (False, True)
    )
    assert plain.findings == []
    assert (plain.dump, plain.counters) == (sanitized.dump, sanitized.counters)
    (found,) = sanitized.findings
    assert found["file"] == "it.vsm"
    assert (found["code"], found["severity"], found["line"]) == ("Z0101", "warning", 3)
    assert (found["memory"], found["unit"], found["address"]) == ("grf0", "n0c0b0m0p1", 0)
    assert (found["earlier_line"], found["count"]) == (None, 3)
    assert "grf0[0] of n0c0b0m0p1 is shown" in found["message"]
    assert "3 such cases" in found["message"]
    assert "it.vsm:3:1" in sanitized.render_findings()


def test_the_memories_are_followed_from_run_to_run() -> None:
    spec = emu2.Spec.load("mini")
    machine = emu2.Machine(spec)
    write = emu2.assemble("d set $lr0 1 0000000000000001\n", spec)
    show = emu2.assemble("d get $lr0n0c0b0m0p0 2\n", spec)
    machine.run(write, sanitize=True)
    (found,) = machine.run(show, sanitize=True).findings
    assert found["address"] == 2
    machine.write("grf0", np.zeros(1, np.uint64), addr=1)
    assert machine.run(show, sanitize=True).findings == []
    assert machine.validity("grf0", count=3, group=0, l2b=0, l1b=0, mab=0, pe=0).tolist() == [
        2**64 - 1,
        2**64 - 1,
        0,
    ]
    machine.reset()
    assert len(machine.run(show, sanitize=True).findings) == 1
    # Nobody has followed this run, so it may have written everything.
    machine.run(write)
    assert machine.run(show, sanitize=True).findings == []


def emu2_run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "it.vsm").write_text(text)
    command = [sys.executable, "-m", "emu2.cli", "run", "it.vsm", "--spec", "mini", *options]
    root = str(Path(__file__).resolve().parents[2])
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={"PYTHONPATH": root}, check=False
    )


def test_the_command_line(tmp_path: Path) -> None:
    done = emu2_run(tmp_path, UNDEFINED, "--sanitize")
    assert done.returncode == 1
    assert done.stderr.startswith("warning[Z0101]: grf0[0] of n0c0b0m0p1 is shown")
    assert done.stderr.rstrip().endswith("more: emu2 explain Z0101")
    plain = emu2_run(tmp_path, UNDEFINED)
    assert (plain.returncode, plain.stderr, plain.stdout) == (0, "", done.stdout)
    as_json = emu2_run(tmp_path, UNDEFINED, "--sanitize", "--format", "json")
    found: list[dict[str, Any]] = json.loads(as_json.stderr)
    assert [one["code"] for one in found] == ["Z0101"]
    clean = emu2_run(tmp_path, "d set $lr0 1 0000000000000001\n", "--sanitize")
    assert (clean.returncode, clean.stderr) == (0, "")


def test_hazards_of_the_assembler_count(tmp_path: Path) -> None:
    text = "d set $lr0 1 0000000000000001\nlpassa $lr0 $lm8\nlpassa $lm8 $ls0\n"
    assert emu2_run(tmp_path, text).returncode == 0
    done = emu2_run(tmp_path, text, "--sanitize")
    assert done.returncode == 1
    assert "A0701" in done.stderr


def test_saved_words_must_be_defined(tmp_path: Path) -> None:
    (tmp_path / "save.json").write_text(
        json.dumps({"save": [{"region": "pdm0", "file": "out.bin", "offset": 512, "length": 512}]})
    )
    text = "mvp/n64i01 $p0@0 $p64@0\nnop; wait i01\n"
    done = emu2_run(tmp_path, text, "--sanitize", "--save-memory-file", "save.json")
    assert done.returncode == 1
    assert "warning[Z0101]: pdm[64] of n0 is shown" in done.stderr
    assert (tmp_path / "out.bin").stat().st_size == 512
    (tmp_path / "out.bin").rename(tmp_path / "in.bin")
    load = {"load": [{"region": "pdm0", "file": "in.bin", "offset": 0}]}
    (tmp_path / "load.json").write_text(json.dumps(load))
    both = ("--load-memory-file", "load.json", "--save-memory-file", "save.json")
    assert emu2_run(tmp_path, text, "--sanitize", *both).returncode == 0
