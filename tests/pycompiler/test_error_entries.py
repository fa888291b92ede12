"""`pycompiler explain` and docs/errors.md: an entry for every code, examples that raise them."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import onnx
import pytest
from compiling import model_of

import emu2.explain
from emu2.explain import DRAWN, Entry
from pycompiler import cli
from pycompiler.errors import TABLE, PycompilerError, document
from pycompiler.errors.explain import PRELUDE, entries
from pycompiler.mlsdk import __main__ as scripts
from pycompiler.models import __main__ as models

ENTRIES = entries()
#: Our commands that examples call as modules.
MODULES = {"pycompiler.mlsdk": scripts.main, "pycompiler.models": models.main}
RUNNABLE = [entry for entry in ENTRIES.values() if entry.example]


def command(*arguments: str) -> str:
    """Run ``pycompiler`` in this process and return its stderr."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        run_main(cli.main, ["pycompiler", *arguments])
    return said.getvalue()


def run_main(main: Callable[[], object], argv: list[str]) -> None:
    before, sys.argv = sys.argv, argv
    try:
        main()
    except SystemExit:
        pass
    finally:
        sys.argv = before


@pytest.mark.parametrize("code", TABLE)
def test_entry(code: str) -> None:
    entry = ENTRIES[code]
    assert entry.cause.endswith("."), "causes.toml has no entry for it"
    for template in (TABLE[code].message, TABLE[code].help):
        assert template.format(**TABLE[code].example) in entry.render()
    assert not re.search(r"\{\w*\}", f"{entry.title} {entry.remedy} {entry.cause}")
    assert (DRAWN in entry.render()) == bool(TABLE[code].example)
    assert bool(entry.example) != bool(entry.none)
    internal = TABLE[code].raises.__name__ == "InternalError"
    assert internal == ("show a bug" in entry.none)


def test_most_codes_have_an_example() -> None:
    without = {code for code, entry in ENTRIES.items() if entry.none}
    bugs = {code for code in without if "show a bug" in ENTRIES[code].none}
    # These need another installation, gigabytes, or a damaged program.
    assert without - bugs == {
        *("P0008", "P0302", "P0304", "P0305", "P0502", "P0504", "P0602", "P0604"),
        *("P0610", "P0611", "P0612", "P0811", "P0812", "P0902"),
    }


@pytest.mark.parametrize("entry", RUNNABLE, ids=[entry.code for entry in RUNNABLE])
@pytest.mark.filterwarnings("ignore::pycompiler.errors.HostFallbackWarning")
def test_example(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = in_python(entry.example) if entry.language == "python" else in_a_shell(entry.example)
    assert f"[{entry.code}]" in said, said


def in_python(example: str) -> str:
    said: list[str] = []
    names = {"command": lambda *arguments: said.append(command(*arguments))}
    try:
        exec(compile(PRELUDE + example, "example.py", "exec"), names)
    except PycompilerError as problem:
        return str(problem)
    return "".join(said)


def in_a_shell(example: str) -> str:
    """Run each line (our own commands in this process) and return their stderr."""
    onnx.save(model_of([("Neg", ["x"], "y")], {"x": (4,)}, ["y"]), "model.onnx")
    said = ""
    for line in example.splitlines():
        first, *rest = line.split()
        if first == "pycompiler":
            said += command(*rest)
        elif rest[:2] in (["-m", module] for module in MODULES):
            caught = io.StringIO()
            with redirect_stderr(caught):
                run_main(MODULES[rest[1]], rest[1:])
            said += caught.getvalue()
        else:
            subprocess.run(["bash", "-c", line], check=True, env=os.environ)
    return said


def test_the_command() -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        run_main(cli.main, ["pycompiler", "explain", "P0305"])
    assert shown.getvalue() == ENTRIES["P0305"].render() + "\n"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("P0999", "P0901"),
        ("zzz", "`pycompiler explain`"),
        ("A0702", "`emu2 explain A0702` explains the codes of emu2"),
    ],
)
def test_an_unknown_code_is_one_line(code: str, hint: str) -> None:
    said = command("explain", code)
    assert said.count("\n") == 1
    assert hint in said


def test_it_loads_no_heavy_library() -> None:
    code = "import sys, pycompiler.command as c; sys.argv[1:] = ['explain', 'P0305']\n"
    code += "try: c.main()\nfinally: print(sorted({'torch', 'onnx'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_diagnostic_names_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = command("compile", "missing.onnx", "-o", "out")
    assert said.splitlines()[-1] == "more: pycompiler explain P0001"


def test_a_traceback_names_it_once() -> None:
    code = "from pycompiler.machine import load_target; load_target('/no/such/machine')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert lines[-1] == "more: pycompiler explain P0606"
    assert lines[-2].startswith("pycompiler.errors.kinds.RunError: [P0606] ")
    assert done.stderr.count("more: ") == 1


def test_every_code_is_on_the_page() -> None:
    """The page once left out the codes of apps, of the debugger and of sanitized runs."""
    shown = set(re.findall(r"^### (\w+)$", document.page(), re.MULTILINE))
    assert shown == {*emu2.explain.entries(), *ENTRIES}


def test_the_page_is_fresh() -> None:
    assert document.PAGE.read_text() == document.page(), "run `make manual`"
