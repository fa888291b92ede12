"""The warnings of a compile: operators on the host, false shapes, options without effect."""

from __future__ import annotations

import os
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import HostFallbackWarning, LayoutSpecWarning, OptionWarning, ShapeWarning
from .graph.graph import MNGraph, Side
from .report.report import Report

_PACKAGE = str(Path(__file__).parent) + os.sep

#: Bounds of the warning about the host: kinds of operators, characters of a kind, reason and place.
_KINDS, _OPERATOR, _REASON, _PLACE = 8, 60, 160, 120


@contextmanager
def folded_warnings(latest: tuple[type[Warning], ...] = ()) -> Iterator[None]:
    """Show each warning of the body once, at its end, with a count; of ``latest`` kinds the last.

    Filters act when a warning comes: one that is an error is raised there.
    """
    show = warnings.showwarning
    found: dict[tuple[type[Warning], str], tuple[int, tuple[Any, ...]]] = {}

    def keep(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        key = category, "" if category in latest else str(message)
        count, _ = found.get(key, (0, ()))
        found[key] = count + 1, (message, category, *place, *more.values())

    warnings.showwarning = keep
    try:
        yield
    finally:
        if warnings.showwarning is keep:
            warnings.showwarning = show
        for (category, text), (count, (message, _, *place)) in found.items():
            if text and count > 1:
                message = Warning(f"{text} ({count} times)")
            show(message, category, *place)


def warn_of_options(report: Report, ineffective: Sequence[str], renamed: Sequence[str]) -> None:
    """Give a warning about options and arguments that change nothing, and one about old names."""
    told = ("options that change nothing", ineffective), ("options with new names", renamed)
    for what, those in told:
        if those:
            message = f"{what}: {', '.join(those)}"
            report.note(message)
            warnings.warn(message, OptionWarning, stacklevel=_callers_level())


def warn_of_specs(report: Report) -> None:
    """Give one warning about forced layouts that fit no operator, if there are any."""
    unused = report.data["layout_spec_unused"]
    if unused:
        shown = ", ".join(unused[:_KINDS]) + (", ..." if len(unused) > _KINDS else "")
        message = f"forced layouts that fit no operator on the device: {shown}"
        report.note(message)
        warnings.warn(message, LayoutSpecWarning, stacklevel=_callers_level())


def warn_of_shapes(false_hints: Sequence[str]) -> None:
    """Give one warning about declared shapes that are wrong, if there are any."""
    if false_hints:
        shown = "; ".join(false_hints[:_KINDS]) + ("; ..." if len(false_hints) > _KINDS else "")
        message = f"shapes that the model declares and that do not count: {shown}"
        warnings.warn(message, ShapeWarning, stacklevel=_callers_level())


def report_fallback(graph: MNGraph, report: Report) -> None:
    """Write into the report which operators run on the host, and why."""
    report.data["operators"] = len(graph.nodes)
    report.data["host_fallback"] = [
        {"node": node.name, "op": node.op, "reason": node.reason, "source": node.source}
        for node in graph.nodes
        if node.side is Side.HOST
    ]


def warn_of_fallback(report: Report) -> None:
    """Give the one warning about operators that run on the host, if there are any.

    It has one entry for each kind of operator; ``report.json`` has every operator.
    """
    rows = report.data["host_fallback"]
    if rows:
        total = report.data["operators"]
        message = f"{len(rows)} of {total} operators run on the host: {_by_operator(rows)}"
        warnings.warn(message, HostFallbackWarning, stacklevel=_callers_level())


def _by_operator(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return kinds of operators, the most frequent first: count, first reason, first place."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row["op"], []).append(row)
    ordered = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    shown = [_kind(op, found) for op, found in ordered[:_KINDS]]
    if len(ordered) > _KINDS:
        rest = sum(len(found) for _, found in ordered[_KINDS:])
        shown.append(
            f"{rest} of {len(ordered) - _KINDS} other kinds (see host_fallback in report.json)"
        )
    return "; ".join(shown)


def _kind(op: str, rows: Sequence[Mapping[str, Any]]) -> str:
    count = f"{len(rows)} " if len(rows) > 1 else ""
    facts = textwrap.shorten(rows[0]["reason"], _REASON, placeholder="...")
    if any(row["reason"] != rows[0]["reason"] for row in rows):
        facts += ", and other reasons"
    if rows[0]["source"]:
        place = str(rows[0]["source"])
        place = place if len(place) <= _PLACE else f"...{place[-_PLACE:]}"
        facts += f", {'first at ' if count else ''}{place}"
    return f"{count}{op[:_OPERATOR]} ({facts})"


def _callers_level() -> int:
    """Find the ``stacklevel`` at which a warning points at the code that called pycompiler."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
