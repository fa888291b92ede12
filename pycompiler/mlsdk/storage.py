"""Paths of scripts' files."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import error


def path(location: str | os.PathLike[str], target: object = None) -> Path:
    """Return ``location`` as a local path; ``file://`` is allowed.

    ``target`` is ignored; some scripts give it. P0605 for other schemes, P0704 if ``location`` is
    not a path.
    """
    if not isinstance(location, str | os.PathLike):
        raise error("P0704", name="path", value=repr(location), legal="a str or a path")
    text = os.fspath(location)
    scheme, found, rest = text.partition("://")
    if found and scheme != "file":
        raise error("P0605", path=text, scheme=scheme)
    return Path(rest if found else text)
