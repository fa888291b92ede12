"""Lists in parentheses: the form of placement and structure files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from emu2.link.faults import Fault, LinkError

TOKEN = re.compile(r"\s+|;[^\n]*|(?P<token>[()]|[^\s();]+)")
DEEPEST = 32
"""Lists are nested at most this deep."""


@dataclass(frozen=True)
class Keyword:
    """A word with a colon before it."""

    name: str


Node = int | str | Keyword | list["Node"]


def parse(text: str, file: str) -> list[Node]:
    """Return the one list of a text. Raises LinkError for another form."""

    def bad(message: str, at: int) -> LinkError:
        return LinkError(Fault(message, file=file, line=text.count("\n", 0, at) + 1))

    open_lists: list[list[Node]] = [[]]
    for match in TOKEN.finditer(text):
        token = match["token"]
        if token is None:
            continue
        if token == "(":
            if len(open_lists) > DEEPEST:
                raise bad("the lists are nested too deep", match.start())
            open_lists.append([])
        elif token == ")":
            if len(open_lists) == 1:
                raise bad("this parenthesis closes no list", match.start())
            done = open_lists.pop()
            open_lists[-1].append(done)
        else:
            try:
                open_lists[-1].append(atom(token))
            except ValueError:
                raise bad(f"`{token}` is no number", match.start()) from None
    if len(open_lists) > 1:
        raise bad("a list does not end", len(text))
    match open_lists[0]:
        case [list(whole)]:
            return whole
    raise bad("the file is not one list in parentheses", 0)


def atom(token: str) -> Node:
    """Return the value of a token. Raises ValueError for a malformed number."""
    if token.startswith(":") and len(token) > 1:
        return Keyword(token[1:])
    if token.lower().startswith("#x"):
        return int(token[2:], 16)
    if re.fullmatch(r"[+-]?\d{1,30}", token):
        return int(token)
    if token[0].isdigit():
        raise ValueError(token)
    return token
