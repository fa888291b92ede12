"""A picture of a sweep: cycles, times the bound, and words moved by level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any

_WIDE, _HIGH, _EDGE, _KEY = 560, 240, 80, 260
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#555555")
Row = Mapping[str, Any]
#: A line of a panel: its name, and its points (place on the axis, and number).
Line = tuple[str, list[tuple[int, float]]]


def picture(rows: Sequence[Row], axes: Sequence[tuple[str, Sequence[int]]], title: str) -> str:
    """Return an SVG picture; ``axes`` are the names of the values with their numbers.

    The axis with the most numbers goes to the right, a step for each of them. Each combination of
    the others has a line. Upwards, all panels are logarithmic.
    """
    name, numbers = max(axes, key=lambda axis: len(axis[1]))
    ok = [row for row in rows if row["status"] == "ok"]
    levels = list(dict.fromkeys(level for row in ok for level in row["words"]))
    panels = [
        ("cycles", _lines(ok, name, numbers, lambda row: row["cycles"])),
        ("times the bound", _lines(ok, name, numbers, lambda row: row["factor"])),
        (
            "long words moved",
            [
                (f"{level}{', ' if own else ''}{own}", points)
                for level in levels
                for own, points in _lines(ok, name, numbers, lambda r, at=level: r["words"].get(at))
            ],
        ),
    ]
    high = len(panels) * (_HIGH + _EDGE)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE + _EDGE + _KEY}" '
        f'height="{high + _EDGE}" font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="white"/><text x="{_EDGE}" y="24">'
        f"{escape(title)}</text>",
    ]
    for place, (what, lines) in enumerate(panels):
        parts += _panel(what, lines, name, numbers, _EDGE // 2 + place * (_HIGH + _EDGE))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lines(rows: Iterable[Row], name: str, numbers: Sequence[int], number: Any) -> list[Line]:
    """Return a line for each combination of the values that are not on the axis."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        others = ", ".join(f"{k}={v}" for k, v in row["values"].items() if k != name)
        value = number(row)
        if value:
            found.setdefault(others, []).append((numbers.index(row["values"][name]), value))
    return [(others, sorted(points)) for others, points in found.items()]


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two: of each power of ten, as many as give two ticks or more."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for firsts in ((1,), (1, 2, 5), range(1, 10), [k / 10 for k in range(10, 100)]):
        found = [round(first * 10.0**power, 9) for power in powers for first in firsts]
        found = [number for number in found if low <= number <= high]
        if len(found) > 1:
            break
    return found


def _panel(
    what: str, lines: Sequence[Line], name: str, numbers: Sequence[int], top: int
) -> list[str]:
    all_values = [value for _, points in lines for _, value in points]
    low, high = (min(all_values) / 1.1, max(all_values) * 1.1) if all_values else (1.0, 10.0)
    bottom = top + _HIGH

    def at(place: int, value: float) -> tuple[float, float]:
        across = place / max(1, len(numbers) - 1)
        return (
            _EDGE + 20 + across * (_WIDE - 40),
            bottom - _HIGH * log10(value / low) / log10(high / low),
        )

    parts = [
        f'<rect x="{_EDGE}" y="{top}" width="{_WIDE}" height="{_HIGH}" fill="none" '
        'stroke="black"/>',
        f'<text x="{_EDGE}" y="{top - 6}">{what}</text>',
        f'<text x="{_EDGE + _WIDE / 2}" y="{bottom + 32}" text-anchor="middle">'
        f"{escape(name)}</text>",
    ]
    for place, number in enumerate(numbers):
        x, _ = at(place, low)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{number:,}</text>')
    for value in _ticks(low, high):
        _, y = at(0, value)
        parts.append(f'<path d="M{_EDGE} {y:.1f}h{_WIDE}" stroke="#ddd"/>')
        parts.append(f'<text x="{_EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.9g}</text>')
    for order, (label, points) in enumerate(lines):
        colour = _COLOURS[order % len(_COLOURS)]
        places = " ".join("{:.1f},{:.1f}".format(*at(*point)) for point in points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}"/>')
        for place, value in points:
            x, y = at(place, value)
            facts = f"{label} {name}={numbers[place]}: {value:,}"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">'
                f"<title>{escape(facts)}</title></circle>"
            )
        if label:
            y = top + 12 + 15 * order
            parts.append(
                f'<text x="{_EDGE + _WIDE + 12}" y="{y}" fill="{colour}">{escape(label)}</text>'
            )
    return parts
