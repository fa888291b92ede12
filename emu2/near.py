"""The question after the name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a question about the known name that is nearest, with a blank behind it; or nothing.

    A remedy of a diagnostic begins with it.
    """
    near = get_close_matches(str(name), list(known), 1)
    return f"did you mean `{near[0]}`? " if near else ""
