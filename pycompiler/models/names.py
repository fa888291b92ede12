"""The names of models on the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib.util import find_spec

from emu2.near import did_you_mean

from ..errors import error
from .catalogue import CATALOGUE, Entry

USAGE = (
    "python -m pycompiler.models [OPTION]... [LIBRARY:MODEL[@SIZE] | MODULE:FUNCTION]..., "
    "`--help` lists the options, `--list` the catalogue"
)

#: The libraries that models come from. The first one is this package.
LIBRARIES = ("own", "torchvision", "timm", "transformers")

_NAME = re.compile(r"([\w.]+):([\w.]+)(?:@(.*))?", re.ASCII)
_SIZE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


def find(name: str) -> Entry:
    """Return the entry of a name: the catalogue's, or one for any other model of a library.

    The part before the colon may also be a Python module; then the other part is a function in
    it. P0007 if the name has no such form, or `own` has no such model.
    """
    form = _NAME.fullmatch(name)
    if form is None:
        raise _wrong(f"`{name}` is no name of a model{like(name)}")
    library, model, size = form.groups()
    if size is not None and not _SIZE.fullmatch(size):
        raise _wrong(f"the size in `{name}` is no whole number of pixels from 1 to 9999")
    known = CATALOGUE.get(f"{library}:{model}")
    if known is None and library == LIBRARIES[0]:
        raise _wrong(f"there is no model `{name}`{like(name)}")
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
        raise _wrong(f"no model fits `--only {only}`")
    return entries


def check_module(entry: Entry) -> None:
    """Refuse a library that is neither one of ours nor a Python module. P0007.

    No module is loaded: that of the user is the work of the model's process.
    """
    if entry.library in LIBRARIES:
        return
    first = entry.library.partition(".")[0]
    try:
        known = find_spec(first) is not None
    except (ImportError, ValueError):  # a name without letters, a module that hides its origin
        known = first in sys.modules
    if not known:
        raise _wrong(
            f"there is no model `{entry.name}`: `{first}` is neither a Python module nor one of "
            f"the libraries {', '.join(LIBRARIES)}{like(entry.name)}"
        )


def like(name: str, known: Iterable[str] = CATALOGUE) -> str:
    """Return a question about the one of the known names that is nearest."""
    near = did_you_mean(name, known).strip()
    return near and f"; {near}"


def _wrong(problem: str) -> Exception:
    return error("P0007", problem=problem, usage=USAGE)
