"""Writes docs/compiler/rewrites.md: ``python -m pycompiler.rewriting.document [FILE]``."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path

from ..pages import write_page
from ..pfvm.optimise import OPTIMISATIONS
from ..planners.rewrites import IMPORTED, SIDED, SLICED, TYPED

PAGE = Path(__file__).parent.parent.parent / "docs" / "compiler" / "rewrites.md"

#: What stands before the tables.
_TEXT = Path(__file__).with_suffix(".txt")
_TABLES = {
    "before it is decided what the host runs": IMPORTED,
    "before values have dtypes": SIDED,
    "before values have locations and layouts": TYPED,
    "behind layouts and time slices": SLICED,
}


def page() -> str:
    """Return the text of the page."""
    text = _TEXT.read_text(encoding="utf-8")
    for one in OPTIMISATIONS:
        text += _row(one.run.__name__, one.run.__doc__ or "", one.rounding)
    for title, rows in _TABLES.items():
        text += (
            f"\n## Of the graph, {title}\n\n| rewrite | what it does | results |\n|---|---|---|\n"
        )
        for row in rows:
            text += _row(
                row.name, row.text(), row.rounding or "same bits" + "; code needs it" * row.needed
            )
    return text


def _row(name: str, text: str, rounding: str) -> str:
    first = cleandoc(text).partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return f"| `{name}` | {first} | {rounding or 'same bits'} |\n"


if __name__ == "__main__":
    write_page(page(), PAGE)
