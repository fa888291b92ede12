"""`emu2 conformance` against a second emulator whose faults are known."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import emu2
from emu2.cli import cli
from emu2.conformance import Conformance, read, shown

FAKE = Path(__file__).parent / "fake_emulator.py"
LOAD = '{"load": [{"region": "dram0", "file": "a.bin", "offset": 0}]}'
PROGRAM = """\
d set $lm0n0c0b0m0p0 2 3FC000003FC000004000000040000000
nop/2
ladd $lm0v $lm0v $lr0v
nop/6
d get $lr0n0c0b0m0p0 2
d getf $lm0n0c0b0m0p0 1
"""


def command(fault: str) -> str:
    return shlex.join([sys.executable, str(FAKE), fault])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "sum.vsm").write_text(PROGRAM)
    return tmp_path


def run(folder: Path, fault: str, *more: str) -> tuple[int, list[str]]:
    arguments = ["conformance", str(folder), "--spec", "mini", "--other", command(fault), *more]
    done = CliRunner().invoke(cli, arguments)
    return done.exit_code, done.output.splitlines()


@pytest.mark.parametrize("fault", ["none", "text"])
def test_equal_bits_are_equal(folder: Path, fault: str) -> None:
    wanted = ["1 programs: 1 equal (3 words), 0 refused by both, 0 differ"]
    assert run(folder, fault) == (0, wanted)


def test_a_command_is_found_from_here_and_a_missing_one_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = folder / "board"
    script.write_text(f'#!/bin/sh\nexec {command("none")} "$@"\n')
    script.chmod(0o755)
    monkeypatch.chdir(folder)
    for other in ("./board", "sh board"):
        done = CliRunner().invoke(cli, ["conformance", ".", "--spec", "mini", "--other", other])
        assert (done.exit_code, done.output[:20]) == (0, "1 programs: 1 equal ")
    # A program that emu2 refuses must not count as equal because of a misspelt command.
    (folder / "deep" / "sum.vsm").write_text("fly\n")
    for other in ("./borad", "no-such-command-here", ""):
        done = CliRunner().invoke(cli, ["conformance", ".", "--spec", "mini", "--other", other])
        assert isinstance(done.exception, emu2.EmulatorError)
        assert done.exception.code == "F0001"


def test_the_first_difference_has_unit_address_and_values(folder: Path) -> None:
    code, lines = run(folder, "bit:1", "--json", str(folder / "out.json"))
    assert code == 1
    assert lines[0] == ("deep/sum.vsm: differs at GREG0 n0c0b0m0p0 address 2, after 1 equal words")
    assert "v:0x8000000080000000" in lines[1]
    assert "v:0x8000000080000001" in lines[2]
    assert lines[3] == "1 programs: 0 equal (0 words), 0 refused by both, 1 differ"
    (found,) = json.loads((folder / "out.json").read_text())
    assert (found["memory"], found["unit"], found["address"]) == ("GREG0", "n0c0b0m0p0", 2)


@pytest.mark.parametrize(
    ("fault", "first"),
    [
        ("cut:2", "deep/sum.vsm: differs at LM0 n0c0b0m0p0 address 0, after 2 equal words"),
        ("crash", "deep/sum.vsm: only the other refuses"),
        ("silent", "deep/sum.vsm: no answer of the other"),
        ("killed", "deep/sum.vsm: no answer of the other"),
    ],
)
def test_a_short_dump_and_a_crash_are_differences(folder: Path, fault: str, first: str) -> None:
    code, lines = run(folder, fault)
    assert (code, lines[0]) == (1, first)
    reasons = {
        "crash": "no board is there",
        "silent": "has not written dump.txt",
        "killed": "signal 6",
    }
    assert reasons.get(fault, "nothing") in lines[2]


def test_a_slow_emulator_is_stopped(folder: Path) -> None:
    code, lines = run(folder, "slow", "--seconds", "0.3")
    assert code == 1
    assert "takes more than 0.3 s" in lines[2]


def test_all_kinds_of_programs_in_their_order(folder: Path) -> None:
    spec = emu2.Spec.load("mini")
    (folder / "a.vsm").write_text("d get $d0n0 1\n")
    (folder / "a.json").write_text(LOAD)
    (folder / "a.bin").write_bytes(bytes(range(8)))
    with (folder / "b.asm").open("w") as text:
        emu2.write_asm(emu2.assemble(PROGRAM, spec), text, form="mixed")
    (folder / "host.vsm").write_text("e 0 0 i00 i00 0 000000000 000002\n")
    code, lines = run(folder, "none", "--json", str(folder / "out.txt"))
    assert code == 0, lines
    found = json.loads((folder / "out.txt").read_text())
    status = [(one["program"], one["status"], one["words"]) for one in found]
    assert status == [
        ("a.vsm", "equal", 1),
        ("b.asm", "equal", 3),
        ("deep/sum.vsm", "equal", 3),
        ("host.vsm", "equal", 2),
    ]


def test_what_emu2_does_not_assemble_is_no_agreement(folder: Path) -> None:
    (folder / "deep" / "sum.vsm").write_text("fly\n")
    code, lines = run(folder, "none")
    assert (code, lines[0]) == (1, "deep/sum.vsm: not assembled")
    assert "A0102" in lines[1]
    assert lines[2:] == [
        "  other: not asked",
        "1 programs: 0 equal (0 words), 0 refused by both, 1 differ",
    ]


@pytest.mark.parametrize(
    ("program", "assembler", "status"),
    [
        ("fly\n", "exit 1", "both refuse"),
        ("nop\n", "exit 1", "only the other refuses"),
        ("nop\n", "kill -9 $$", "no answer of the other"),
    ],
)
def test_both_assemblers_are_asked(folder: Path, program: str, assembler: str, status: str) -> None:
    (folder / "a.vsm").write_text(program)
    own = shlex.join(["sh", "-c", assembler])
    judge = Conformance(emu2.Spec.load("mini"), command("none"), own)
    assert judge.compare(folder / "a.vsm", "a").status == status


def test_the_children_of_a_slow_emulator_are_ended(folder: Path) -> None:
    script = folder / "other"
    script.write_text(
        f"#!/bin/sh\necho $$ > {folder}/pids\nsleep 60 & echo $! >> {folder}/pids\nwait\n"
    )
    script.chmod(0o755)
    judge = Conformance(emu2.Spec.load("mini"), str(script), seconds=0.5)
    start = time.monotonic()
    assert judge.compare(folder / "deep" / "sum.vsm", "sum").status == "no answer of the other"
    assert time.monotonic() - start < 20
    pids = (folder / "pids").read_text().split()
    assert len(pids) == 2
    for pid in pids:
        # One that nobody has waited for yet is a zombie.
        stat = Path("/proc", pid, "stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_one_program_may_be_named(folder: Path) -> None:
    wanted = ["1 programs: 1 equal (3 words), 0 refused by both, 0 differ"]
    assert run(folder / "deep" / "sum.vsm", "none") == (0, wanted)


def test_memories_are_loaded_first(folder: Path) -> None:
    (folder / "a.vsm").write_text("d get $d0n0 1\n")
    judge = Conformance(emu2.Spec.load("mini"), command("bit:0"))
    (folder / "a.json").write_text(LOAD)
    (folder / "a.bin").write_bytes(bytes(range(8)))
    found = judge.compare(folder / "a.vsm", "a")
    assert (found.status, found.unit, found.address) == ("differs", "n0", 0)
    assert "v:0x1020304050607)" in found.ours


def test_another_assembler_may_write_the_text(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "assemble.py"
    script.write_text(
        "import sys, emu2\n"
        "spec = emu2.Spec.load('mini')\n"
        "program = emu2.assemble(open(sys.argv[1]).read().replace('ladd', 'lsub'), spec)\n"
        "emu2.write_asm(program, open(sys.argv[3], 'w'), form='mixed')\n"
    )
    judge = Conformance(
        emu2.Spec.load("mini"), command("bit:0"), shlex.join([sys.executable, str(script)])
    )
    found = judge.compare(folder / "deep" / "sum.vsm", "sum")
    assert "v:0x0)" in found.ours
    assert found.status == "differs"


@pytest.mark.parametrize("arguments", [["nothing"], ["deep", "--spec", "none"]])
def test_nothing_to_run_is_one_diagnostic(folder: Path, arguments: list[str]) -> None:
    where, *more = arguments
    done = CliRunner().invoke(cli, ["conformance", str(folder / where), "--other", "true", *more])
    assert done.exit_code == 1


def test_lines_are_read_with_their_bits() -> None:
    text = "DEBUG-LM0(n0c0b0m0p0,2):(2, 2) (0x40000000, 0x0) #d getf 0x7\nnoise\nDEBUG-X(n0,1): abc"
    one, two = shown(text)
    assert (one.place, one.bits) == ("LM0 n0c0b0m0p0 address 2", (0x40000000, 0))
    assert (two.place, two.bits) == ("X n0 address 1", ("abc",))
    (word,) = read(["banner", "0x10: nothing", "p: 00000000000000FF"])
    assert (word.place, word.bits) == ("stdout p", (255,))
