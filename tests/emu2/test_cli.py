"""The `emu2` command as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """\
d set $lm0n0c0b0m0p0 1 0000000000000002
linc $lm0 $ln0
d get $ln0n0c0b0m0p0 1
d getd $ln0n0c0b0m0p0 1  # a comment
"""
LINES = [
    "DEBUG-LM1(n0c0b0m0p0,0):(f:0, i:{{0x0,0x0},{0x0,0x3}}, v:0x3) #d get $ln0n0c0b0m0p0 1",
    "DEBUG-LM1(n0c0b0m0p0,0):(0) (0x0000000000000003) #d getd $ln0n0c0b0m0p0 1",
]


def emu2(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command and return its result."""
    command = [sys.executable, "-m", "emu2.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def source(folder: Path, text: str | bytes) -> str:
    """Write a program into `folder` and return its path."""
    path = folder / "program.vsm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_run_prints_the_dump(tmp_path: Path) -> None:
    done = emu2("run", source(tmp_path, PROGRAM))
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, LINES, "")


def test_a_state_goes_from_run_to_run(tmp_path: Path) -> None:
    """The second run finds what the first one left; another machine refuses it."""
    state, program = str(tmp_path / "state"), source(tmp_path, "linc $lm0 $lm0\nnop/4\n" * 3)
    for _ in range(2):
        load = ("--load-state", state) if Path(state).exists() else ()
        done = emu2("run", program, *load, "--save-state", str(tmp_path / "new"))
        assert (done.returncode, done.stderr) == (0, "")
        (tmp_path / "new").replace(state)
    shown = source(tmp_path, "d get $lm0n3c1b7m15p3 1\n")
    assert "v:0x6" in emu2("run", shown, "--load-state", state).stdout
    command = [sys.executable, "-m", "emu2.cli", "debug", shown, "--load-state", state]
    place = "print lm0[0] of n3c1b7m15p3\n"
    done = subprocess.run(command, input=place, capture_output=True, text=True, check=False)
    assert done.stdout == "n3c1b7m15p3[0] = 0x0000000000000006\n"
    other = emu2("run", source(tmp_path, "nop\n"), "--spec", "mini", "--load-state", state)
    assert (other.returncode, "error[R0005]" in other.stderr) == (1, True)
    same = emu2("run", shown, "--load-state", state, "--save-state", state)
    assert (same.returncode, "error[F0008]" in same.stderr) == (1, True)


def test_dump_goes_to_the_file_only(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    done = emu2("run", source(tmp_path, PROGRAM), "-d", str(out), "--spec", "mini")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert out.read_text().splitlines() == LINES


def test_report_counts_steps_and_words(tmp_path: Path) -> None:
    text = 'mvp/n128i01 $d0@0 $lc0@0.0\nnop; wait i01\nnop/7\nl2bmb $lc0 $lb0\nimm i"1" $lr0\n'
    report = tmp_path / "report.json"
    done = emu2("run", source(tmp_path, text), "--report", str(report))
    assert done.returncode == 0, done.stderr
    counted = json.loads(report.read_text())
    assert counted["steps"] == 10
    # Latency 256, then 128 words at 16 a cycle; the program waits for all of it.
    assert counted["cycles"] == 4 * 10 + 256 + 128 // 16
    assert counted["dram_words"] == {"read": 128, "written": 0}
    assert counted["words"]["l2bm"] == {"read": 8 * 64, "written": 128}
    assert counted["busy_steps"] == {"l2bm": 1, "alu": 1}


def test_memory_files_load_and_save(tmp_path: Path) -> None:
    words = np.arange(1, 129, dtype=np.uint64)
    (tmp_path / "in.bin").write_bytes(words.astype(">u8").tobytes())
    regions = {
        "load": [{"region": "pdm0", "file": "in.bin", "offset": 512}],
        "save": [{"region": "dram1", "file": "out.bin", "offset": 8 * 64, "length": 1024}],
    }
    config = tmp_path / "memory.json"
    config.write_text(json.dumps(regions))
    text = "mvp/n128 $p64@0 $d64@1\n"
    arguments = ["--load-memory-file", str(config), "--save-memory-file", str(config)]
    done = emu2("run", source(tmp_path, text), *arguments)
    assert done.returncode == 0, done.stderr
    saved = np.frombuffer((tmp_path / "out.bin").read_bytes(), dtype=">u8")
    assert (saved == words).all()


def test_a_host_tag_is_noted_and_refused_when_strict(tmp_path: Path) -> None:
    path = source(tmp_path, "nop; wait i10\n")
    report = tmp_path / "report.json"
    assert emu2("run", path, "--report", str(report)).returncode == 0
    assert json.loads(report.read_text())["host_tags"] == [16]
    done = emu2("run", path, "--strict")
    assert done.returncode == 1
    assert "error[R0008]" in done.stderr


def test_an_assembly_error_leaves_the_dump_alone(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    path = source(tmp_path, "linc $lm1 $ln0\n")
    assert emu2("run", path, "-d", str(out)).returncode == 1
    assert not out.exists()
    out.write_text("older\n")
    done = emu2("run", path, "-d", str(out))
    assert (done.returncode, done.stdout, out.read_text()) == (1, "", "older\n")
    assert "program.vsm:1:6" in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("linq $lm0 $ln0\n", "A", "program.vsm:1:1"),
        ("\n  linc $lm99999 $ln0\n", "A", "program.vsm:2:8"),
        ("linc $lm1 $ln0\n", "A", "program.vsm:1:6"),
        ("linc $lb0 $ln0\n", "A", "program.vsm:1:6"),
        ('imm f"3.14 $lr0\n', "A", "program.vsm:1:5"),
        (b"nop\nnop \xff\xfe\n", "F0002", "program.vsm:2:5"),
        ("", "F0003", ""),
    ],
)
def test_bad_input_is_one_diagnostic(
    tmp_path: Path, text: str | bytes, code: str, place: str
) -> None:
    done = emu2("run", source(tmp_path, text))
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"error[{code}" in done.stderr
    assert done.stderr.count("error[") == 1
    assert place in done.stderr
    assert "help" in done.stderr
    assert "Traceback" not in done.stderr


def test_comments_may_be_in_any_encoding(tmp_path: Path) -> None:
    comment = "# 加算\n".encode("shift_jis")
    done = emu2("run", source(tmp_path, comment + PROGRAM.encode()))
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, LINES, "")


def test_a_processor_level_the_host_has_not_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source(tmp_path, PROGRAM)
    monkeypatch.setenv("EMU2_LEVEL", "baseline")
    assert emu2("run", path).returncode == 0
    monkeypatch.setenv("EMU2_LEVEL", "v9")
    done = emu2("run", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "R0009" in done.stderr
    assert "baseline" in done.stderr


def test_comments_alone_are_a_program(tmp_path: Path) -> None:
    done = emu2("run", source(tmp_path, "# nothing\n"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "missing.vsm"], "F0001"),
        (["check", "missing.vsm"], "F0001"),
        (["run", "good.vsm", "--spec", "mncore9"], "S0011"),
        (["run", "good.vsm", "-d", "no/such/folder/out.txt"], "F0005"),
        (["run", "good.vsm", "-c", "missing.json"], "F0001"),
        (["run", "good.vsm", "-c", "bad.json"], "F0004"),
        (["run", "good.vsm", "-c", "far.json"], "F0006"),
        (["run", "good.vsm", "-c", "odd.json"], "F0004"),
        (["run", "good.vsm", "-c", "region.json"], "F0004"),
        (["spec", "fvdiv"], "S0005"),
    ],
)
def test_bad_files_and_names(tmp_path: Path, arguments: list[str], code: str) -> None:
    (tmp_path / "good.vsm").write_text("nop\n")
    (tmp_path / "data.bin").write_bytes(bytes(64))
    (tmp_path / "bad.json").write_text('{"loads": []}')
    for name, entry in {
        "far": {"region": "pdm0", "file": "data.bin", "offset": 4 << 20},
        "odd": {"region": "pdm0", "file": "data.bin", "offset": 4},
        "region": {"region": "pdm7", "file": "data.bin"},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"load": [entry]}))
    done = emu2(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert f"error[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


def test_usage_errors_leave_with_2() -> None:
    assert emu2("run").returncode == 2
    assert emu2("fly").returncode == 2


def test_check_as_json(tmp_path: Path) -> None:
    text = "linc $lr0 $ln0\nlpassa $ln0 $lr0\n"
    path = source(tmp_path, text)
    assert emu2("run", path).returncode == 0
    assert emu2("check", path).returncode == 1
    done = emu2("check", path, "--format", "json")
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    assert (found["line"], found["column"], found["severity"]) == (2, 8, "error")
    assert set(found) == {
        "file",
        "line",
        "column",
        "end_line",
        "end_column",
        "code",
        "severity",
        "message",
        "help",
    }


def test_every_command_reports_as_json(tmp_path: Path) -> None:
    path = source(tmp_path, "linc $lr0 $ln0\nlpassa $ln0 $lr0\n")
    done = emu2("run", path, "--format", "json")
    assert (done.returncode, done.stdout) == (0, "")
    (found,) = json.loads(done.stderr)
    assert (found["line"], found["severity"]) == (2, "warning")
    done = emu2("asm", path, "--format", "json")
    assert (done.returncode, done.stdout) == (1, "")
    (found,) = json.loads(done.stderr)
    assert (found["line"], found["severity"]) == (2, "error")
    assembled = tmp_path / "broken.asm"
    assembled.write_text("i 01\n")
    done = emu2("check", str(assembled), "--format", "json")
    assert done.returncode == 1
    assert [f["severity"] for f in json.loads(done.stdout)] == ["error"]


def test_manual_pages() -> None:
    listing = emu2("spec").stdout
    assert len(listing.splitlines()) > 20
    page = emu2("spec", "fvfma").stdout
    assert "vendor-output" in page
    assert "fvfma $lm0 $ln0 $ls0 $lr0" in page
    assert emu2("spec", "l2bmd").stdout.count(":=") == 2
