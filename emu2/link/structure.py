"""Structure files (``.stparam``): the shape of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from emu2.link.lists import Keyword, Node
from emu2.link.placement import Reader, shown

BOUNDARIES = ("clamp", "periodic")
IGNORED = ("variables",)
"""Entries of old files without a meaning."""


@dataclass(frozen=True)
class Structure:
    """A structure file. Lists have one number for each dimension."""

    pe_shape: tuple[int, ...]
    data_size: tuple[int, ...] | None
    data_offset: tuple[int, ...] | None
    boundary: tuple[str, ...] | None

    def edges(self, dimension: int) -> tuple[bool, bool]:
        """Return whether the left and the right end are edges of the whole problem."""
        if self.data_size is None or self.data_offset is None or dimension >= len(self.pe_shape):
            return False, False
        offset, size = self.data_offset[dimension], self.data_size[dimension]
        return offset == 0, offset + self.pe_shape[dimension] == size

    def is_periodic(self, dimension: int) -> bool:
        """Return whether the ends of a dimension are neighbours."""
        return self.boundary is not None and self.boundary[dimension : dimension + 1] == (
            "periodic",
        )


def _entries(reader: Reader, text: str) -> dict[str, list[Node]]:
    """Return what each entry gives. Raises LinkError for unknown ones and those given twice."""
    given: dict[str, list[Node]] = {}
    known = ("ndim", "pe_shape", "pe_local", "data_size", "data_offset", "data_layout", "boundary")
    for name, rest in reader.entries(text, "structure"):
        if name in IGNORED:
            continue
        if name not in known:
            raise reader.bad(f"there is no entry `:{name}`")
        if name in given:
            raise reader.bad(f"`:{name}` is given twice")
        # A list may stand in parentheses of its own: `(:pe_shape (64 64))`.
        match rest:
            case [list(inner)]:
                given[name] = inner
            case _:
                given[name] = list(rest)
    return given


def _boundary(reader: Reader, given: list[Node], ndim: int) -> tuple[str, ...]:
    """Return what happens at the ends of each dimension. Raises LinkError for other words."""
    words = [word.name for word in given if isinstance(word, Keyword)]
    if len(words) != ndim or len(given) != ndim or not set(words) <= set(BOUNDARIES):
        raise reader.bad(f"`:boundary` is not {ndim} words, each `:clamp` or `:periodic`")
    return tuple(words)


def read_structure(text: str, file: str, pes: int) -> Structure:
    """Read a structure file for a machine of so many PEs. Raises LinkError."""
    reader = Reader(file, 0)
    given = _entries(reader, text)

    def numbers(name: str, least: int) -> tuple[int, ...] | None:
        if name not in given:
            return None
        values = given[name]
        good = [value for value in values if isinstance(value, int) and value >= least]
        if len(good) != len(values) or len(values) != ndim:
            text = " ".join(map(shown, values))
            raise reader.bad(f"`:{name} ({text})` is not {ndim} numbers from {least} on")
        return tuple(good)

    match given.get("ndim"):
        case [int(ndim)] if ndim in range(1, 4):
            pass
        case None:
            raise reader.bad("`:ndim` is missing")
        case _:
            raise reader.bad("`:ndim` is not 1, 2 or 3")
    shape = numbers("pe_shape", 1)
    if shape is None or numbers("pe_local", 1) is None:
        raise reader.bad("`:pe_shape` or `:pe_local` is missing")
    if prod(shape) != pes:
        raise reader.bad(f"`:pe_shape` has {prod(shape)} PEs, not {pes}")
    match given.get("data_layout", [Keyword("any")]):
        case [Keyword(name="any" | "native")]:
            pass
        case _:
            raise reader.bad("`:data_layout` is neither `:any` nor `:native`")
    boundary = _boundary(reader, given["boundary"], ndim) if "boundary" in given else None
    return Structure(shape, numbers("data_size", 1), numbers("data_offset", 0), boundary)
