"""A picture of what the device does in a call, from ``trace.json``: cycles to the right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from ..report.cycle_shares import kind_of

#: The processes of ``trace.json`` that are drawn, with the name of their rows.
_ROWS = {"device": "nodes", "MV": "MVs"}
_COLOURS = {
    **{"products": "#4c78a8", "switches": "#e45756", "transfers": "#72b7b2"},
    **{"elementwise": "#eeca3b", "MVs": "#9d9d9d"},
}
_WIDE, _HIGH, _LEFT, _TOP, _BELOW = 900, 18, 60, 8, 62
_TICKS, _LETTER = 8, 7  # wanted ticks of the axis; the width of a letter
#: Rows of each kind, and slices: a picture with more could not be read, nor shown fast.
_MOST_ROWS, _MOST_SLICES = 12, 4000


class Slice(NamedTuple):
    """``name`` on a row from cycle ``start`` on, for ``length`` cycles."""

    row: tuple[str, int]
    name: str
    start: int
    length: int
    source: str

    def later(self, cycles: int) -> Slice:
        """Return the slice in a call that begins ``cycles`` later."""
        return self._replace(start=self.start + cycles)


def slices_of(trace: bytes) -> list[Slice]:
    """Return what the device does by a ``trace.json``; nothing for a text that is none."""
    try:
        events = json.loads(trace)["traceEvents"]
        names = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
        return [
            Slice(
                *((_ROWS[names[one["pid"]]], one["tid"]), one["name"], one["ts"], one["dur"]),
                one["args"].get("source", one["args"].get("node", "")),
            )
            for one in events
            if one["ph"] == "X" and names[one["pid"]] in _ROWS
        ]
    except (ValueError, KeyError, TypeError):
        return []


def time_line(slices: Sequence[Slice], cycles: int, clock_mhz: float) -> str:
    """Return an SVG picture, without scripts; a slice shows its facts when it is pointed at.

    The axis counts cycles, and has microseconds at the clock below them. Of many slices, the
    longest are drawn, and the picture says how many are not.
    """
    drawn = [one for one in slices if one.row[1] < _MOST_ROWS]
    drawn = sorted(drawn, key=lambda one: -one.length)[:_MOST_SLICES]
    rows = {row: at for at, row in enumerate(sorted({one.row for one in drawn}, key=_place))}
    scale, end = _WIDE / max(cycles, 1), _TOP + _HIGH * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE + 2 * _LEFT} {end + _BELOW}" '
        f'width="100%" font-family="sans-serif" font-size="12">'
        '<rect width="100%" height="100%" fill="white"/>'
    ]
    for row, at in rows.items():
        if row[1] == 0:
            y = _TOP + _HIGH * at + 13
            parts.append(f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end">{row[0]}</text>')
    for one in drawn:
        x, wide = _LEFT + one.start * scale, max(one.length * scale, 0.3)
        y = _TOP + _HIGH * rows[one.row]
        about = f"{one.name}: cycles {one.start} to {one.start + one.length}"
        about += f", {one.source}" if one.source else ""
        parts.append(
            f'<rect x="{x:.2f}" y="{y + 1}" width="{wide:.2f}" height="{_HIGH - 2}" '
            f'fill="{_COLOURS[_kind(one)]}"><title>{escape(about)}</title></rect>'
        )
        word = one.name.partition(" ")[0].removeprefix("MNCore")
        if (len(word) + 1) * _LETTER < wide:
            parts.append(f'<text x="{x + 3:.2f}" y="{y + 13}" pointer-events="none">{word}</text>')
    parts += [*_axis(cycles, clock_mhz, end), *_legend(slices, len(slices) - len(drawn), end)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _place(row: tuple[str, int]) -> tuple[int, int]:
    return list(_ROWS.values()).index(row[0]), row[1]


def _kind(one: Slice) -> str:
    return "MVs" if one.row[0] == "MVs" else kind_of(one.name.partition(" ")[0])


def _axis(cycles: int, clock_mhz: float, y: int) -> Iterator[str]:
    """Yield the axis with a round number of cycles at each tick."""
    yield f'<path d="M{_LEFT} {y}h{_WIDE}" stroke="black"/>'
    step = next(
        size
        for power in range(len(str(max(cycles, 1))) + 1)
        for size in (10**power, 2 * 10**power, 5 * 10**power)
        if size * _TICKS >= cycles
    )
    for at in range(0, cycles + 1, step):
        x = _LEFT + at * _WIDE / max(cycles, 1)
        yield f'<path d="M{x:.1f} {y}v5" stroke="black"/>'
        for below, text in ((17, f"{at:,}"), (31, f"{at / clock_mhz:.3g}")):
            yield f'<text x="{x:.1f}" y="{y + below}" text-anchor="middle">{text}</text>'
    for below, text in ((17, "cycles"), (31, "us")):
        yield f'<text x="{_LEFT + _WIDE + 54}" y="{y + below}" text-anchor="end">{text}</text>'


def _legend(slices: Iterable[Slice], left_out: int, y: int) -> Iterator[str]:
    at = _LEFT
    used = {_kind(one) for one in slices}
    for kind, colour in _COLOURS.items():
        if kind in used:
            yield f'<rect x="{at}" y="{y + 42}" width="12" height="12" fill="{colour}"/>'
            yield f'<text x="{at + 17}" y="{y + 53}">{kind}</text>'
            at += 110
    if left_out:
        yield f'<text x="{at}" y="{y + 53}">{left_out} short slices are not drawn</text>'
