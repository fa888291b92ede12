"""Writes docs/options.md from the options: ``python -m pycompiler.document_options [FILE]``."""

from __future__ import annotations

from pathlib import Path

from .options import OPTIONS, Option
from .pages import write_page

PAGE = Path(__file__).parent.parent / "docs" / "options.md"

_HEAD = """<!-- Generated from the table of options by `make manual`; do not edit. -->

# Options of a compile

`Context.compile` takes them as the dict `options`, `pycompiler compile` as `-O KEY=VALUE`. An
unknown key is P0701, a value that is not legal P0702. Variables in `envs` that change nothing, and
options by the names of earlier versions, are accepted with a warning (`OptionWarning`, and a note
in `report.json`), since scripts give them.

The cache key covers every option that can change the result of a compile.

| option | values | default | meaning | in the cache key |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the text of the page."""
    return _HEAD + "".join(_row(name, known) for name, known in OPTIONS.items())


def _row(name: str, known: Option) -> str:
    default = "none" if known.optional else f"`{known.default!r}`"
    meaning = known.doc.replace("|", "\\|")
    covered = "yes" if known.decides else "no"
    return f"| `{name}` | {known.legal} | {default} | {meaning} | {covered} |\n"


if __name__ == "__main__":
    write_page(page(), PAGE)
