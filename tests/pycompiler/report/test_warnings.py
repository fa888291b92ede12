"""Warnings have a bounded length for every model."""

from __future__ import annotations

import pytest

from pycompiler.errors import HostFallbackWarning, LayoutSpecWarning
from pycompiler.report.report import Report
from pycompiler.warn import warn_of_fallback, warn_of_specs


def row(op: str, number: int, reason: str = "no layer for it") -> dict[str, object]:
    source = f"/home/somebody/{'deep/' * 40}model.py:{number}"
    return {"node": f"n{number}", "op": op, "reason": reason, "source": source}


def test_the_host_is_one_entry_for_each_operator() -> None:
    report = Report("emu2", {})
    rows = [row("BatchNormalization", number) for number in range(1, 120)]
    rows += [row("Sin", 500, "no layer for Sin")]
    rows += [row("Pad", 600, "mode reflect"), row("Pad", 601, "mode edge")]
    report.data["host_fallback"], report.data["operators"] = rows, 400
    with pytest.warns(HostFallbackWarning) as caught:
        warn_of_fallback(report)
    (text,) = [str(one.message) for one in caught]
    assert text.startswith("122 of 400 operators run on the host: 119 BatchNormalization (")
    assert text.count("BatchNormalization") == 1
    assert "first at ...deep/" in text
    assert "model.py:1)" in text
    assert "2 Pad (mode reflect, and other reasons, first at" in text
    assert "; Sin (no layer for Sin, ..." in text
    assert len(text) < 1000


def test_the_longest_warnings() -> None:
    report = Report("emu2", {})
    report.data["host_fallback"] = [row(f"Op{n}" + "x" * 300, n, "why " * 300) for n in range(900)]
    report.data["layout_spec_unused"] = [f"entry {n} of spec.json" for n in range(900)]
    with pytest.warns(HostFallbackWarning, match="892 of 892 other kinds") as caught:
        warn_of_fallback(report)
    assert len(str(caught[0].message)) < 4000
    with pytest.warns(LayoutSpecWarning) as caught:
        warn_of_specs(report)
    assert len(str(caught[0].message)) < 400
