"""Lines and comments of assembly, as the assembler sees them.

A line ends with a line feed and with nothing else; `str.splitlines` also ends lines at form feeds
and other characters that may stand in a comment. A carriage return before the line feed is a blank.
"""

from __future__ import annotations

import re

_COMMENT = re.compile("[#!]")
_MARK = "\ufeff"  # some editors write it before the first line


def lines(text: str) -> list[str]:
    """Return the lines of a source without their ends."""
    found = text.removeprefix(_MARK).split("\n")
    if not found[-1]:
        found.pop()
    return [line.removesuffix("\r") for line in found]


def code(line: str) -> str:
    """Return what stands before the comment of a line."""
    return _COMMENT.split(line, maxsplit=1)[0]


def comment(line: str) -> str | None:
    """Return the comment of a line, from its first character on; None if there is none."""
    found = _COMMENT.search(line)
    return None if found is None else line[found.start() :]
