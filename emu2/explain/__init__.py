"""What `emu2 explain` prints: what a code of a diagnostic means, why it comes, what helps.

Title and remedy of a code stand in the table of the core (`emu2/src/error.rs`); the files beside
this one add its cause and an example that raises it. The compiler has a table of the same form.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Literal

from emu2._core import codes

Language = Literal["asm", "asm_words", "python", "shell", "spec", "words"]

_TABLES = (
    *("assembly.toml", "spec.toml", "words.toml", "running.toml"),
    *("sanitizer.toml", "debugger.toml", "apps.toml"),
)
_INTRODUCTIONS: dict[Language, str] = {
    "asm": "Example, as `emu2 check` sees it",
    "asm_words": "Example, as `emu2 asm` sees it",
    "python": "Example in Python",
    "shell": "Example on the command line",
    "spec": "Example of a machine's file",
    "words": "Example, as `emu2 disasm` sees it",
}

DRAWN = "with names and numbers as examples; yours differ"

PRELUDE = """\
import io
from pathlib import Path
import numpy as np
import emu2

spec = emu2.Spec.load("mncore2")
machine = emu2.Machine(spec)


def written(text):
    sink = io.StringIO()
    emu2.write_asm(emu2.assemble(text, spec), sink, allow_inferred=True)
    return sink.getvalue().split()[1]
"""
"""What the Python examples begin with."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One code.

    Attributes:
        code: the identifier, such as `A0702`.
        title: what is wrong, in one line.
        cause: why it comes.
        remedy: what to do.
        example: a text that raises it; empty where there is none.
        language: what the example is written in.
        none: why there is no example; empty where there is one.
        drawn: title and remedy have names and numbers of a case that was made up.
    """

    code: str
    title: str
    cause: str = ""
    remedy: str = ""
    example: str = ""
    language: Language = "asm"
    none: str = ""
    drawn: bool = False

    def render(self) -> str:
        """Return the entry as commands print it."""
        lines = [f"{self.code}: {self.title}", *([f"({DRAWN})"] if self.drawn else []), ""]
        lines += [f"Cause: {self.cause}", f"Remedy: {self.remedy}"]
        if self.example:
            lines += ["", f"{self.introduction}:", ""]
            lines += [f"    {line}".rstrip() for line in self.example.split("\n")]
        else:
            lines += [f"Example: none. {self.none}"]
        return "\n".join(lines)

    @property
    def introduction(self) -> str:
        """The words before the example."""
        return _INTRODUCTIONS[self.language]


def read_causes(package: str, name: str) -> dict[str, dict[str, Any]]:
    """Return the fields that the file `name` of `package` adds to each code."""
    table = tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
    return {code: _fields(dict(row)) for code, row in table.items()}


def _fields(row: dict[str, str]) -> dict[str, Any]:
    for language in _INTRODUCTIONS:
        if language in row:
            row |= {"example": row.pop(language).strip("\n"), "language": language}
    return row


def entries() -> dict[str, Entry]:
    """Return the entry of every code of emu2."""
    causes: dict[str, dict[str, Any]] = {}
    for name in _TABLES:
        causes |= read_causes(__name__, name)
    for code, title, remedy in codes():
        causes.setdefault(code, {}).update(title=title, remedy=remedy)
    return {code: Entry(code=code, **fields) for code, fields in sorted(causes.items())}


def explain(known: Mapping[str, Entry], code: str, command: str) -> tuple[str, bool]:
    """Return the text for `code`, and whether there is such a code."""
    entry = known.get(code.upper())
    if entry is not None:
        return entry.render(), True
    owner, whose = ("pycompiler", "the compiler") if code[:1] in "Pp" else ("emu2", "emu2")
    if owner != command and re.fullmatch(r"[A-Z]\d{4}", code.upper(), re.ASCII):
        hint = f"`{owner} explain {code.upper()}` explains the codes of {whose}"
        return f"error: `{command}` has no code `{code}`; {hint}", False
    near = ", ".join(get_close_matches(code.upper(), known, n=3, cutoff=0.5))
    hint = f"near it: {near}" if near else f"`{command} explain` lists all"
    return f"error: there is no code `{code}`; {hint}", False


def listing(known: Mapping[str, Entry]) -> str:
    """Return a line for each code."""
    return "\n".join(f"{entry.code}  {entry.title}" for entry in known.values())
