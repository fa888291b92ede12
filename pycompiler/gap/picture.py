"""A picture of a gap: a bar for the program and for each part of it, a colour for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .measure import LINES, SHAPE
from .relaxed import LATENCY, PORTS, RATE, RESULTS, SCRATCH

_COLOURS = {
    "bound": "#9ecae9",
    SHAPE: "#4c78a8",
    "elementwise": "#72b7b2",
    "transfers": "#54a24b",
    "switches": "#88d27a",
    LINES: "#eeca3b",
    PORTS: "#f58518",
    SCRATCH: "#ff9da6",
    RESULTS: "#9d755d",
    RATE: "#e45756",
    LATENCY: "#b279a2",
}
_WIDE, _NAMES, _BAR, _GAP, _TOP = 900, 260, 18, 6, 64


def picture(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return an SVG picture; a piece of a bar shows its step and its cycles when pointed at.

    The first row has a scale of its own: it is the whole, and the others are its parts.
    """
    scales = [_WIDE / (row["cycles"] or 1) for row in rows[:1]]
    scales += [min((_WIDE / (row["cycles"] or 1) for row in rows[1:]), default=1)] * len(rows)
    high = _TOP + len(rows) * (_BAR + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_NAMES + _WIDE + 100}" height="{high}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
    ]
    for place, (step, colour) in enumerate(_COLOURS.items()):
        x = 8 + 110 * place
        parts.append(f'<rect x="{x}" y="30" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="40">{step}</text>')
    for number, row in enumerate(rows):
        y = _TOP + number * (_BAR + _GAP)
        name = escape(row["name"])
        parts.append(f'<text x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">{name}</text>')
        right: float = _NAMES
        for step, colour in _COLOURS.items():
            wide = max(row[step], 0) * scales[number]
            parts.append(
                f'<rect x="{right:.2f}" y="{y}" width="{wide:.2f}" height="{_BAR}" fill="{colour}">'
                f"<title>{name}: {step} {row[step]:,} of {row['cycles']:,} cycles</title></rect>"
            )
            right += wide
        parts.append(f'<text x="{right + 6:.2f}" y="{y + 13}">{row["cycles"]:,}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
