"""Graphs are planned from several starts, and the plan whose program is fastest is taken."""

from __future__ import annotations

from functools import partial

import pytest
from compiling import compiled
from corpus.programs import PROGRAMS

from pycompiler import layout_passes, pipeline
from pycompiler.planners.lpz.known import Known


def cycles_of(name: str) -> int:
    """Return the cycles of a program of the corpus."""
    program = PROGRAMS[name]
    _, report = compiled(program.build(), program.machine, **program.options, compare_float=False)
    found: int = report["cycles"]
    return found


@pytest.mark.parametrize(
    ("name", "apart"),
    [
        ("network/bottleneck/mixed", False),
        pytest.param("network/cnn/mixed", True, marks=pytest.mark.long),
    ],
)
def test_the_cheaper_of_two_starts(name: str, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One family for all regions, first or last: neither is the better one for all graphs."""
    both = cycles_of(name)
    monkeypatch.setattr(layout_passes, "CHEAP", 0)
    first = cycles_of(name)
    monkeypatch.setattr(pipeline, "Known", partial(Known, apart=True))
    last = cycles_of(name)
    assert both == min(first, last)
    assert (last < first) == apart
