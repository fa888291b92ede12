"""Writes docs/options.md from the options: ``python -m pycompiler.document_options [FILE]``."""

from __future__ import annotations

from pathlib import Path

from .options import OPTIONS, Option
from .pages import write_page

PAGE = Path(__file__).parent.parent / "docs" / "options.md"
#: What stands before the table.
_TEXT = Path(__file__).with_suffix(".txt")


def page() -> str:
    """Return the text of the page."""
    head = _TEXT.read_text(encoding="utf-8")
    return head + "".join(_row(name, known) for name, known in OPTIONS.items())


def _row(name: str, known: Option) -> str:
    default = "none" if known.optional else f"`{known.default!r}`"
    meaning = known.doc.replace("|", "\\|")
    covered = "yes" if known.decides else "no"
    return f"| `{name}` | {known.legal} | {default} | {meaning} | {covered} |\n"


if __name__ == "__main__":
    write_page(page(), PAGE)
