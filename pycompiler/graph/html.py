"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 500


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as HTML; every text is escaped, and rows behind ``MOST_ROWS`` are counted."""
    listed = list(rows)
    top = "".join(f"<th style='text-align:left'>{escape(one)}</th>" for one in head)
    body = "".join(
        "<tr>" + "".join(_cell(str(cell)) for cell in row) + "</tr>" for row in listed[:MOST_ROWS]
    )
    left = len(listed) - MOST_ROWS
    more = f"<p>{left} more rows</p>" if left > 0 else ""
    return (
        f"<div><p>{escape(title)}</p><table><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}</div>"
    )


def _cell(text: str) -> str:
    shown = f"<code>{escape(text)}</code>" if text else ""
    return f"<td style='text-align:left'>{shown}</td>"
