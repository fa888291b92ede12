"""The column of ``torch.compile``: its cells, and that it changes nothing else of a page."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

import pycompiler
from pycompiler.models.__main__ import main
from pycompiler.models.catalogue import CATALOGUE, Entry
from pycompiler.models.door_column import DOOR_COMMAND, NOT_RUN, with_column
from pycompiler.models.measure import measure
from pycompiler.models.page import page
from pycompiler.models.row import DOOR, Row

PAGE = Path(pycompiler.__file__).parents[1] / "docs" / "models.md"
GOOD = Row("own:mlp", 1, "float", error=2e-7, matched=True, steps=5, cycles=30)
OTHER = replace(GOOD, name="timm:x")
DOORS = [
    Row("own:mlp", 1, DOOR, matched=True, operators=9, graphs=1, pieces=1),
    Row(
        "timm:x", 1, DOOR, matched=True, operators=9, graphs=2, pieces=3, in_torch={"a": 1, "b": 3}
    ),
]


def column(text: str) -> dict[str, str]:
    """Return the cells of the column by model and batch."""
    section = text.split("## Models in `float`")[1].split("\n## ")[0]
    found = {}
    for part in section.split("\n**")[1:]:
        library, _, rest = part.partition("**")
        head, _, *rows = [line for line in rest.splitlines() if line.startswith("|")]
        assert head.endswith(f"| {DOOR} |")
        for line in rows:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found[f"{library}:{cells[0]} {cells[2]}"] = cells[-1]
    return found


def test_a_page_gets_its_cells() -> None:
    empty = page([GOOD, OTHER, replace(GOOD, mode="mixed")], {})
    assert column(empty) == {"own:mlp 1": NOT_RUN, "timm:x 1": NOT_RUN}
    assert DOOR_COMMAND in empty
    full = with_column(empty, DOORS)
    shown = "matched: 2 graphs, 3 pieces, 4 of 9 operators in torch"
    assert column(full) == {"own:mlp 1": "matched: 1 graph, 1 piece", "timm:x 1": shown}
    counted = f"* Through `{DOOR}`, 2 of 2 match torch, 1 of them as one graph and one piece."
    assert full.splitlines().count(counted) == 1
    assert with_column(full, []) == full  # models that did not run keep their cells
    bad = [replace(DOORS[0], matched=False), replace(DOORS[1], code="time", matched=False)]
    changed = with_column(full, bad)
    assert column(changed) == {"own:mlp 1": "differs", "timm:x 1": "time"}
    assert with_column(changed, DOORS) == full
    assert page([GOOD, OTHER, replace(GOOD, mode="mixed"), *DOORS], {}) == full
    same = [line for line in full.splitlines() if not line.startswith(("|", "* Through"))]
    assert same == [line for line in empty.splitlines() if not line.startswith("|")]
    mixed = full.split("## Models in `mixed`")[1]
    assert mixed == empty.split("## Models in `mixed`")[1]


def test_the_command_changes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rows = tmp_path / "page.md", tmp_path / "rows.json"
    path.write_text(page([GOOD, OTHER], {}))
    rows.write_text(json.dumps([DOORS[0].data()]))
    command = ["own:mlp", "--mode", DOOR, "--json", str(rows), "--keep", "--markdown"]
    assert main([*command, str(path)]) == 0
    assert column(path.read_text()) == {"own:mlp 1": "matched: 1 graph, 1 piece", "timm:x 1": "-"}
    assert main([*command, str(tmp_path / "none.md")]) == 1
    assert "error[P0001]" in capsys.readouterr().err


def test_a_model_goes_through_torch(tmp_path: Path) -> None:
    (row,) = measure(CATALOGUE["own:nbody"], [DOOR], 1, "emu2:mini", tmp_path)
    assert (row.code, row.reason, row.matched) == ("", "", True)
    assert (row.mode, row.graphs, row.pieces, row.in_torch) == (DOOR, 1, 1, {})
    assert row.cycles > 0
    assert row.operators > 3


def test_the_committed_page_has_the_column() -> None:
    text = PAGE.read_text()
    assert with_column(text, []) == text
    cells = column(text)
    assert list(cells) == [f"{n} {b}" for n, entry in CATALOGUE.items() for b in entry.batches]
    assert DOOR_COMMAND in text


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="only in `make test-long`")
@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_the_column_is_true(entry: Entry, tmp_path: Path) -> None:
    cell = column(PAGE.read_text())[f"{entry.name} {entry.batches[0]}"]
    if cell == NOT_RUN:
        pytest.skip("the page says that it was not run")
    (row,) = measure(entry, [DOOR], entry.batches[0], "emu2", tmp_path)
    assert (row.code or ("matched" if row.matched else "differs")) == cell.partition(":")[0]
