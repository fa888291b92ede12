"""`emu2 explain`: every code has an entry, and every example raises its code."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import emu2
from emu2._core import codes
from emu2.explain import PRELUDE, Entry, entries

ENTRIES = entries()
# The command that the examples call, run from this checkout.
EMU2 = f'emu2() {{ "{sys.executable}" -m emu2.cli "$@"; }}'

#: A name in a template that nobody has filled.
PLACEHOLDER = re.compile(r"\{\w*\}")


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    assert set(ENTRIES) == {code for code, _, _ in codes()} | {"B0001"}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_entry(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert entry.title
    assert entry.remedy
    assert entry.cause.endswith(".")
    assert not PLACEHOLDER.search(f"{entry.title} {entry.remedy} {entry.cause}")
    assert bool(entry.example) != bool(entry.none)
    monkeypatch.chdir(tmp_path)
    if entry.example:
        assert entry.code in raised(entry)


def raised(entry: Entry) -> set[str]:
    """Return the codes that the example of ``entry`` raises."""
    spec = emu2.Spec.load("mncore2")
    if entry.language == "shell":
        Path("good.vsm").write_text("nop\n")
        done = subprocess.run(
            ["bash", "-c", f"{EMU2}\n{entry.example}"], capture_output=True, text=True
        )
        assert done.returncode == 1
        return {done.stderr.partition("[")[2].partition("]")[0]}
    found: list[emu2.Program] = []
    try:
        match entry.language:
            case "asm":
                found.append(emu2.assemble(entry.example, spec, policy="check"))
            case "words":
                found.append(emu2.read_asm(entry.example, spec))
            case "asm_words":
                emu2.write_asm(emu2.assemble(entry.example, spec), io.StringIO())
            case "spec":
                Path("machine.toml").write_text(entry.example)
                emu2.Spec.load("machine.toml")
            case "python":
                *begin, last = entry.example.splitlines()
                names: dict[str, object] = {}
                exec(PRELUDE + "\n".join(begin), names)
                result = eval(last, names)
                found += [result] if isinstance(result, emu2.Program) else []
    except emu2.AssembleError as error:
        return {row["code"] for row in error.diagnostics}
    except emu2.EmulatorError as error:
        return {error.code}
    return {row["code"] for program in found for row in program.warnings}


def emu2_explain(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "emu2.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command() -> None:
    done = emu2_explain("explain", "a0702")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ENTRIES["A0702"].render() + "\n"
    listed = emu2_explain("explain").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(ENTRIES)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("A0799", "A0706"),
        ("zzz", "`emu2 explain`"),
        ("pzzz", "`emu2 explain`"),
        ("", "`emu2 explain`"),
        ("P0305", "`pycompiler explain P0305` explains the codes of the compiler"),
        ("p0305", "`pycompiler explain P0305` explains the codes of the compiler"),
    ],
)
def test_an_unknown_code_is_one_line(code: str, hint: str) -> None:
    done = emu2_explain("explain", code)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert hint in line


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("run", "linq $lm0 $ln0\nnop\nlinc $lm1 $ln0\n", "A0102"),
        ("run", "nop; wait i40\n", "A0408"),
        ("check", "lpassa $lm0v $t\nlpassa $t $ls0v\n", "A0702"),
    ],
)
def test_diagnostics_name_it_once(tmp_path: Path, command: str, text: str, code: str) -> None:
    path = tmp_path / "program.vsm"
    path.write_text(text)
    done = emu2_explain(command, str(path))
    assert done.stderr.splitlines()[-1] == f"more: emu2 explain {code}"
    assert done.stderr.count("emu2 explain") == 1
