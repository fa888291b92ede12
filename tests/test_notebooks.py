"""The notebooks of the examples run from their first cell to their last one."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_three_notebooks() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"first_kernel", "first_model", "performance"}


# What the notebook of performance calls, pages and tests of the reports call too.
LONGER = {"performance"}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.long if p.stem in LONGER else ()) for p in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # The files have no outputs, so that they change only with their text.
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    shown = [cell for cell in code if cell.outputs]
    assert len(shown) >= 3
