"""docs/errors.md from the tables of errors: ``python -m pycompiler.errors.document [FILE]``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import emu2.explain
from emu2.explain import Entry

from ..pages import write_page
from . import explain

PAGE = Path(__file__).parent.parent.parent / "docs" / "errors.md"

_HEAD = """<!-- Generated from the tables of diagnostics by `make manual`; do not edit. -->

# Error codes

Every diagnostic has a code. `emu2 explain A0702` and `pycompiler explain P0305` print the entries
of this page. Codes never change their meaning. Names and numbers in a title are examples.

The tests run each example and check that it raises its code.
"""

_SECTIONS = {
    "S": "the description of a machine",
    "A": "assembly",
    "W": "machine words",
    "F": "files of emu2",
    "R": "running a program",
    "Z": "sanitized runs",
    "H": "the host's side of a device",
    "M": "apps without the compiler",
    "D": "the debugger",
    "B": "internal errors of emu2",
    "P": "the compiler",
}
_FENCES = {"python": "python", "shell": "sh", "spec": "toml"}


def page() -> str:
    """Return the page."""
    known = [*emu2.explain.entries().values(), *explain.entries().values()]
    parts = [_HEAD]
    for letter, title in _SECTIONS.items():
        parts.append(f"\n## {letter}: {title}\n")
        if letter in ("R", "P"):
            parts.append(_prelude(letter))
        parts += _entries(entry for entry in known if entry.code.startswith(letter))
    return "".join(parts)


def _prelude(letter: str) -> str:
    text = explain.PRELUDE if letter == "P" else emu2.explain.PRELUDE
    return f"\nThe Python examples begin with\n\n```python\n{text}```\n"


def _entries(known: Iterable[Entry]) -> Iterable[str]:
    for entry in known:
        yield f"\n### {entry.code}\n\n**{_escape(entry.title)}**\n\n{_escape(entry.cause)}\n\n"
        yield f"Remedy: {_escape(entry.remedy)}.\n\n"
        if entry.example:
            fence = _FENCES.get(entry.language, "text")
            yield f"{entry.introduction}:\n\n```{fence}\n{entry.example}\n```\n"
        else:
            yield f"No example. {entry.none}\n"


def _escape(text: str) -> str:
    """``text`` without characters that Markdown takes for markup, outside of code."""
    pieces = text.split("`")
    plain = [piece.replace("<", "&lt;").replace("*", r"\*") for piece in pieces[::2]]
    pieces[::2] = plain
    return "`".join(pieces)


if __name__ == "__main__":
    write_page(page(), PAGE)
