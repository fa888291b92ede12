"""Models of the catalogue: the quick ones in `make test`, and in `make test-long` all of them.

In `make test-long` they run with all their batches, and the page of models must be true: it names
what does not compile or match.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pycompiler
from pycompiler.models.catalogue import CATALOGUE, Entry
from pycompiler.models.measure import measure
from pycompiler.models.names import LIBRARIES
from pycompiler.models.row import MODES

PAGE = Path(pycompiler.__file__).parents[1] / "docs" / "models.md"
QUICK = [entry for entry in CATALOGUE.values() if entry.quick]
#: Quick models of which `make test` has another with the same operators.
ALIKE = (
    *("transformers:BertModel", "transformers:DistilBertModel", "own:residual_mlp"),
    *("own:lenet5", "own:keypoints", "transformers:LlamaModel"),
    *("timm:vit_tiny_patch16_224", "transformers:T5EncoderModel"),
)


def skip_without(entry: Entry) -> None:
    if entry.library in LIBRARIES[1:]:
        pytest.importorskip(entry.library, reason=f"{entry.library} is not installed")


@pytest.mark.parametrize(
    "entry",
    [pytest.param(e, marks=pytest.mark.long if e.name in ALIKE else (), id=e.name) for e in QUICK],
)
def test_quick_model(entry: Entry, tmp_path: Path) -> None:
    skip_without(entry)
    (row,) = measure(entry, ["float"], entry.batches[0], "emu2", tmp_path / "out")
    assert (row.code, row.reason, row.matched) == ("", "", True), row
    assert row.operators > len(row.host)
    assert row.cycles >= row.bound == max(row.mau, row.dram) > 0 or row.host
    assert sum(row.shares.values()) == pytest.approx(1, abs=1e-3)


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="only in `make test-long`")
@pytest.mark.parametrize(
    ("entry", "batch"),
    [
        pytest.param(entry, batch, id=f"{entry.name}-{batch}")
        for entry in CATALOGUE.values()
        for batch in entry.batches
    ],
)
def test_the_page_is_true(entry: Entry, batch: int, tmp_path: Path) -> None:
    skip_without(entry)
    failures = PAGE.read_text().split("## Models that did not compile or match")[1]
    for row in measure(entry, MODES, batch, "emu2", tmp_path / "out"):
        cells = f"| {entry.name} | {batch} | {row.mode} |"
        if row.code or not row.matched:
            result = row.code or "differs"
            assert f"{cells} {result} |" in failures, row
        else:
            assert cells not in failures
