"""Endless files, huge arrays, impossible numbers and texts: each gives one diagnostic."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu2

PATIENCE = 60.0
SURROGATE = "\ud800"
SPEC = emu2.Spec.load("mini")
HUGE = np.broadcast_to(np.uint64(0), (1 << 40,))


class Sink:
    """A stream that accepts anything."""

    def write(self, text: str) -> None:
        """Forget it."""


def machine() -> emu2.Machine:
    return emu2.Machine(SPEC)


def device() -> emu2.Device:
    return emu2.Device(SPEC)


def assembled() -> emu2.Program:
    return emu2.assemble("nop", SPEC)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "send of a broadcast array": (lambda: device().send(HUGE), "H0001"),
    "write of a broadcast array": (lambda: machine().write("dram", HUGE, group=0), "R0001"),
    "debug_write of a broadcast array": (
        lambda: device().debug_write("dram", None, 0, HUGE),
        "R0001",
    ),
    "send at 2**63": (lambda: device().send(bytes(8), 2**63), "H0001"),
    "send at 2**200": (lambda: device().send(bytes(8), 2**200), "H0001"),
    "send at -8": (lambda: device().send(bytes(8), -8), "H0001"),
    "recv at 2**64": (lambda: device().recv(np.zeros(1), 2**64), "H0001"),
    "tag 2**64": (lambda: device().send(bytes(8), 0, 2**64), "H0003"),
    "endian mode 2**64": (lambda: emu2.Device(SPEC, endian=2**64), "R0009"),
    "surrogate in a source": (lambda: emu2.assemble(f"nop\n{SURROGATE}\n", SPEC), "F0002"),
    "surrogate in assembled text": (lambda: emu2.read_asm(SURROGATE, SPEC), "F0002"),
    "surrogate in a kernel": (lambda: device().load_kernel(f"nop\n{SURROGATE}"), "F0002"),
    "surrogate in the name": (
        lambda: emu2.assemble("nopp", SPEC, filename=SURROGATE),
        "A0102",
    ),
    "surrogate as policy": (
        lambda: emu2.assemble("nop", SPEC, policy=SURROGATE),  # type: ignore[arg-type]
        "R0009",
    ),
    "surrogate as form": (
        lambda: emu2.write_asm(assembled(), Sink(), form=SURROGATE),  # type: ignore[arg-type]
        "R0009",
    ),
    "surrogate as spec": (lambda: emu2.Spec.load(SURROGATE), "S0011"),
    "surrogate as a device's spec": (lambda: emu2.Device(SURROGATE), "S0011"),
    "surrogate as memory": (lambda: machine().read(SURROGATE), "R0002"),
    "surrogate as region": (lambda: device().debug_read(SURROGATE), "R0002"),
    "surrogate as level": (lambda: device().debug_read("pdm", {SURROGATE: 0}), "R0003"),
    "surrogate as path": (lambda: machine().load_memory_file(SURROGATE), "F0001"),
    "surrogate as config": (lambda: emu2.MemoryFiles(SPEC, config=SURROGATE), "F0001"),
    "surrogate as kernel": (lambda: device().load_kernel(SURROGATE), "F0001"),
    "surrogate as transfer": (lambda: SPEC.index_map(SURROGATE, "down"), "S0005"),
    "surrogate as form of a map": (lambda: SPEC.index_map("l2bmb", SURROGATE), "S0005"),
    "NUL in a path": (lambda: machine().load_memory_file("a\0b"), "F0001"),
    "kernel without end": (lambda: device().load_kernel("/dev/zero"), "F0007"),
    "memory file without end": (lambda: machine().load_memory_file("/dev/zero"), "F0007"),
    "spec without end": (lambda: emu2.Spec.load("/dev/zero"), "F0007"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_diagnostic(name: str) -> None:
    call, code = CALLS[name]
    with pytest.raises(emu2.Emu2Error) as caught:
        call()
    assert f"error[{code}]" in str(caught.value)


def command(
    folder: Path, *arguments: str, stdin: str = "/dev/null", stdout: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`."""
    whole = [sys.executable, "-m", "emu2.cli", *arguments]
    with open(stdin, "rb") as given, open(stdout or os.devnull, "w") as taken:
        return subprocess.run(
            whole,
            cwd=folder,
            stdin=given,
            stdout=taken,
            stderr=subprocess.PIPE,
            text=True,
            errors="backslashreplace",
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program and with hostile files."""
    (tmp_path / "ok.vsm").write_text("d get $lm0n0c0b0m0p0 1\n")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    for name, direction, file in (
        ("zero", "load", "/dev/zero"),
        ("quiet", "load", "pipe"),
        ("full", "save", "/dev/full"),
        ("unread", "save", "pipe"),
        ("round", "save", "loop"),
    ):
        text = f'{{"{direction}": [{{"region": "pdm0", "file": "{file}"}}]}}'
        (tmp_path / f"{name}.json").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "loop"], "F0001"),
        (["run", "pipe"], "F0001"),
        (["run", "."], "F0001"),
        (["run", "/dev/zero"], "F0007"),
        (["run", "no\udcff.vsm"], "F0001"),
        (["check", "/dev/zero"], "F0007"),
        (["run", "ok.vsm", "-d", "/dev/full"], "F0005"),
        (["run", "ok.vsm", "-d", "loop"], "F0005"),
        (["run", "ok.vsm", "-d", "pipe"], "F0005"),
        (["run", "ok.vsm", "-d", "no\udcff/x"], "F0005"),
        (["run", "ok.vsm", "--report", "/dev/full"], "F0005"),
        (["run", "ok.vsm", "--trace", "pipe"], "F0005"),
        (["run", "ok.vsm", "--spec", "no\udcff"], "S0011"),
        (["run", "ok.vsm", "--spec", "pipe"], "F0001"),
        (["run", "ok.vsm", "-c", "pipe"], "F0001"),
        (["run", "ok.vsm", "-c", "/dev/zero"], "F0007"),
        (["run", "ok.vsm", "-c", "no\udcff"], "F0001"),
        (["run", "ok.vsm", "-c", "zero.json"], "F0007"),
        (["run", "ok.vsm", "-c", "quiet.json"], "F0001"),
        (["run", "ok.vsm", "-c", "full.json"], "F0004"),
        (["run", "ok.vsm", "-c", "full.json", "--save-outside"], "F0005"),
        (["run", "ok.vsm", "-c", "unread.json"], "F0005"),
        (["run", "ok.vsm", "-c", "round.json"], "F0005"),
        (["spec", "no\udcff"], "S0005"),
        (["asm", "/dev/zero"], "F0007"),
        (["disasm", "pipe"], "F0001"),
    ],
)
def test_a_file_is_one_diagnostic(arguments: list[str], code: str, folder: Path) -> None:
    done = command(folder, *arguments)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"error[{code}]: ")
    assert [line.split(":")[0] for line in lines[1:]] == ["  help", "more"]


@pytest.mark.parametrize(
    "arguments", [["run", "ok.vsm"], ["spec"], ["check", "--format", "json", "ok.vsm"], ["--help"]]
)
def test_a_full_stdout_is_one_diagnostic(arguments: list[str], folder: Path) -> None:
    done = command(folder, *arguments, stdout="/dev/full")
    assert done.returncode == 1
    lines = [line.split(":")[0] for line in done.stderr.splitlines()]
    assert lines == ["error[F0005]", "  help", "more"]


def test_stdin_without_end_is_one_diagnostic(folder: Path) -> None:
    done = command(folder, "run", "-", stdin="/dev/zero")
    assert (done.returncode, done.stderr.split(":")[0]) == (1, "error[F0007]")


def test_a_pipe_with_a_writer_is_read(folder: Path) -> None:
    writer = ["sh", "-c", "sleep 0.3; cat ok.vsm > pipe"]
    with subprocess.Popen(writer, cwd=folder):
        done = command(folder, "run", "pipe", stdout=str(folder / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out").read_text().startswith("DEBUG-LM0")


def test_a_machine_of_many_groups_loads_fast(tmp_path: Path) -> None:
    """Checking the maps of all groups took 4 s of the processor before they became numbers."""
    (tmp_path / "topology.toml").write_text(
        'extends = "mini"\n[machine]\nname = "wide"\ndoc = "Many groups."\n[counts]\ngroup = 255\n'
    )
    (tmp_path / "one.vsm").write_text("nop\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "emu2.cli", "run", "one.vsm", "--spec", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert after.ru_utime - before.ru_utime < 3.5
