"""The table of numerical programs: a sample of its rows, the texts of all, and its page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hpc import __main__ as command
from hpc.measure import Row, is_right, largest_error, measure
from hpc.programs import PROGRAMS

from pycompiler.errors import error

SAMPLE = {
    "gesummv": "doubles",
    "FFT, one axis": "singles",
    "Coulomb on a grid": "doubles",
    "PageRank by edges": "singles",
    "symmetric eigenvalues": "doubles",
    "numpy: Black-Scholes": "singles",
}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_program_is_right(name: str) -> None:
    row = measure(PROGRAMS[name], SAMPLE[name])
    assert row.result.partition(",")[0] == "right", row
    assert row.cycles
    assert row.factor is None or row.factor >= 1
    assert len(row.cells()) == len(command.COLUMNS)


def test_torch_and_numpy_agree_on_all_programs() -> None:
    """Otherwise a row would blame the compiler."""
    assert len(PROGRAMS) >= 50
    for one in PROGRAMS.values():
        if one.through_compile:
            continue
        arrays = one.arrays(np.float64)
        results = [
            one.function(torch, **{name: torch.from_numpy(a) for name, a in arrays.items()}),
            one.reference(np, **arrays),
        ]
        found, wanted = (
            [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]
            for result in results
        )
        assert is_right(largest_error(found, wanted), 1e-14, np.float64), one.name


def test_what_is_wrong_or_refused_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS["gesummv"]
    monkeypatch.setattr("hpc.measure._compiled", lambda *_: (1.0, None, [np.zeros(251)]))
    assert measure(program, "singles").result == "WRONG, all on the host"

    def refused(*_: object) -> None:
        raise error("P0302", words=1, memory="dram", capacity=0)

    monkeypatch.setattr("hpc.measure._compiled", refused)
    row = measure(program, "doubles")
    assert (row.result, row.cycles) == ("refused P0302", None)
    assert row.reason


def test_the_page_has_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(name: str, result: str, factor: float | None) -> Row:
        return Row(name, "singles", "3", result, 1e-7, 1.0, 1234, factor, "dram", 0.5, 1e-5)

    rows = [row("gemm", "right", 2), row("mvt", "right", 8), row("lu", "WRONG", None)]
    made = {(one.name, one.dtype): one.cells() for one in rows}
    page = command.page_with(f"# Above\n\n{command.MARK}\n\nold\n", made)
    assert page.startswith("# Above\n")
    assert "3 rows: 2 right on the device, 0 right with operators on the host" in page
    assert "0 refused, 1 wrong" in page
    assert "In singles, cycles are 4.0 times the bound" in page
    # Bounds of 617 and 154 cycles; two MVs take 512.
    assert "Over the larger of the bound and 512 cycles, that is 2.2." in page
    assert {key: list(cells) for key, cells in command.rows_of(page).items()} == made
    # A row that is measured again takes the place of its own; the other ones stay.
    file = tmp_path / "hpc.md"
    file.write_text(page)
    monkeypatch.setattr(command, "PAGE", file)
    monkeypatch.setattr(command, "warm", lambda _: None)
    monkeypatch.setattr(command, "measure", lambda *_: row("gemm", "right", 32))
    assert command.main(["gemm", "--write", "--only", "singles"]) == 0
    assert "In singles, cycles are 16.0 times the bound" in file.read_text()
    assert "gemm | singles" in capsys.readouterr().out


def test_the_page_of_the_project_has_all_programs() -> None:
    rows = command.rows_of(command.PAGE.read_text(encoding="utf-8"))
    assert {name for name, _ in rows} == PROGRAMS.keys()
    assert not [key for key, cells in rows.items() if "WRONG" in cells[3]]
