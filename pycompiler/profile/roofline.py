"""A picture of the products of a function below the limits of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from math import log10
from typing import Any

from ..cost.moves import chip_dram_rate
from ..layers.products.roles import PRECISIONS
from ..machine import Target
from ..report.bound import peak

_WIDE, _HIGH, _EDGE = 880, 460, 70
_COLOUR = "#4c78a8"
#: Points that have their names beside them, and the room of a name.
_NAMED, _TEXT, _LINE = 12, 260, 14


def roofline(rows: Iterable[Mapping[str, Any]], target: Target, title: str) -> str:
    """Return an SVG picture: a point for each product among the report's ``nodes``.

    To the right: multiply-adds per long word of operands and result, each counted once. Upwards:
    multiply-adds per cycle. Both axes are logarithmic. The slope is what DRAM could bring if all
    operands came from there; a level line is the MAU's peak in one precision.
    """
    points = [
        (row["multiply_adds"] / row["operand_words"], row["multiply_adds"] / row["cycles"], row)
        for row in rows
        if row.get("multiply_adds") and row["cycles"]
    ]
    peaks = {name: peak(target, name) for name in PRECISIONS}
    slope = chip_dram_rate(target)
    xs = [x for x, _, _ in points] + [level / slope for level in peaks.values()]
    ys = [y for _, y, _ in points] + list(peaks.values())
    axes = _Axes((min(xs) / 2, max(xs) * 4), (min(ys) / 2, max(ys) * 2))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE + 2 * _EDGE}" '
        f'height="{_HIGH + 2 * _EDGE}" viewBox="0 0 {_WIDE + 2 * _EDGE} {_HIGH + 2 * _EDGE}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{_EDGE}" y="24">{escape(title)}</text>',
        *axes.grid(),
    ]
    for name, level in peaks.items():
        knee, end = level / slope, axes.right
        parts.append(axes.line((knee, level), (end, level), "currentColor"))
        x, y = axes.at(end, level)
        label = f"{escape(name.replace('_', ' '))}: {level:,}"
        parts.append(f'<text x="{x:.1f}" y="{y - 5:.1f}" text-anchor="end">{label}</text>')
    highest = max(peaks.values())
    begin, knee_of_all = (axes.left, axes.left * slope), (highest / slope, highest)
    parts.append(axes.line(begin, knee_of_all, "currentColor"))
    named = {id(row) for _, _, row in sorted(points, key=lambda p: -p[2]["cycles"])[:_NAMED]}
    rows_of_text: list[tuple[float, float]] = []
    for x, y, row in sorted(points, key=lambda point: -point[1]):
        left, top = axes.at(x, y)
        if id(row) in named:
            place = _free(left + 9, top + 4, rows_of_text)
            parts.append(f'<text x="{left + 9:.1f}" y="{place:.1f}">{escape(row["node"])}</text>')
        facts = (
            f"{row['node']} ({row['op']}): {row['multiply_adds']:,} multiply-adds, "
            f"{row['cycles']:,} cycles, {y:,.0f} a cycle"
        )
        parts.append(
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="5" fill="{_COLOUR}" fill-opacity="0.7">'
            f"<title>{escape(facts)}</title></circle>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _free(x: float, y: float, taken: list[tuple[float, float]]) -> float:
    """Return a height for a text near ``y`` that no text near it has, and note it."""
    while any(abs(x - left) < _TEXT and abs(y - top) < _LINE for left, top in taken):
        y += 1
    taken.append((x, y))
    return y


class _Axes:
    """Two logarithmic axes."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]):
        self.left, self.right = x
        self._bottom, self._top = y

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point in the picture; points below the axis lie on it."""
        across = log10(x / self.left) / log10(self.right / self.left)
        up = log10(max(y, self._bottom) / self._bottom) / log10(self._top / self._bottom)
        return _EDGE + across * _WIDE, _EDGE + (1 - up) * _HIGH

    def line(self, one: tuple[float, float], other: tuple[float, float], colour: str) -> str:
        """Return a line, cut where it leaves the picture at the bottom."""
        if one[1] < self._bottom:
            one = (one[0] * self._bottom / one[1], self._bottom)
        (x1, y1), (x2, y2) = self.at(*one), self.at(*other)
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'

    def grid(self) -> list[str]:
        """Return the frame, a line for each power of ten, and the names of the axes."""
        parts = [
            f'<rect x="{_EDGE}" y="{_EDGE}" width="{_WIDE}" height="{_HIGH}" fill="none" '
            'stroke="currentColor"/>'
        ]
        for power in range(-6, 13):
            number, label = 10.0**power, f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
            if self.left < number < self.right:
                x, _ = self.at(number, self._bottom)
                parts.append(
                    f'<line x1="{x:.1f}" y1="{_EDGE}" x2="{x:.1f}" y2="{_EDGE + _HIGH}" '
                    f'stroke="#8884"/><text x="{x:.1f}" y="{_EDGE + _HIGH + 18}" '
                    f'text-anchor="middle">{label}</text>'
                )
            if self._bottom < number < self._top:
                _, y = self.at(self.left, number)
                parts.append(
                    f'<line x1="{_EDGE}" y1="{y:.1f}" x2="{_EDGE + _WIDE}" y2="{y:.1f}" '
                    f'stroke="#8884"/><text x="{_EDGE - 6}" y="{y + 4:.1f}" '
                    f'text-anchor="end">{label}</text>'
                )
        middle = _EDGE + _WIDE / 2
        parts.append(
            f'<text x="{middle}" y="{_EDGE + _HIGH + 42}" text-anchor="middle">'
            "multiply-adds per long word of operands and result</text>"
        )
        parts.append(
            f'<text x="18" y="{_EDGE - 12}">multiply-adds per cycle (all of the machine)</text>'
        )
        return parts
