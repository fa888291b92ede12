"""Machine words: the Python functions, `emu2 asm` and `disasm`, and the vendor's tools by name."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import emu2

VECTORS_FILE = Path(__file__).parents[2] / "isa_specs" / "mncore2" / "encoding_vectors.toml"
VECTORS = {v["name"]: v["hex"] for v in tomllib.loads(VECTORS_FILE.read_text())["encoding_vector"]}
BITS = 292

# The encoding of the last line but one is not known, that of the line before is inferred.
PROGRAM = """\
d set $lm0n0c0b0m0p0 1 4000000000000000 # two
dvadd $lm0v $lm0v $ln0v
nop/2
hvpassa $lm0 $nowrite
ladd $ln0v $lm0v $lr0v   # what
d get $lr0n0c0b0m0p0 1
"""
DUMP = (
    "DEBUG-GREG0(n0c0b0m0p0,0):(f:-2.22507e-308, i:{{0x8010,0x0},{0x0,0x0}}, v:0x8010000000000000)"
    " #d get $lr0n0c0b0m0p0 1\n"
)


def digits(name: str) -> str:
    return f"{int(VECTORS[name], 16):0{BITS}b}"


def run(
    code: str, *arguments: str, cwd: Path, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a call of `emu2.words_cli` as a command of its own."""
    text = f"import sys; from emu2 import console, words_cli; {code}"
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, check=False, input=stdin
    )


def assemble3(*arguments: str, cwd: Path, stdin: str | None = None) -> tuple[int, str, str]:
    done = run("words_cli.called_as('/usr/bin/assemble3')()", *arguments, cwd=cwd, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


def gpfn3(*arguments: str, cwd: Path, stdin: str | None = None) -> tuple[int, str, str]:
    code = "words_cli.called_as('gpfn3_package_main')()"
    done = run(code, *arguments, cwd=cwd, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


def emu2_command(name: str, *arguments: str, cwd: Path) -> tuple[int, str, str]:
    done = run(f"console.guarded(words_cli.{name}, 'emu2 {name}')", *arguments, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.vsm").write_text(PROGRAM)
    return tmp_path


# Python


def words(text: str, **options: object) -> list[str]:
    sink = io.StringIO()
    program = emu2.assemble(text, emu2.Spec.load("mncore2"))
    emu2.write_asm(program, sink, **options)  # type: ignore[arg-type]
    return sink.getvalue().splitlines()


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    assert words(name) == [f"i {digits(name)}"]
    program = emu2.read_asm(f"i {digits(name)}\n", emu2.Spec.load("mncore2"))
    assert words(emu2.to_text(program)) == [f"i {digits(name)}"]


def test_refusals_name_code_and_place() -> None:
    with pytest.raises(emu2.AssembleError) as caught:
        words("nop\nladd $lm0v $ln0v $lr0v\n")
    found = caught.value.diagnostics
    assert [(d["code"], d["line"], d["column"]) for d in found] == [("W0101", 2, 1)]
    assert "`ladd`" in found[0]["message"]
    with pytest.raises(emu2.AssembleError) as caught:
        words("hvpassa $lm0 $nowrite\n")
    assert [d["code"] for d in caught.value.diagnostics] == ["W0102"]
    assert len(words("hvpassa $lm0 $nowrite\n", allow_inferred=True)) == 1
    with pytest.raises(emu2.EmulatorError):
        words("nop\n", form="loose")


def test_reading_refuses_what_it_does_not_know() -> None:
    spec = emu2.Spec.load("mncore2")
    with pytest.raises(emu2.AssembleError) as caught:
        emu2.read_asm("i " + "0" * 291 + "\n", spec, filename="short.asm")
    found = caught.value.diagnostics[0]
    assert (found["file"], found["code"], found["column"]) == ("short.asm", "W0202", 3)


def test_a_sink_that_fails_is_not_hidden() -> None:
    class Full(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError("full")

    program = emu2.assemble("nop\n", emu2.Spec.load("mini"))
    with pytest.raises(OSError, match="full"):
        emu2.write_asm(program, Full())


def test_memory_lines_write_dram() -> None:
    spec = emu2.Spec.load("mini")
    text = "r 0 00000000a 001 0123456789abcdef\nd getd $d10n0 1\n"
    report = emu2.Machine(spec).run(emu2.read_asm(text, spec))
    assert report.dump[0].startswith("DEBUG-DRAM(n0,10):(3.5127e-303) (0x0123456789abcdef)")


def test_memory_lines_stand_in_sources_too() -> None:
    spec = emu2.Spec.load("mncore2")
    text = "  r 1 00000000a  001 0123456789abcdef # input\nd set $d11n1 1 000000000000000f\n"
    program = emu2.assemble(text + "d getd $d10n1 2\n", spec)
    dump = emu2.Machine(spec).run(program).dump
    assert dump[0].startswith("DEBUG-DRAM(n1,10):(3.5127e-303) (0x0123456789abcdef)")
    sink = io.StringIO()
    emu2.write_asm(program, sink)
    assert sink.getvalue().splitlines() == [
        "r 1 00000000A 001 0123456789ABCDEF",
        "r 1 00000000B 001 000000000000000F",
        "d getd $d10n1 2",
    ]
    again = emu2.read_asm(sink.getvalue(), spec)
    assert emu2.Machine(spec).run(again).dump == dump
    for wrong in ("r", "r 4 0 001 0123456789abcdef", "r 0 0 002 0123456789abcdef", "r 0 0 001 1"):
        with pytest.raises(emu2.AssembleError) as caught:
            emu2.assemble(wrong + "\n", spec)
        assert caught.value.diagnostics[0]["code"] == "W0207"


def test_containers() -> None:
    program = emu2.assemble("ladd $lm0v $ln0v $lr0v # sum\n", emu2.Spec.load("mini"))
    packed = emu2.pack(program)
    assert emu2.unpack(packed) == "ladd $lm0v $ln0v $lr0v\n"
    with pytest.raises(emu2.EmulatorError) as caught:
        emu2.unpack(packed[:-1])
    assert caught.value.code == "W0301"


# Commands


def test_asm_writes_words_or_refuses(folder: Path) -> None:
    (folder / "good.vsm").write_text("dvadd $lm0v $ln0v $lr0v\nnop/2 # idle\n")
    code, out, err = emu2_command("asm", "good.vsm", cwd=folder)
    assert (code, err) == (0, "")
    assert [len(line) for line in out.splitlines()] == [2 + BITS] * 3
    assert emu2_command("asm", "good.vsm", "-o", "out.asm", cwd=folder) == (0, "", "")
    assert (folder / "out.asm").read_text() == out
    (folder / "out.asm").write_text("older\n")
    code, out, err = emu2_command("asm", "in.vsm", "-o", "out.asm", cwd=folder)
    assert (code, out, (folder / "out.asm").read_text()) == (1, "", "older\n")
    assert err.count("error[W0101]") == 1
    assert err.count("error[W0102]") == 1
    assert "in.vsm:5:1" in err


def test_asm_refuses_hazards(folder: Path) -> None:
    (folder / "early.vsm").write_text("dvadd $lm0v $ln0v $lm0v\nlpassa $lm0v $ls0v\n")
    code, out, err = emu2_command("asm", "early.vsm", cwd=folder)
    assert (code, out) == (1, "")
    assert "error[A0701]" in err


def test_disasm_gives_the_source_back(folder: Path) -> None:
    text = "dvadd $lm0v $ln0v $lr0v\nnop\nhmread $lly8 $nowrite; lpassa $lm16v $nowrite\n"
    (folder / "a.vsm").write_text(text)
    assert emu2_command("asm", "a.vsm", "-o", "a.asm", cwd=folder) == (0, "", "")
    assert emu2_command("disasm", "a.asm", cwd=folder) == (0, text, "")
    # Next to another instruction, a read of row 0 in double precision leaves no trace in the word.
    text = text.replace("hmread $lly8 $nowrite; lpassa $lm16v", "lpassa $lm16v")
    (folder / "a.vsm").write_text(text.replace("lpassa", "dmread $ly0 $nowrite; lpassa"))
    assert emu2_command("asm", "a.vsm", "-o", "a.asm", cwd=folder) == (0, "", "")
    assert emu2_command("disasm", "a.asm", cwd=folder) == (0, text, "")


def test_disasm_warns_of_inferred_words_and_refuses_unknown_bits(folder: Path) -> None:
    word = digits("fvadd $lr64v $ls64v $ln0v")
    (folder / "a.asm").write_text(f"i 0{'0'}{word[2:]}\n" * 2)
    code, out, err = emu2_command("disasm", "a.asm", cwd=folder)
    assert (code, out) == (0, "fvadd $lr64v $ls64v $ln0v; noforward\n" * 2)
    assert err.count("warning[W0206]") == 1
    (folder / "a.asm").write_text(f"i 1{word[1:]}\n")
    code, out, err = emu2_command("disasm", "a.asm", cwd=folder)
    assert (code, out) == (1, "")
    assert "a.asm:1:3" in err


# The vendor's tools


def test_assemble_then_run(folder: Path) -> None:
    code, out, err = assemble3("in.vsm", cwd=folder)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line[0] for line in lines] == list("diiissd")
    assert lines[0] == "d set $lm0n0c0b0m0p0 1 4000000000000000"
    assert lines[-2:] == ["s ladd $ln0v $lm0v $lr0v", "d get $lr0n0c0b0m0p0 1"]
    (folder / "out.asm").write_text(out)
    assert gpfn3("-i", "out.asm", "-d", "dump.txt", cwd=folder) == (0, "", "")
    assert (folder / "dump.txt").read_text() == DUMP
    # Without -d the dump goes to stderr, without -i the program comes from stdin.
    assert gpfn3(cwd=folder, stdin=out) == (0, "", DUMP)
    options = ["--offchip-memory-init", "zero", "-i", "out.asm"]
    assert gpfn3(*options, cwd=folder) == (0, "", DUMP)


def test_assemble3_reads_stdin_and_writes_files(folder: Path) -> None:
    _, out, _ = assemble3("in.vsm", cwd=folder)
    assert assemble3(cwd=folder, stdin=PROGRAM) == (0, out, "")
    assert assemble3("in.vsm", "--output-file", "long.asm", cwd=folder) == (0, "", "")
    assert assemble3("in.vsm", "-o", "short.asm", cwd=folder) == (0, "", "")
    assert (folder / "long.asm").read_text() == (folder / "short.asm").read_text() == out
    # A program without steps still gives a file, and no reader takes one without a byte.
    (folder / "none.vsm").write_text("# nothing\n")
    assert assemble3("none.vsm", "-o", "none.asm", cwd=folder) == (0, "", "")
    assert (folder / "none.asm").read_text() == "# no statement\n"


def test_flat_mode_counts_lines(folder: Path) -> None:
    text = PROGRAM + "mvp/n64i01 $d0@0 $lc0@0.0\nnop/3; wait i01\n"
    (folder / "in.vsm").write_text(text)
    code, out, err = assemble3("--instruction-mode", "flat", "in.vsm", cwd=folder)
    assert (code, err) == (0, "")
    assert "".join(line[0] for line in out.splitlines()) == "djjjjjdmjjj"
    (folder / "flat.asm").write_text(out)
    assert gpfn3("-i", "flat.asm", cwd=folder) == (0, "", DUMP)


def test_loader_writes_a_container(folder: Path) -> None:
    code, out, err = assemble3("in.vsm", "-o", "prog", "--loader", cwd=folder)
    assert (code, out) == (0, "")
    assert "boards do not read it" in err
    assert sorted(p.name for p in folder.iterdir()) == ["in.vsm", "prog.idma.dat"]
    assert gpfn3("-i", "prog.idma.dat", cwd=folder) == (0, "", DUMP)
    code, _, err = assemble3("in.vsm", "--loader", cwd=folder)
    assert (code, "--output-file" in err) == (2, True)


def test_memory_files(folder: Path) -> None:
    values = np.arange(64, dtype=np.uint64)
    (folder / "in.bin").write_bytes(values.astype(">u8").tobytes())
    config = {
        "load": [{"region": "pdm0", "file": "in.bin", "offset": 0}],
        "save": [{"region": "dram0", "file": "out.bin", "offset": 0, "length": 512}],
    }
    (folder / "config.json").write_text(json.dumps(config))
    program = "s mvp/n64 $p0@0 $d0@0\n"
    for options in (
        ["-c", "config.json"],
        ["--load-memory-file", "config.json", "--save-memory-file", "config.json", "--dirty"],
    ):
        (folder / "out.bin").unlink(missing_ok=True)
        code, out, _ = gpfn3(*options, cwd=folder, stdin=program)
        assert (code, out) == (0, "")
        assert (np.fromfile(folder / "out.bin", dtype=">u8") == values).all()


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "text"),
    [
        (assemble3, ["missing.vsm"], 1, "error[F0001]"),
        (assemble3, ["bad.vsm"], 1, "bad.vsm:1:1"),
        (assemble3, ["empty.vsm"], 1, "error[F0003]"),
        (assemble3, ["in.vsm", "-o", "no/such/folder/out"], 1, "error[F0005]"),
        (assemble3, ["in.vsm", "-o", "no/such/folder/out", "--loader"], 1, "error[F0005]"),
        (assemble3, ["in.vsm", "--instruction-mode", "round"], 2, "round"),
        (assemble3, ["in.vsm", "--nothing"], 2, "--nothing"),
        (gpfn3, ["-i", "missing.asm"], 1, "error[F0001]"),
        (gpfn3, ["-i", "bad.vsm"], 1, "bad.vsm:1:1"),
        (gpfn3, ["-i", "good.asm", "-d", "no/such/folder/out"], 1, "error[F0005]"),
        (gpfn3, ["-i", "good.asm", "-c", "missing.json"], 1, "error[F0001]"),
        (gpfn3, ["-i", "good.asm", "--offchip-memory-init", "one"], 2, "one"),
        (gpfn3, ["-i", "broken.idma.dat"], 1, "error[W0301]"),
        (gpfn3, ["-i", "good.asm", "--spec", "nowhere"], 1, "error[S0011]"),
    ],
)
def test_bad_input(folder: Path, tool: object, arguments: list[str], code: int, text: str) -> None:
    (folder / "bad.vsm").write_text("lpasa $lm0 $ln0\n")
    (folder / "empty.vsm").write_text("")
    (folder / "good.asm").write_text(f"i {digits('nop')}\n")
    (folder / "broken.idma.dat").write_bytes(b"\x7fEMU2\r\n\x1a")
    status, out, err = tool(*arguments, cwd=folder)  # type: ignore[operator]
    assert (status, out) == (code, "")
    assert text in err
    assert "Traceback" not in err


def test_help(tmp_path: Path) -> None:
    code, out, err = assemble3("--help", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "Usage: assemble3" in out
    code, out, err = gpfn3("--help", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "Usage: gpfn3_package_main" in out


def test_other_names_are_no_tool() -> None:
    from emu2 import words_cli

    assert words_cli.called_as("/usr/bin/emu2") is None


@pytest.mark.parametrize("text", ["# only a comment\n", "\n\n"])
def test_a_program_without_statements_comes_back(tmp_path: Path, text: str) -> None:
    (tmp_path / "empty.vsm").write_text(text)
    code, _, problem = emu2_command("asm", "empty.vsm", "-o", "empty.asm", cwd=tmp_path)
    assert (code, problem) == (0, "")
    assert emu2_command("disasm", "empty.asm", cwd=tmp_path) == (0, "", "")
