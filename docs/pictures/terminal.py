"""Terminals: what commands print, as SVG pictures."""

from __future__ import annotations

import asyncio
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from emu2.debug.commands import Commands, open_session
from emu2.lsp.language import Language

#: As rich draws it, without fonts from a network.
_FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#1d2129"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def drawn(text: Text, columns: int) -> str:
    """Return the picture of a terminal with a text, which may have colours."""
    console = Console(record=True, file=io.StringIO(), width=columns, force_terminal=True)
    console.print(text, soft_wrap=False)
    made = console.export_svg(title="", code_format=_FORMAT, unique_id="terminal")
    return re.sub(r"[ \t]+$", "", made, flags=re.MULTILINE)


def said(command: str, folder: Path, columns: int = 118) -> str:
    """Return the command behind a prompt, and what it prints in ``folder``."""
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(columns)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return f"$ {command}\n{done.stdout.rstrip()}"


def _of(command: str, folder: Path) -> str:
    return drawn(Text.from_ansi(said(command, folder)), 100)


_SUM = "d set $lm0 1 0000000000000005\nladd $lm0 $lm0 $lr0\nnop/2\nd get $lr0n0c0b0m0p0 1\n"
_UNDEFINED = """d set $lm0 1 0000000000000005
nop/2
ladd $lm0 $lr0 $ls0
nop/2
d get $ls0n0c0b0m0p0 1
mvp/n64i01 $p0@0 $d0@0
mvp/n64i02 $d0@0 $p64@0
"""


def sanitizer() -> str:
    """Return findings of a sanitized run."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.vsm").write_text(_UNDEFINED)
        return _of("emu2 run --sanitize program.vsm", Path(folder))


def pytest_report() -> str:
    """Return the report of a program that makes another sum."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = f"# expect: $lr0n0c0b0m0p0 = 0000000000000007\n{_SUM}"
        (Path(folder) / "test_sum.vsm").write_text(wrong)
        right = f"# expect: $lr0n0c0b0m0p0 = 000000000000000A\n{_SUM}"
        (Path(folder) / "test_right.vsm").write_text(right)
        ini = "[pytest]\nemu2_vsm_files = test_*.vsm\nemu2_spec = mini\n"
        (Path(folder) / "pytest.ini").write_text(ini)
        text = said("pytest -q --color=yes", Path(folder), 100)
    text = re.sub(r"in \d+\.\d+s", "in 1.00s", text.replace(folder, "/home/me/kernels"))
    return drawn(Text.from_ansi(text), 100)


_OTHER = """#!{python}
import re
import sys
from emu2.words_cli import run_gpfn3_package_main

names = dict(zip(sys.argv[1::2], sys.argv[2::2]))
try:
    run_gpfn3_package_main()
finally:
    text = open(names["-d"]).read()
    open(names["-d"], "w").write(text.replace("v:0xa)", "v:0xb)").replace("v:0xA)", "v:0xB)"))
"""


def conformance() -> str:
    """Return the comparison with an emulator that makes another sum."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "programs").mkdir()
        (folder / "programs" / "sum.vsm").write_text(_SUM)
        (folder / "programs" / "zero.vsm").write_text("d get $lr0n0c0b0m0p0 1\n")
        other = folder / "board"
        other.write_text(_OTHER.format(python=sys.executable))
        other.chmod(0o755)
        return _of("emu2 conformance programs --other ./board", folder)


_SQUARE = """d set $lm0n0c0b0m0p0 2 3FC000003FC000004000000040000000
d set $ln0n0c0b0m0p0 2 3F8000003F8000003F8000003F800000
fvmul $lm0v $lm0v $lr0v
nop
fvadd $lr0v $lm0v $ls0v
d getf $ls0n0c0b0m0p0 2
"""
_KEYS = ("break line 5", "watch grf0[0:2].f of n0c0b0m0p0", "break write grf1[0:4]", "run", "run")


def debugger() -> str:
    """Return the screen of the debugger, at a watched write."""
    from emu2.debug.terminal import Terminal

    async def drive(path: str) -> str:
        from textual.widgets import Input

        app = Terminal(Commands(open_session(path, "mncore2"), "mncore2"))
        async with app.run_test(size=(128, 38)) as pilot:
            for text in _KEYS:
                app.query_one(Input).value = text
                await pilot.press("enter")
                await pilot.pause(0.5)
            app.query_one(Input).cursor_blink = False
            await pilot.pause(0.2)
            return app.export_screenshot()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "square.vsm"
        path.write_text(_SQUARE)
        made = asyncio.run(drive(str(path)))
    made = re.sub(r"@font-face \{.*?\}\s*", "", made, flags=re.DOTALL)
    made = made.replace("Fira Code", "DejaVu Sans Mono").replace(folder, "/home/me")
    made = re.sub(r"terminal-\d+", "terminal", made)
    return re.sub(r"[ \t]+$", "", made, flags=re.MULTILINE)


_MARKED = """# squares and sums
d set $lm0n0c0b0m0p0 1 3FC0000040000000
fvmull $lm0v $lm0v $lr0v
nop/2
fvadd $lr0v $ln0v $lm0v
fvadd $lm0v $lr0v $ls0v
lpassa $lm0v $lr513v
fvmul $lr0v $lm0v $ls0v
"""


def language_server() -> str:
    """Return what an editor is told about a text: marks, and the page of the last line's word."""
    language = Language("mncore2")
    lines = _MARKED.splitlines()
    # Hazards are found once every line is an instruction.
    marks = [
        one
        for text in (_MARKED, _MARKED.replace("fvmull", "fvmul").replace("$lr513v", "$lr0v"))
        for one in language.diagnostics(text, "square.vsm")
    ]
    found = Text()
    for number, line in enumerate(lines, 1):
        own = [one for one in marks if one["line"] == number]
        found.append("E" if own else " ", "bold red")
        found.append(f"{number:4} ", "bright_black")
        text = Text(line)
        for one in own:
            text.stylize("underline red", one["column"] - 1, one["end_column"] - 1)
        found.append(text)
        if own:
            found.append(f"   {own[0]['code']}: {own[0]['message']}", "red")
        found.append("\n")
    page, word = language.page(lines[-1], 1) or ("", None)
    found.append(f"\nhover: {word.text if word else ''}\n", "bright_black")
    for line in page.splitlines():
        found.append(f"  {line}"[:118] + "\n", "on #2a3140")
    return drawn(found, 120)
