"""Paths of scripts' files."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import error


def path(
    location: str | os.PathLike[str] | None = None, target: str | os.PathLike[str] | None = None
) -> Path:
    """Return ``location`` as a local path, or ``target`` if there is none; ``file://`` is allowed.

    P0605 for other schemes, P0704 for what is no path.
    """
    found = target if location is None else location
    if not isinstance(found, str | os.PathLike):
        raise error("P0704", name="path", value=repr(found), legal="a str or a path")
    text = os.fspath(found)
    scheme, mark, rest = text.partition("://")
    if mark and scheme != "file":
        raise error("P0605", path=text, scheme=scheme)
    return Path(rest if mark else text)
