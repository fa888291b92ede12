"""A picture of a packing: time to the right, addresses upwards, a colour for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .tensors import ACTIVATION, GRADIENT, WEIGHT_GRADIENT, Tensor
from .uses import Use

_COLOURS = {ACTIVATION: "#4c78a8", GRADIENT: "#f58518", WEIGHT_GRADIENT: "#54a24b"}
_WIDE, _HIGH, _EDGE = 960, 480, 48


def picture(tensors: Sequence[Tensor], use: Use, title: str) -> str:
    """Return an SVG picture; a tensor shows name, kind and size when pointed at."""
    last = max((tensor.end for tensor in tensors), default=1)
    right, up = _WIDE / last, _HIGH / max(use.size, 1)
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE + 2 * _EDGE}" '
        f'height="{_HIGH + 2 * _EDGE}" font-family="sans-serif" font-size="13">',
        f'<text x="{_EDGE}" y="20">{escape(title)}: {use.name}, {use.size:,} bytes</text>',
    ]
    for place, (kind, colour) in enumerate(_COLOURS.items()):
        at, line = _EDGE + 150 * place, _HIGH + 2 * _EDGE - 8
        rows.append(f'<rect x="{at}" y="{line - 11}" width="12" height="12" fill="{colour}"/>')
        rows.append(f'<text x="{at + 18}" y="{line}">{kind}</text>')
    rows.append(f'<text x="{_WIDE - 60}" y="{_HIGH + _EDGE + 18}">time: 0 to {last}</text>')
    for tensor in tensors:
        x, wide = _EDGE + tensor.start * right, (tensor.end - tensor.start) * right
        high = tensor.size * up
        y = _EDGE + _HIGH - use.offsets.get(tensor.name, 0) * up - high
        facts = f"{tensor.name}: {tensor.kind}, {tensor.size:,} bytes"
        rows.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{wide:.2f}" height="{high:.2f}" '
            f'fill="{_COLOURS[tensor.kind]}" stroke="white" stroke-width="0.5">'
            f"<title>{escape(facts)}</title></rect>"
        )
    rows.append(
        f'<rect x="{_EDGE}" y="{_EDGE}" width="{_WIDE}" height="{_HIGH}" fill="none" '
        'stroke="black"/></svg>'
    )
    return "\n".join(rows) + "\n"
