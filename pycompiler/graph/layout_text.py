"""Read layouts from text; the classes of :mod:`pycompiler.graph.layout` print this grammar.

::

    padlayout = "PadLayout{" spec "}" | spec
    spec      = [ shape "/" ] "(" [ axis { "," axis } ] [ ";" bcast ] ")"
    axis      = "(" [ subaxis { "," subaxis } ] ")"
    subaxis   = size [ "_" level ] [ ":" stride ]
    bcast     = "B@[" entry { "," entry } "]"
    entry     = level | size "_" level [ ":" stride ] | "..."
"""

from __future__ import annotations

import re

from ..errors import PycompilerError, error
from .layout import Broadcast, Layout, Level, PadLayout, SubAxis

_TOKEN = re.compile(r"\s*(PadLayout|B@|\.\.\.|\d+|_?[A-Za-z][A-Za-z0-9]*|[(){}\[\],;:/])")
_LEVELS = {level.value: level for level in Level}


class _Reader:
    """A cursor over the tokens of one layout."""

    def __init__(self, text: str):
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.fail(f"`{text[at:].strip()[0]}` is no part of a layout")
            self.tokens.append(match.group(1))
            at = match.end()
        self.at = 0

    def fail(self, reason: str) -> PycompilerError:
        return error("P0201", text=self.text, reason=reason)

    @property
    def head(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str) -> None:
        if self.head != wanted:
            shown = f"`{self.head}`" if self.head else "the end"
            raise self.fail(f"`{wanted}` expected, not {shown}")
        self.at += 1

    def skip(self, token: str) -> bool:
        if self.head == token:
            self.at += 1
            return True
        return False

    def number(self) -> int:
        if not self.head.isdigit():
            raise self.fail(f"a number expected, not `{self.head}`")
        self.at += 1
        return int(self.tokens[self.at - 1])

    def level(self) -> Level:
        name = self.head.removeprefix("_")
        if name not in _LEVELS:
            raise self.fail(f"`{name}` is no level; they are {', '.join(_LEVELS)}")
        self.at += 1
        return _LEVELS[name]

    def stride(self) -> int:
        return self.number() if self.skip(":") else 1

    def subaxis(self) -> SubAxis:
        size = self.number()
        level = self.level() if self.head.startswith("_") else Level.ADDR
        return SubAxis(size, level, self.stride())

    def axis(self) -> tuple[SubAxis, ...]:
        self.take("(")
        subaxes: list[SubAxis] = []
        while not self.skip(")"):
            if subaxes:
                self.take(",")
            subaxes.append(self.subaxis())
        return tuple(subaxes)

    def entry(self) -> Broadcast:
        if self.skip("..."):
            return Broadcast(None)
        if self.head.isdigit():
            size = self.number()
            return Broadcast(self.level(), size, self.stride())
        return Broadcast(self.level())

    def layout(self) -> Layout:
        self.take("(")
        axes: list[tuple[SubAxis, ...]] = []
        broadcast: list[Broadcast] = []
        while self.head not in (")", ";"):
            if axes:
                self.take(",")
            axes.append(self.axis())
        if self.skip(";"):
            self.take("B@")
            self.take("[")
            broadcast.append(self.entry())
            while self.skip(","):
                broadcast.append(self.entry())
            self.take("]")
        self.take(")")
        return Layout(tuple(axes), tuple(broadcast))

    def shape(self) -> tuple[int, ...] | None:
        """Return the shape in front of `/`; if there is none, take no token and return None."""
        start = self.at
        depth = 0
        while self.at < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.head, 0)
            self.at += 1
            if depth == 0:
                break
        inner = self.tokens[start + 1 : self.at - 1]
        if not self.skip("/"):
            self.at = start
            return None
        if not all(token.isdigit() or token == "," for token in inner):
            raise self.fail("the shape in front of `/` must be a list of numbers")
        return tuple(int(token) for token in inner if token != ",")


def parse_pad_layout(text: str) -> PadLayout:
    """Read ``PadLayout{shape/layout}``; wrapper and shape may be absent.

    P0201 if the text is no layout.
    """
    reader = _Reader(text)
    wrapped = reader.skip("PadLayout")
    if wrapped:
        reader.take("{")
    shape = reader.shape()
    layout = reader.layout()
    if wrapped:
        reader.take("}")
    if reader.head:
        raise reader.fail(f"`{reader.head}` after the end")
    if shape is not None and len(shape) != len(layout.axes):
        raise reader.fail(f"the shape has {len(shape)} axes, the layout {len(layout.axes)}")
    return PadLayout(shape, layout)


def parse_layout(text: str) -> Layout:
    """Read a layout, with or without wrapper and shape, and return the layout alone."""
    return parse_pad_layout(text).layout
