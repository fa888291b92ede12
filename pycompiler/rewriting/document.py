"""Writes docs/compiler/rewrites.md: ``python -m pycompiler.rewriting.document [FILE]``."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path

from ..pages import write_page
from ..pfvm.optimise import OPTIMISATIONS
from ..planners.rewrites import IMPORTED, SIDED, SLICED, TYPED

PAGE = Path(__file__).parent.parent.parent / "docs" / "compiler" / "rewrites.md"

_HEAD = """<!-- Generated from the tables of rewrites by `make manual`; do not edit. -->

# Rewrites

A rewrite replaces a part of a model by another one that computes the same. The tables are in the
order in which they run. They say which rewrites keep all bits, and how results may differ else.

* `pycompiler rewrites MODEL` prints how often each rewrite changes the graph of a model, and how
  many cycles it saves: by how much the estimate of the program grows without it.
* The option `skip_rewrites` leaves rewrites of the graph out by name, but for those that code
  needs. `fuse_elementwise=False` leaves out two of them.
* A compile writes the graph behind each rewrite that changed it to `rewrite.NN.NAME.txt`. The rows
  of the passes in `report.json` count them.
* `graph/rewrite.py` has the patterns, the driver and its bound. A new rewrite is a row of a table
  in `planners/rewrites.py`.

## Of the ONNX model

`pfvm/optimise.py` runs them in place. Operators that become other operators are in
[the list of operators](../operators.md).

| rewrite | what it does | results |
|---|---|---|
"""

_TABLES = {
    "before it is decided what the host runs": IMPORTED,
    "before values have dtypes": SIDED,
    "before values have locations and layouts": TYPED,
    "behind layouts and time slices": SLICED,
}


def page() -> str:
    """Return the text of the page."""
    text = _HEAD
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
