"""`emu2 debug`: its commands through a pipe, its screen under a pilot and in a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import emu2
from emu2.debug.commands import COMMANDS, Commands
from emu2.debug.session import open_session

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "emu2.cli", "debug", "--spec", "mini"]
PROGRAM = """\
d set $lm0n0c0b0m0p0 2 3FC000003FC000004000000040000000
fvmul $lm0v $lm0v $lr0v
nop
fvadd $lr0v $lr0v $ls0v
d getf $ls0n0c0b0m0p0 1
"""

SESSION = [
    ("where", "1: d set $lm0n0c0b0m0p0"),
    ("break line 4 if grf0[0].f of n0c0b0m0p0 > 2", "breakpoint 1: line 4 if"),
    ("watch grf1[0].f of n0c0b0m0p0", "= 0 0"),
    ("run", "breakpoint 1: line 4"),
    ("print lm0[0:2].f of n0c0b0m0p0", "n0c0b0m0p0[1] = 2 2"),
    ("line", "grf1[0].f of n0c0b0m0p0 = 4.5 4.5"),
    ("run", "DEBUG-GREG1(n0c0b0m0p0,0):(4.5, 4.5)"),
    ("info", "position 5 of 5, 3 steps, 12 cycles"),
    ("back 2", "4: fvadd"),
    ("back step", "3: nop"),
    ("reverse", "start"),
    ("break write grf0[0:4]", "breakpoint 2: write"),
    ("run", "breakpoint 2: write to grf0[0] of n0c0b0m0p0"),
    ("breaks", "2: write grf0[0:4]"),
    ("delete 2", ""),
    ("set lm0[1] of n0c0b0m0p0 = 0x10", "= 0x0000000000000010"),
    ("diff 0", "lm0[0] of n0c0b0m0p0: 0x0000000000000000 -> 0x3fc000003fc00000"),
    ("registers", "grf0"),
    ("list", ">     3 nop"),
    ("to line 5", "5: d getf"),
    ("to cycle 4", "3: nop"),
    ("region", "5: d getf"),
    ("unwatch", ""),
    ("help", "run to the next breakpoint"),
]

WRONG = [
    ("fly", "D0004"),
    ("line x", "D0004"),
    ("to", "D0004"),
    ("to moon 3", "D0004"),
    ("to line 99", "D0002"),
    ("to tag zz", "D0004"),
    ("break", "D0003"),
    ("delete 9", "D0003"),
    ("print lm9[0]", "D0001"),
    ("set lm0[0]", "D0004"),
    ("set lm0[0] = x", "D0004"),
    ("set aluf[0] = 1", "D0004"),
    ("set lm0[0].f = 1", "D0004"),
    ("set lm0[0].f[1] of p0 = 1", "D0004"),
    ("diff", "D0004"),
    ("registers q1", "D0001"),
    ("unwatch lm0[0]", "D0004"),
    ("watch 7", "D0001"),
    ("parts /no/such", "F0001"),
]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.vsm"
    path.write_text(PROGRAM)
    return path


def test_every_command_does_what_it_says(program: Path) -> None:
    commands = Commands(open_session(str(program), "mini"), "mini")
    for text, expected in SESSION:
        found = commands.do(text)
        assert expected in found, (text, found)
        assert bool(found) == bool(expected), (text, found)
    used = {text.split()[0] for text, _ in SESSION}
    assert set(COMMANDS) - used == {"step", "parts", "quit"}


def test_parts_names_the_lines(program: Path) -> None:
    other = program.with_name("other.vsm")
    other.write_text(PROGRAM.replace("fvadd $lr0v $lr0v", "nop\nfvadd $lr0v $lm0v"))
    commands = Commands(open_session(str(program), "mini"), "mini")
    assert "the runs part after line 4 here and line 5 there" in commands.do(f"parts {other}")
    assert commands.session.run.line == 5
    assert commands.do("to line 3").endswith(commands.where())
    here = commands.session.run.position
    assert commands.do(f"parts {program}") == "the runs never part"
    assert commands.session.run.position == here


def test_commands_from_a_pipe(program: Path) -> None:
    given = "\n".join(text for text, _ in SESSION) + "\nquit\nfly\n"
    done = subprocess.run(
        [*COMMAND, str(program)], input=given, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    for _, expected in SESSION:
        assert expected in done.stdout
    given = "\n".join(text for text, _ in WRONG)
    done = subprocess.run(
        [*COMMAND, str(program)], input=given, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 1
    codes = [line[6:11] for line in done.stdout.splitlines() if line.startswith("error[")]
    assert codes == [code for _, code in WRONG]


def test_a_file_that_does_not_assemble_is_refused_as_by_run(tmp_path: Path) -> None:
    path = tmp_path / "bad.vsm"
    path.write_text("fvmull $lm0v $lm0v $lr0v\n")
    done = subprocess.run(
        [*COMMAND, str(path)], input="", capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error[A0102]")


def test_a_program_on_stdin_is_refused() -> None:
    done = subprocess.run([*COMMAND, "-"], input="nop\n", capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert "FILE must be a file" in done.stderr


def test_machine_words_are_shown_as_statements(program: Path) -> None:
    spec = emu2.Spec.load("mini")
    assembled = emu2.assemble("lpassa $lr0v $lm0v\nnop/2\nlpassa $lr0v $lm8v\n", spec)
    words, container = program.with_name("kernel.asm"), program.with_name("kernel.idma.dat")
    with words.open("w") as sink:
        emu2.write_asm(assembled, sink)
    container.write_bytes(emu2.pack(assembled))
    for path, line in ((words, 4), (container, 3)):
        commands = Commands(open_session(str(path), "mini"), "mini")
        assert commands.do("where") == "1: lpassa $lr0v $lm0v"
        assert commands.do(f"to line {line}") == f"{line}: lpassa $lr0v $lm8v"


def test_without_textual_the_command_says_how_to_install_it(program: Path) -> None:
    code = (
        "import sys, os, pty\nsys.modules['textual'] = None\n"
        "from emu2.debug.command import show\nshow(None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error[D0006]")
    assert "pip install 'emu2[tools]'" in done.stderr


def test_the_screen_under_a_pilot(program: Path) -> None:
    pytest.importorskip("textual")
    from textual.widgets import Input, RichLog

    from emu2.debug.terminal import Registers, Source, Terminal, Watches

    async def drive() -> None:
        app = Terminal(Commands(open_session(str(program), "mini"), "mini"))
        async with app.run_test(size=(140, 40)) as pilot:

            async def settle() -> None:
                for _ in range(200):
                    await pilot.pause(0.02)
                    if not app._busy:
                        return
                raise AssertionError("the program still runs")

            async def command(text: str) -> None:
                app.query_one(Input).value = text
                await pilot.press("enter")
                await settle()

            source = app.query_one(Source)
            assert "▶     1 d set" in str(source.render())
            for key, line in (("f10", 2), ("f11", 3), ("f9", 2), ("f12", 5), ("f6", 1)):
                await pilot.press(key)
                await settle()
                assert f"▶{line:6}" in str(source.render()), key
            await command("break line 4")
            await command("watch grf0[0].f of n0c0b0m0p0")
            await pilot.press("f5")
            await settle()
            assert "●▶     4 fvadd" in str(source.render())
            watches = str(app.query_one(Watches).render())
            assert "= 2.25 2.25" in watches
            assert "1: line 4" in watches
            assert "4010000040100000" in str(app.query_one(Registers).render())
            await pilot.press("f7")
            await settle()
            assert app.session.run.breakpoints == []
            await command("unit m1")
            assert app.unit == "n0c0b0m1p0"
            await command("view l1bm[0:2] of n0c0b1")
            assert "n0c0b1[1] 0x0000000000000000" in str(app.query_one(Registers).render())
            await command("view lm0[99999]")
            await command("unit z9")
            await command("fly")
            log = "\n".join(line.text for line in app.query_one(RichLog).lines)
            assert "D0001" in log
            assert "D0004" in log
            await command("quit")

    asyncio.run(drive())


def test_the_screen_in_a_pseudo_terminal(program: Path) -> None:
    pytest.importorskip("textual")
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
        os.chdir(ROOT)
        os.execv(sys.executable, [*COMMAND, str(program)])
    seen, keys, deadline = b"", [b"\x1b[21~", b"\x1b[21~", b"\x11"], time.monotonic() + 40
    wanted = [b"line 1,", b"line 2,", b"line 3,"]
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                piece = os.read(terminal, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        if wanted and wanted[0] in seen:
            wanted.pop(0)
            os.write(terminal, keys.pop(0))
    _, status = os.waitpid(child, 0)
    assert (wanted, os.waitstatus_to_exitcode(status)) == ([], 0), seen[-2000:]
