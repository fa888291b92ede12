"""A line is what the assembler says it is, in every tool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import emu2
from emu2.cli import cli
from emu2.debug.session import open_session
from emu2.profiling import profile
from emu2.source_text import code, comment, lines

ROOT = Path(__file__).parents[2]
#: Characters at which `str.splitlines` ends a line, and the assembler does not.
NO_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
#: Files whose texts are no sources: what libraries and the host print.
OTHER_TEXTS = {
    *("pycompiler/models/page.py", "pycompiler/models/door_column.py"),
    "pycompiler/models/processes.py",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_are_those_of_the_assembler(end: str, mark: str) -> None:
    text = mark + end.join(
        [f"# a{NO_ENDS}b", "nop", "! and", "", "linc $lm0 $ln0 # c", "fly ! d", ""]
    )
    assert lines(text)[0] == f"# a{NO_ENDS}b"
    assert lines(text)[1:] == ["nop", "! and", "", "linc $lm0 $ln0 # c", "fly ! d"]
    with pytest.raises(emu2.AssembleError) as caught:
        emu2.assemble(text, emu2.Spec.load("mini"))
    (fault,) = caught.value.diagnostics
    assert (fault["line"], fault["code"]) == (6, "A0102")
    assert lines(text)[fault["line"] - 1].startswith("fly")


def test_comments_begin_with_either_sign() -> None:
    table = [("nop # a ! b", "nop ", "# a ! b"), ("! a # b", "", "! a # b"), ("nop", "nop", None)]
    for line, before, behind in table:
        assert (code(line), comment(line)) == (before, behind)


def test_assembled_text_has_the_same_comments() -> None:
    spec = emu2.Spec.load("mini")
    texts = ("s nop/2 ! a # b\n! c\n", "# a\r\n  s nop/2 # ! b\n", "s nop/2\n")
    plain, *others = (emu2.to_text(emu2.read_asm(text.encode(), spec)) for text in texts[::-1])
    assert others == [plain, plain]


def test_no_tool_splits_sources_as_python_does() -> None:
    found = set()
    for package in ("emu2", "emu2_pytest", "pycompiler"):
        for path in sorted((ROOT / package).rglob("*.py")):
            # The first line of a message is no line of a source.
            if re.search(r"splitlines\(\)(?!\[0\])", path.read_text(encoding="utf-8")):
                found.add(path.relative_to(ROOT).as_posix())
    # Its docstring says why.
    assert found - OTHER_TEXTS == set()
    assert found >= OTHER_TEXTS


def test_the_debugger_and_the_profile_show_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.vsm"
    path.write_bytes(f"# a{NO_ENDS}b\nlinc $lm0 $ln0\r\nnop\nladd $lr0 $lr0 $lr2\n".encode())
    session = open_session(str(path), "mini")
    shown = [session.line_text(number) for number in range(2, 6)]
    assert shown == ["linc $lm0 $ln0", "nop", "ladd $lr0 $lr0 $lr2", ""]
    found = profile(emu2.assemble(path.read_bytes(), emu2.Spec.load("mini")))
    assert {row.line: row.text for row in found.rows["line"]} == {
        2: "linc $lm0 $ln0",
        3: "nop",
        4: "ladd $lr0 $lr0 $lr2",
    }
    arguments = ["debug", "--batch", "--spec", "mini", str(path)]
    said = CliRunner().invoke(cli, arguments, "line\nlist\n")
    assert "3: nop" in said.output
    assert ">     3 nop" in said.output
