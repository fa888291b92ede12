"""The names of models on the command line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ..errors import error
from .catalogue import CATALOGUE, Entry

USAGE = "python -m pycompiler.models [LIBRARY:MODEL[@SIZE] | MODULE:FUNCTION]..."

#: The libraries that models come from. The first one is this package.
LIBRARIES = ("own", "torchvision", "timm", "transformers")

_NAME = re.compile(r"([\w.]+):([\w.]+)(?:@([1-9][0-9]{0,3}))?", re.ASCII)


def find(name: str) -> Entry:
    """Return the entry of a name: the catalogue's, or one for any other model of a library.

    The part before the colon may also be a Python module; then the other part is a function in
    it. P0007 if the name has no such form, or `own` has no such model.
    """
    form = _NAME.fullmatch(name)
    if form is None:
        raise error("P0007", problem=f"`{name}` is no name of a model{_like(name)}", usage=USAGE)
    library, model, size = form.groups()
    known = CATALOGUE.get(f"{library}:{model}")
    if known is None and library == LIBRARIES[0]:
        raise error("P0007", problem=f"there is no model `{name}`{_like(name)}", usage=USAGE)
    entry = known or Entry(library, model)
    return entry if size is None else replace(entry, size=int(size))


def choose(names: Sequence[str], only: str | None) -> list[Entry]:
    """Return the entries of ``names``, or the whole catalogue if there are none.

    ``only`` is a part of a name, in which `*` and `?` stand for any characters. P0007 if nothing
    is left.
    """
    entries = [find(name) for name in names] or list(CATALOGUE.values())
    if only is not None:
        entries = [entry for entry in entries if fnmatchcase(entry.name, f"*{only}*")]
    if not entries:
        raise error("P0007", problem=f"no model fits `--only {only}`", usage=USAGE)
    return entries


def _like(name: str) -> str:
    """Return a question about the name of the catalogue that is nearest."""
    near = difflib.get_close_matches(name, CATALOGUE, 1)
    return f"; did you mean `{near[0]}`?" if near else ""
