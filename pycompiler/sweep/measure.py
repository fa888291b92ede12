"""Compiles a model for each machine of a sweep."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx

from ..errors import PycompilerError
from ..executors import Workers
from ..halves_or_singles import compile_cheapest
from ..options import Options
from ..report.report import Report
from ..request import Request
from .values import Point, load_point


def measure(model: bytes, text: str, options: Options) -> dict[str, Any]:
    """Compile a serialized model for the machine of a description; return a row of the sweep.

    ``status`` is ``ok``, or the code and the message of a diagnostic. ``words`` are long words read
    and written by transfers, by memory. Nothing runs on the emulator.
    """
    with tempfile.TemporaryDirectory(prefix="pycompiler-sweep-") as folder:
        report = Report("sweep", {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                target = load_point(text, Path(folder))
                compile_cheapest(Request(onnx.load_from_string(model), target, options, report))
            except PycompilerError as problem:
                reason = problem.fields.get("reason", problem.message)
                return {"status": f"{problem.code}: {reason}"}
    data = report.data
    return {
        "status": "ok",
        "cycles": data["cycles"],
        "steps": data["steps"],
        "microseconds": round(data["cycles"] / target.spec.clock_mhz, 3),
        "bound": data["bound"]["cycles"],
        "factor": data["bound"]["factor"],
        "host_operators": len(data["host_fallback"]),
        "words": {name: sum(moved.values()) for name, moved in data["words"].items()},
    }


def rows(
    model: bytes, points: Sequence[Point], options: Options, workers: Workers
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each point with its row, in the order in which they end."""
    tasks = [(model, point.text, options) for point in points]
    for number, found in workers.run(measure, tasks):
        row = found if isinstance(found, dict) else {"status": _said(found)}
        yield number, {"values": dict(points[number].numbers), **row}


def _said(found: Any) -> str:
    return f"{type(found).__name__}: {found}" if isinstance(found, Exception) else str(found)
