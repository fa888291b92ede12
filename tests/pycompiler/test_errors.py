"""The table of diagnostics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pycompiler
from pycompiler.errors import (
    BUG_EXIT,
    TABLE,
    USAGE_EXIT,
    USER_EXIT,
    PycompilerError,
    SourceLocation,
    error,
    internal,
)

SOURCE = Path(pycompiler.__file__).parent
RAISED = re.compile(r'\berror\(\s*"(P\d{4})"')


def used() -> set[str]:
    files = (path for path in SOURCE.rglob("*.py") if path.parent.name != "errors")
    return {code for path in files for code in RAISED.findall(path.read_text())} | {
        "P0901",
        "P0902",
    }


@pytest.mark.parametrize("code", TABLE)
def test_row(code: str) -> None:
    kind = TABLE[code]
    problem = error(code, place=SourceLocation("model.py", 3, 7), **kind.example)
    assert isinstance(problem, PycompilerError)
    assert type(problem) is kind.raises
    assert problem.code == code
    assert problem.fields == kind.example
    assert problem.exit_code in (USER_EXIT, USAGE_EXIT, BUG_EXIT)
    text = problem.render()
    assert text.startswith(f"error[{code}]: ")
    assert "  --> model.py:3:7\n" in text
    assert "  help: " in text
    assert "{" not in kind.message.format(**kind.example).replace("{'", "")
    for value in kind.example.values():
        assert str(value) in text
    with pytest.raises(KeyError):
        error(code)


def test_every_row_is_raised_and_every_raise_has_a_row() -> None:
    assert used() == set(TABLE)


def test_a_place_may_be_a_file_only() -> None:
    assert str(SourceLocation("a.onnx")) == "a.onnx"
    assert "-->" not in error("P0107", key="dynamo").render()


def test_bugs_say_so() -> None:
    problem = internal(KeyError("x"))
    assert problem.exit_code == BUG_EXIT
    assert "KeyError: 'x'" in problem.message
