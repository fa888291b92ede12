"""The text of a document, and its places as the protocol and as the assembler count them.

For the protocol a line ends with a line feed, a carriage return or both; for the assembler it ends
with a line feed only. The protocol counts columns in units of an encoding, the assembler in
characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

_LINES = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


class Document:
    """The text of a document; ``units`` gives the length of a text as the protocol counts it."""

    def __init__(self, text: str, version: int | None, units: Callable[[str], int]) -> None:
        """Take the whole text."""
        self._units = units
        self.version = version
        self._take(text)

    def _take(self, text: str) -> None:
        self.text = text
        self._lines = _LINES.split(text)
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._statements = [0, *(found.end() for found in re.finditer("\n", text))]

    def change(
        self, text: str, start: tuple[int, int] | None = None, end: tuple[int, int] | None = None
    ) -> None:
        """Put ``text`` in place of what stands from ``start`` to ``end``, or of everything."""
        if start is None or end is None:
            self._take(text)
            return
        first, last = self._offset(*start), self._offset(*end)
        self._take(self.text[:first] + text + self.text[max(first, last) :])

    def _offset(self, line: int, character: int) -> int:
        row, column = self.place(line, character)
        return self._starts[row] + column

    def line(self, row: int) -> str:
        """Return a line of the protocol, without its end."""
        return self._lines[row].rstrip("\r\n")

    def place(self, line: int, character: int) -> tuple[int, int]:
        """Return line and column in characters of a place; what lies past an end is at the end."""
        row = min(line, len(self._lines) - 1)
        text = self.line(row)
        if row < line:
            return row, len(text)
        column = 0
        while column < len(text) and character > 0:
            character -= self._units(text[column])
            column += 1
        return row, column

    def shown(self, row: int, column: int) -> tuple[int, int]:
        """Return the place of a line of the protocol and a column in characters."""
        return row, self._units(self._lines[row][:column])

    def of_statement(self, line: int, column: int) -> tuple[int, int]:
        """Return the place that the assembler calls ``line`` and ``column``, both from 1."""
        at = min(max(line - 1, 0), len(self._statements) - 1)
        offset = min(self._statements[at] + max(column - 1, 0), len(self.text))
        row = min(bisect_right(self._starts, offset), len(self._lines)) - 1
        return self.shown(row, offset - self._starts[row])
