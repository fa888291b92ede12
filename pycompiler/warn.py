"""What a compilation warns of: operators on the host, layouts that fit nothing."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from .errors import HostFallbackWarning, LayoutSpecWarning
from .graph.graph import MNGraph, Side
from .report.report import Report

_PACKAGE = str(Path(__file__).parent) + os.sep


def warn_of_specs(report: Report) -> None:
    """Give one warning about forced layouts that fit no operator, if there are any."""
    unused = report.data["layout_spec_unused"]
    if unused:
        message = f"forced layouts that fit no operator on the device: {', '.join(unused)}"
        report.note(message)
        warnings.warn(message, LayoutSpecWarning, stacklevel=_callers_level())


def report_fallback(graph: MNGraph, report: Report) -> None:
    """Name the operators that run on the host in the report."""
    report.data["operators"] = len(graph.nodes)
    report.data["host_fallback"] = [
        {"node": node.name, "op": node.op, "reason": node.reason, "source": node.source}
        for node in graph.nodes
        if node.side is Side.HOST
    ]


def warn_of_fallback(report: Report) -> None:
    """Give the one warning about operators that run on the host, if there are any."""
    rows = report.data["host_fallback"]
    if rows:
        shown = "; ".join(
            f"{row['op']} ({row['reason']}{', ' + row['source'] if row['source'] else ''})"
            for row in rows
        )
        total = report.data["operators"]
        message = f"{len(rows)} of {total} operators run on the host: {shown}"
        warnings.warn(message, HostFallbackWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Find the ``stacklevel`` at which a warning points at the code that called pycompiler."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
