"""Warnings have a bounded length for every model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from compiling import context

from pycompiler import build
from pycompiler.errors import HostFallbackWarning, LayoutSpecWarning
from pycompiler.report.report import Report
from pycompiler.warn import folded_warnings, warn_of_fallback, warn_of_specs


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


def many(texts: Sequence[str], category: type[Warning]) -> None:
    for text in texts:
        warnings.warn(text, category, stacklevel=1)


@pytest.mark.parametrize("latest", [(), (HostFallbackWarning,)])
def test_repeated_warnings_are_one_with_a_count(latest: tuple[type[Warning], ...]) -> None:
    with warnings.catch_warnings(record=True, action="always") as caught, folded_warnings(latest):
        many(["a", "b", "a", "a"], RuntimeWarning)
        many(["1 on the host", "2 on the host"], HostFallbackWarning)
        assert not caught
    found = [(one.category, str(one.message)) for one in caught]
    hosts = [] if latest else [(HostFallbackWarning, "1 on the host")]
    assert found == [
        (RuntimeWarning, "a (3 times)"),
        (RuntimeWarning, "b"),
        *hosts,
        (HostFallbackWarning, "2 on the host"),
    ]


def test_filters_act_inside_and_failures_lose_nothing() -> None:
    with warnings.catch_warnings(), folded_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(RuntimeWarning):
            many(["a"], RuntimeWarning)

    @folded_warnings()
    def fails() -> None:
        many(["a", "a"], UserWarning)
        raise KeyError

    with warnings.catch_warnings(record=True, action="always") as caught, pytest.raises(KeyError):
        fails()
    assert [str(one.message) for one in caught] == ["a (2 times)"]


def test_a_compile_that_moves_nodes_to_the_host_step_by_step_warns_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def warning(*rest: object) -> object:
        for number in range(3):
            many([f"{number} of 3 operators run on the host"], HostFallbackWarning)
            many(["overflow"], RuntimeWarning)
        return compile_cheapest(*rest)

    compile_cheapest = build.compile_cheapest
    monkeypatch.setattr(build, "compile_cheapest", warning)
    sample, shared = {"x": torch.ones(4)}, context("emu2:mini")
    with warnings.catch_warnings(record=True, action="always") as caught:
        shared.compile(lambda d: {"y": d["x"] + 1.0}, sample, tmp_path / "out")
    assert [str(one.message) for one in caught] == [
        "2 of 3 operators run on the host",
        "overflow (3 times)",
    ]
