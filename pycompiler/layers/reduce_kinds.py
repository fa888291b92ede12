"""The instructions of reductions: how two partial results become one, for each dtype."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..graph.dtypes import MNDtype


@dataclass(frozen=True)
class Joining:
    """The instruction that joins two partial results, and the one that takes the first.

    ``more`` takes a further term to those before, if that is not the instruction that joins. The
    operator ``joins`` combines the results of slices. ``neutral`` is a long word that changes
    no result. ``network`` is the operation of the network that joins those of many MABs, or None.
    """

    slot: str
    join: str
    take: str
    joins: str
    neutral: int
    network: str | None = None
    more: str | None = None


def _both(word: int) -> int:
    """Return a long word of two equal words."""
    return word << 32 | word


def _bounds(name: str, joins: str, truth: Joining, *neutral: int) -> dict[MNDtype, Joining]:
    """Return the instructions of a maximum or minimum in every dtype.

    ``neutral`` has the long words for singles, doubles, and integers with and without signs.
    """
    letters = (
        (MNDtype.FLOAT, "f", neutral[0]),
        (MNDtype.DOUBLE, "d", neutral[1]),
        (MNDtype.INT, "i", _both(neutral[2] >> 32)),
        (MNDtype.LONG, "l", neutral[2]),
        (MNDtype.UINT, "ui", neutral[3]),
        (MNDtype.ULONG, "ul", neutral[3]),
    )
    found = {d: Joining("alu", p + name, "lpassa", joins, n) for d, p, n in letters}
    found[MNDtype.FLOAT] = replace(found[MNDtype.FLOAT], network="f" + name)
    return {**found, MNDtype.SINGLE_BOOL: truth}


_ONES = (1 << 64) - 1
_INFINITY, _WIDE_INFINITY = 0x7F800000, 0x7FF << 52
_SIGN, _WIDE_SIGN = 1 << 31, 1 << 63
SUMS = {
    MNDtype.FLOAT: Joining("mau", "fvadd", "fvpassa", "Add", 0, "ffadd"),
    MNDtype.DOUBLE: Joining("mau", "dvadd", "dvpassa", "Add", 0),
    MNDtype.INT: Joining("alu", "iadd", "lpassa", "Add", 0),
    MNDtype.LONG: Joining("alu", "ladd", "lpassa", "Add", 0),
    MNDtype.ULONG: Joining("alu", "ladd", "lpassa", "Add", 0),
}
#: Terms are products of two numbers.
SUMS_OF_PRODUCTS = {
    MNDtype.FLOAT: Joining("mau", "fvadd", "fvmul", "Add", 0, "ffadd", more="fvfma")
}
MOST = _bounds(
    "max",
    "Max",
    Joining("alu", "lor", "lpassa", "Or", 0),
    _both(_SIGN | _INFINITY),
    _WIDE_SIGN | _WIDE_INFINITY,
    _WIDE_SIGN,
    0,
)
LEAST = _bounds(
    "min",
    "Min",
    Joining("alu", "land", "lpassa", "And", _ONES),
    _both(_INFINITY),
    _WIDE_INFINITY,
    _ONES ^ _WIDE_SIGN,
    _ONES,
)
PRODUCTS = {MNDtype.FLOAT: Joining("mau", "fvmul", "fvpassa", "Mul", _both(0x3F800000))}
