"""Memory files: regions to load and save, with `emu2 run` and with the vendor's command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu2

Run = Callable[..., subprocess.CompletedProcess[str]]

# PDM words 0..127 go to the DRAM of group 2, 64 words of DRAM 1 go to PDM 3.
PROGRAM = "mvp/n128 $p0@0 $d64@2\nmvp/n64 $d128@1 $p64@3\n"


def call(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def emu2_run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "from emu2 import cli; cli.main()"
    return call(code, "run", "program.vsm", *arguments, cwd=cwd)


def gpfn3(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "from emu2 import words_cli; words_cli.run_gpfn3_package_main()"
    return call(code, "-i", "program.asm", *arguments, cwd=cwd)


@pytest.fixture(params=[emu2_run, gpfn3])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.vsm").write_text(PROGRAM)
    (tmp_path / "program.asm").write_text("".join(f"m {line}\n" for line in PROGRAM.splitlines()))
    return tmp_path


def words(start: int, count: int) -> bytes:
    return np.arange(start, start + count, dtype=">u8").tobytes()


def write(path: Path, **lists: list[dict[str, Any]]) -> str:
    path.write_text(json.dumps(lists))
    return path.name


def test_every_region(folder: Path, run: Run) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "in.bin").write_bytes(words(1, 128))
    (folder / "more.bin").write_bytes(words(500, 64))
    config = write(
        folder / "memory.json",
        load=[
            {"region": "pdm0", "file": "data/in.bin"},
            {"region": "dram1", "file": "more.bin", "offset": 1024, "length": 256},
        ],
        save=[
            {"region": "dram2", "file": "out.bin", "offset": 512, "length": 1024},
            {"region": "pdm3", "file": "data/pdm3.bin", "offset": 504, "length": 528},
        ],
    )
    done = run("-c", config, "--offchip-memory-init", "zero", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "out.bin").read_bytes() == words(1, 128)
    expected = bytes(8) + words(500, 32) + bytes(33 * 8)
    assert (folder / "data" / "pdm3.bin").read_bytes() == expected


def test_one_file_for_each_direction(folder: Path, run: Run) -> None:
    (folder / "in.bin").write_bytes(words(1, 128))
    first = write(folder / "load.json", load=[{"region": "pdm0", "file": "in.bin"}])
    save = [{"region": "dram2", "file": "out.bin", "offset": 512, "length": 64}]
    second = write(folder / "save.json", save=save)
    done = run("--load-memory-file", first, "--save-memory-file", second, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out.bin").read_bytes() == words(1, 8)


def test_one_file_named_for_everything(folder: Path, run: Run) -> None:
    (folder / "in.bin").write_bytes(words(1, 128))
    config = write(
        folder / "memory.json",
        load=[{"region": "pdm0", "file": "in.bin"}],
        save=[{"region": "dram2", "file": "out.bin", "offset": 512, "length": 64}],
    )
    same = ["--load-memory-file", config, "--save-memory-file", config]
    for arguments in (same, ["-c", config, *same]):
        (folder / "out.bin").unlink(missing_ok=True)
        done = run(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (folder / "out.bin").read_bytes() == words(1, 8)


def test_regions_without_a_file(folder: Path, run: Run) -> None:
    """As in public configurations: the two options name the files with the data."""
    (folder / "in.bin").write_bytes(words(1, 128) + words(700, 64))
    config = write(
        folder / "memory.json",
        load=[
            {"region": "pdm0", "offset": 0, "length": 1024},
            {"region": "dram1", "offset": 1024, "length": 512},
        ],
        save=[
            {"region": "dram2", "offset": 512, "length": 1024},
            {"region": "pdm3", "offset": 512, "length": 16},
        ],
    )
    data = ["--load-memory-file", "in.bin", "--save-memory-file", "out.bin"]
    done = run("-c", config, *data, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out.bin").read_bytes() == words(1, 128) + words(700, 2)
    # Without the option, each region is saved to a file of its own.
    (folder / "out.bin").unlink()
    assert run("-c", config, *data[:2], cwd=folder).returncode == 0
    assert (folder / "dram2.bin").read_bytes() == words(1, 128)
    assert (folder / "pdm3.bin").read_bytes() == words(700, 2)


def test_a_whole_region(folder: Path, run: Run) -> None:
    config = write(folder / "memory.json", save=[{"region": "pdm1", "offset": (4 << 20) - 24}])
    done = run("--save-memory-file", config, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "pdm1.bin").read_bytes() == bytes(24)


ENTRY = {"region": "pdm0", "file": "in.bin"}


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("{", "F0004", "memory.json"),
        ("[]", "F0004", "memory.json"),
        ({"load": [["pdm0", "in.bin"]]}, "F0004", "memory.json"),
        ({"loads": []}, "F0004", "loads"),
        ({"load": [{**ENTRY, "size": 8}]}, "F0004", "size"),
        ({"load": [{"file": "in.bin"}]}, "F0004", "region"),
        ({"load": [{**ENTRY, "offset": -8}]}, "F0004", "-8"),
        ({"load": [{**ENTRY, "offset": "0"}]}, "F0004", "string"),
        ({"load": [{**ENTRY, "region": "pdm4"}]}, "F0004", "pdm0 to pdm3"),
        ({"load": [{**ENTRY, "region": "pdm"}]}, "F0004", "`pdm`"),
        ({"load": [{**ENTRY, "region": "lm0"}]}, "F0004", "dram0 to dram3"),
        ({"load": [{**ENTRY, "offset": 4}]}, "F0004", "multiples of 8"),
        ({"load": [{**ENTRY, "length": 12}]}, "F0004", "multiples of 8"),
        ({"load": [{**ENTRY, "length": 72}]}, "F0004", "64"),
        ({"load": [{**ENTRY, "offset": (4 << 20) - 56}]}, "F0006", "4194304"),
        ({"load": [{**ENTRY, "offset": 5 << 20}]}, "F0006", "4194304"),
        ({"load": [{**ENTRY, "file": "odd.bin"}]}, "F0004", "multiples of 8"),
        ({"load": [{**ENTRY, "file": "missing.bin"}]}, "F0001", "missing.bin"),
        ({"load": [{"region": "pdm0"}]}, "F0004", "--load-memory-file"),
        ({"save": [{**ENTRY, "length": (4 << 20) + 8}]}, "F0006", "4194304"),
        ({"save": [{**ENTRY, "region": "dram7", "length": 8}]}, "F0004", "dram7"),
        ({"save": [{**ENTRY, "length": 8}, {**ENTRY, "length": 16}]}, "F0004", "in.bin"),
        ({"save": [{**ENTRY, "file": "no/such/out.bin", "length": 8}]}, "F0005", "out.bin"),
    ],
)
def test_faults_are_one_diagnostic(
    folder: Path, run: Run, text: Any, code: str, named: str
) -> None:
    (folder / "in.bin").write_bytes(words(1, 8))
    (folder / "odd.bin").write_bytes(bytes(9))
    (folder / "memory.json").write_text(text if isinstance(text, str) else json.dumps(text))
    done = run("-c", "memory.json", "-d", "dump.txt", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.count("error[") == 1
    assert f"error[{code}]" in done.stderr
    assert named in done.stderr
    assert "help" in done.stderr
    assert "Traceback" not in done.stderr
    # All problems except failed writing are found before the program runs.
    assert (folder / "dump.txt").exists() == (code == "F0005")


@pytest.mark.parametrize("file", ["memory.json", "sub/../memory.json", "link.json", "hard.json"])
def test_a_save_never_overwrites_its_description(folder: Path, run: Run, file: str) -> None:
    (folder / "sub").mkdir()
    config = write(folder / "memory.json", save=[{"region": "pdm0", "file": file, "length": 8}])
    before = (folder / config).read_bytes()
    (folder / "link.json").symlink_to("memory.json")
    (folder / "hard.json").hardlink_to(folder / "memory.json")
    for arguments in (["-c", config], ["--save-memory-file", config]):
        done = run(*arguments, "--save-outside", cwd=folder)
        assert done.returncode == 1
        assert "error[F0004]" in done.stderr
        assert "overwrite the memory file itself" in done.stderr
        assert (folder / config).read_bytes() == before
    bare = write(folder / "bare.json", save=[{"region": "pdm0", "length": 8}])
    done = run("-c", bare, "--save-memory-file", bare, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "pdm0.bin").read_bytes() == bytes(8)


def test_a_save_outside_the_folder_must_be_asked_for(folder: Path, run: Run) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "away").symlink_to(folder)
    for file in ("../out.bin", str(folder / "out.bin"), "away/out.bin"):
        write(inner / "memory.json", save=[{"region": "pdm0", "file": file, "length": 8}])
        done = run("-c", "inner/memory.json", cwd=folder)
        assert done.returncode == 1
        assert "error[F0004]" in done.stderr
        assert "--save-outside" in done.stderr
        assert not (folder / "out.bin").exists()
        assert run("-c", "inner/memory.json", "--save-outside", cwd=folder).returncode == 0
        assert (folder / "out.bin").read_bytes() == bytes(8)
        (folder / "out.bin").unlink()
    # A file that the command line names may lie anywhere.
    write(inner / "memory.json", save=[{"region": "pdm0", "length": 8}])
    done = run("-c", "inner/memory.json", "--save-memory-file", "out.bin", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out.bin").read_bytes() == bytes(8)


def test_a_link_to_nothing_leads_out_of_the_folder_too(folder: Path, run: Run) -> None:
    inner = folder / "inner"
    inner.mkdir()
    for name, target in (("link", "../out.bin"), ("two", "link"), ("away", folder / "out.bin")):
        (inner / name).symlink_to(target)
        write(inner / "memory.json", save=[{"region": "pdm0", "file": name, "length": 8}])
        done = run("-c", "inner/memory.json", cwd=folder)
        assert (done.returncode, "error[F0004]" in done.stderr) == (1, True)
        assert "--save-outside" in done.stderr
        assert not (folder / "out.bin").exists()
    (inner / "here").symlink_to("new.bin")
    write(inner / "memory.json", save=[{"region": "pdm0", "file": "here", "length": 8}])
    assert run("-c", "inner/memory.json", cwd=folder).returncode == 0
    assert (inner / "new.bin").read_bytes() == bytes(8)


@pytest.mark.parametrize("file", ["in.bin", "./in.bin", "link.bin", "hard.bin"])
def test_a_save_overwrites_no_data_that_is_loaded(folder: Path, run: Run, file: str) -> None:
    (folder / "in.bin").write_bytes(words(1, 8))
    (folder / "link.bin").symlink_to("in.bin")
    (folder / "hard.bin").hardlink_to(folder / "in.bin")
    write(
        folder / "memory.json",
        load=[{"region": "pdm0", "file": "in.bin"}],
        save=[{"region": "pdm0", "file": file, "length": 8}],
    )
    done = run("-c", "memory.json", cwd=folder)
    assert (done.returncode, "error[F0004]" in done.stderr) == (1, True)
    assert (folder / "in.bin").read_bytes() == words(1, 8)
    save = [{"region": "pdm0", "file": name, "length": 8} for name in ("in.bin", file)]
    write(folder / "memory.json", save=save)
    assert run("-c", "memory.json", cwd=folder).returncode == 1
    assert (folder / "in.bin").read_bytes() == words(1, 8)


def test_a_missing_memory_file(folder: Path, run: Run) -> None:
    for option in ("-c", "--load-memory-file", "--save-memory-file"):
        done = run(option, "missing.json", cwd=folder)
        assert (done.returncode, "error[F0001]" in done.stderr) == (1, True)


def test_nothing_is_loaded_if_anything_is_wrong(folder: Path) -> None:
    (folder / "in.bin").write_bytes(words(1, 8))
    entries = [ENTRY, {"region": "dram0", "file": "missing.bin"}]
    config = write(folder / "memory.json", load=entries)
    machine = emu2.Machine(emu2.Spec.load("mini"))
    with pytest.raises(emu2.EmulatorError):
        machine.load_memory_file(folder / config)
    assert (machine.read("pdm", group=0, count=8) == 0).all()
