"""The code blocks of the pages run unchanged and print the output that the page shows.

On one page, all blocks share a folder and run in order:

* ``python``: the text is run. It must end without an error and print something.
* ``console``: each line after ``$ `` is a command, and the lines after it are its output, with
  ``...`` for any text. Without such lines the output is not compared. A command whose shown
  output has an ``error[``, or a finding of a sanitized run, must fail; the others must succeed.
* ``text output``: what the ``python`` block before it prints, with ``...`` for any text.
* ``text NAME``: the text is written to the file NAME.

Other blocks are for reading only.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Forks

ROOT = Path(__file__).parent.parent
GENERATED = {"operators.md", "options.md", "errors.md", "isa"}
FENCE = re.compile(r"^```(\w*)[ ]?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = {
    "emu2": "-m emu2.cli",
    "pycompiler": "-m pycompiler.command",
    "python": "",
    "assemble3": "-c 'from emu2.words_cli import run_assemble3 as run; run()'",
    "gpfn3_package_main": "-c 'from emu2.words_cli import run_gpfn3_package_main as run; run()'",
}

Block = tuple[str, str, str]
OUTPUT = ("text", "output")


def pages() -> dict[str, list[Block]]:
    """Return the pages that have blocks to run."""
    docs = (ROOT / "docs").rglob("*.md")
    written = [path for path in docs if not GENERATED & {path.name, path.parent.name}]
    found = {}
    for path in [ROOT / "README.md", *sorted(written)]:
        blocks = [block for block in FENCE.findall(path.read_text()) if runs(block)]
        if any(language != "text" for language, _, _ in blocks):
            found[str(path.relative_to(ROOT))] = blocks
    return found


def runs(block: Block) -> bool:
    language, name, _ = block
    return language in ("python", "console") or (language == "text" and name != "")


PAGES = pages()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Provide the commands of an installation, from this checkout."""
    bin = tmp_path / "bin"
    bin.mkdir()
    for name, arguments in COMMANDS.items():
        script = bin / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(0o755)
    path = f"{bin}{os.pathsep}{os.environ['PATH']}"
    # The pages show tables as they are in a pipe: as wide as they need.
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return {**inherited, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


#: Pages whose blocks take seconds. Tests of what they describe do the same.
LONGER = (
    *("docs/training.md", "docs/torch_compile.md", "docs/debugging.md", "docs/mlsdk.md"),
    "docs/hpc.md",
)


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.long if p in LONGER else ()) for p in PAGES]
)
def test_page(page: str, tmp_path: Path, environment: dict[str, str], forks: Forks) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    printed = ""
    for language, name, text in PAGES[page]:
        if (language, name) == OUTPUT:
            assert pattern(text).fullmatch(tidy(printed)), printed
        elif language == "text":
            (folder / name).write_text(text)
        elif language == "python":
            # As `python -c` does it.
            done = forks.text(text, folder=folder, environment=environment, one_stream=True)
            printed = done.stdout
            assert done.returncode == 0, printed
            assert printed
        else:
            for command, shown in sessions(text):
                printed, code = said(command, folder, environment, forks)
                fails = "error[" in shown or "warning[Z" in shown
                assert (code != 0) == fails, f"{command}: {code}\n{printed}"
                if shown:
                    assert pattern(shown).fullmatch(tidy(printed)), f"{command}\n{printed}"


#: What commands of the compiler do, as `python -c` would. They are not started anew, because it
#: takes them seconds to load their libraries.
LOADED = {
    "pycompiler": "import pycompiler.command as c; c.main()",
    "python": "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], {}, '__main__')",
}


def said(command: str, folder: Path, environment: dict[str, str], forks: Forks) -> tuple[str, int]:
    first, *rest = shlex.split(command)
    if first in LOADED and not set(command) & set("|<>&;$`*"):
        fork = forks.text(
            LOADED[first], *rest, folder=folder, environment=environment, one_stream=True
        )
        return fork.stdout, fork.returncode
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout, done.returncode


def sessions(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that is shown."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert parts[0] == "", "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def pattern(shown: str) -> re.Pattern[str]:
    pieces = [re.escape(piece) for piece in tidy(shown).split("...")]
    return re.compile(".*".join(pieces), re.DOTALL)


def tidy(text: str) -> str:
    """Return ``text`` without blanks at the ends of lines and of the whole.

    A slow computer also says how far a compile is.
    """
    lines = (line.rstrip() for line in text.splitlines() if not line.startswith("compiling: "))
    return "\n".join(lines).strip()


def test_the_pages_that_must_run_do() -> None:
    wanted = {
        "README.md",
        "docs/app.md",
        "docs/compiler/overrides.md",
        "docs/debugging.md",
        "docs/host.md",
        "docs/hpc.md",
        "docs/link.md",
        "docs/mlsdk.md",
        "docs/profiling.md",
        "docs/pytest.md",
        "docs/sanitizer.md",
        "docs/tutorial/kernel.md",
        "docs/torch_compile.md",
        "docs/training.md",
        "docs/tutorial/model.md",
    }
    assert set(PAGES) == wanted
    for blocks in PAGES.values():
        kinds = [block[:2] for block in blocks]
        assert all(kinds[at - 1][0] == "python" for at, kind in enumerate(kinds) if kind == OUTPUT)
    tutorials = [page for page in PAGES if "tutorial" in page]
    assert all(sum(kind == "console" for kind, _, _ in PAGES[page]) >= 3 for page in tutorials)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a  \nb\n", True),
        ("a ... c", "a b\nb c", True),
        ("...\nlast", "first\nlast", True),
        ("a", "a b", False),
        ("a.c", "abc", False),
    ],
)
def test_output_is_compared(shown: str, printed: str, same: bool) -> None:
    assert bool(pattern(shown).fullmatch(tidy(printed))) == same
