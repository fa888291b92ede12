"""Each pass takes work in proportion to the graph: lines of Python are counted, not seconds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of

import pycompiler
from pycompiler.report.report import Report

#: A network of twice as many blocks may take so many times the work.
MOST = 2.3
#: Passes with fewer lines of work are not compared.
FEW = 1000
FOLDER = pycompiler.__path__[0]


def residual_blocks(count: int) -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    nodes: list[tuple[str, list[str], str]] = []
    weights = {}
    before = "x"
    for n in range(count):
        weights[f"w{n}"] = rng.standard_normal((16, 16)).astype(np.float32)
        nodes += [("MatMul", [before, f"w{n}"], f"a{n}"), ("Tanh", [f"a{n}"], f"t{n}")]
        nodes.append(("Add", [f"t{n}", before], f"s{n}"))
        before = f"s{n}"
    return model_of(nodes, {"x": (16, 16)}, [before], weights)


def lines_of_passes(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Compile a model, and count the lines of pycompiler that each pass runs."""
    lines: Counter[str] = Counter()
    passes = [""]

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call" and not frame.f_code.co_filename.startswith(FOLDER):
            return None
        if event == "line":
            lines[passes[-1]] += 1
        return trace

    running = Report.running

    @contextmanager
    def counted(report: Report, name: str) -> Iterator[dict[str, Any]]:
        passes.append(name)
        try:
            with running(report, name) as facts:
                yield facts
        finally:
            passes.pop()

    with monkeypatch.context() as patched:
        patched.setattr(Report, "running", counted)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            compiled(model)
        finally:
            sys.settrace(before)
    return lines


def test_twice_as_many_blocks_take_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (lines_of_passes(residual_blocks(n), monkeypatch) for n in (4, 8))
    assert {"import", "layout", "time_slice", "spill_opt", "emit"} <= small.keys()
    times = {name: large[name] / small[name] for name in small if small[name] > FEW}
    assert max(times.values()) <= MOST, times
