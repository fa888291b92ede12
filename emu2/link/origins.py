"""From a line of linked assembly to the line of the source that it comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from emu2.source_text import lines

MARK = "#line"
PATTERN = re.compile(rf'{MARK} (?P<line>\d+)(?P<expanded> expanded)? "(?P<file>.*)"$')


def origins(text: str) -> list[tuple[str, int] | None]:
    """Return the file and line of the source for each line of ``text``; None without one.

    Lines behind a mark come from its line, if it is that of an expanded directive; else the first
    one does, and the others from the lines behind it.
    """
    found: list[tuple[str, int] | None] = []
    place: tuple[str, int] | None = None
    step = 0
    for line in lines(text):
        match = PATTERN.match(line)
        if match:
            place = match["file"], int(match["line"])
            step = 0 if match["expanded"] else 1
            found.append(place)
            continue
        found.append(place)
        if place is not None:
            place = place[0], place[1] + step
    return found


def placing(text: str, name: str) -> Callable[[int], str]:
    """Return a function that gives the place of a line in the source, such as `sum._vsm:3`.

    ``name`` is the file of lines without a mark before them.
    """
    places = origins(text) if MARK in text else []

    def place(line: int) -> str:
        found = places[line - 1] if 0 < line <= len(places) else None
        file, number = found or (name, line)
        return f"{Path(file).name}:{number}"

    return place
