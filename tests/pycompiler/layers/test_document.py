"""docs/operators.md agrees with the registry."""

from __future__ import annotations

from pycompiler.layers.operators import LAYERS
from pycompiler.manual.operators import PAGE, page
from pycompiler.pfvm.composites import COMPOSITES


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "stale: run `make manual`"


def test_every_operator_is_on_the_page() -> None:
    rows = {line.split("|")[1].strip() for line in page().splitlines() if line.startswith("| ")}
    assert rows - {"operator"} == {op for op in LAYERS if not op.startswith("MNCore")} | {
        *COMPOSITES
    }
