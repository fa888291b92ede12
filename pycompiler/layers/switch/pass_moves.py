"""The moves of one pass of a layout switch.

A pass changes digits of one level (words, PEs, MABs, L1Bs or L2Bs) and of Addr. All units of the
other levels do the same. So a pass is a list of moves ``(unit, address) <- (unit, address)``, where
``unit`` is the number of a unit (or word) on its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...graph.digits import Part, PrimeDigit, all_ranges, copied_digits, segments
from ...graph.dtypes import MNDtype
from ...graph.layout import UNIT_LEVELS, Layout, Level
from ...machine import IntArray, Target


@dataclass(frozen=True, eq=False)
class Moves:
    """``result_at[i]`` of unit ``result[i]`` takes ``source_at[i]`` of unit ``source[i]``.

    The whole list is done ``times`` times, each time at other addresses.
    """

    result: IntArray
    result_at: IntArray
    source: IntArray
    source_at: IntArray
    times: int = 1


@dataclass(frozen=True)
class LayoutChange:
    """A tensor of ``shape`` and ``dtype`` goes from layout ``source`` to layout ``result``."""

    source: Layout
    result: Layout
    shape: tuple[int, ...]
    dtype: MNDtype


class NoPassError(ValueError):
    """The two layouts differ in more than one pass can change."""


class _Dim:
    """The amounts that the values of one digit add to the four coordinates and an axis's index."""

    def __init__(self, size: int, axis: int | None = None, lo: int = 0):
        self.result, self.result_at, self.source, self.source_at = (
            np.zeros(size, dtype=np.int64) for _ in range(4)
        )
        self.axis = axis
        self.index = np.arange(size, dtype=np.int64) * lo

    def put(self, side: str, level: Level, places: IntArray) -> None:
        name = f"{side}_at" if level is Level.ADDR else side
        setattr(self, name, getattr(self, name) + places)


@lru_cache(maxsize=4096)
def moves(change: LayoutChange, level: Level, target: Target) -> Moves:
    """Return the moves of the pass over ``level``; NoPassError if one pass cannot do it."""
    return _combined(_dims(change, level, target), change.shape)


def _dims(change: LayoutChange, level: Level, target: Target) -> list[_Dim]:
    """Return the digits of a pass."""
    source, result, shape = change.source, change.result, change.shape
    ranges = all_ranges(target.level_range, change.dtype)
    open_levels = (level, Level.ADDR)
    for other in (Level.W, *UNIT_LEVELS):
        if other is not level:
            have, want = (copied_digits(x, other, ranges) for x in (source, result))
            if not want <= have:
                raise NoPassError(f"no copies on {other.value}")
    have, want = (copied_digits(x, level, ranges) for x in (source, result))
    dims: list[_Dim] = []
    for segment in segments(source, result, shape):
        if segment.source == segment.result or _matched(segment.source, segment.result):
            pairs = zip(segment.source, segment.result, strict=True)
            digits = (_digit(segment.axis, a, b, have, open_levels) for a, b in pairs)
            dims += [dim for dim in digits if dim is not None]
            continue
        places = (*segment.source, *segment.result)
        if any(part.level not in open_levels for part in places):
            raise NoPassError(f"axis {segment.axis} is cut otherwise")
        dim = _Dim(segment.size, segment.axis, segment.lo)
        index = np.arange(segment.size, dtype=np.int64)
        for side, found in (("source", segment.source), ("result", segment.result)):
            for part in found:
                digit = index // (part.lo // segment.lo) % part.size
                dim.put(side, part.level, digit * part.stride)
        dims.append(dim)
    for stride, size in sorted(want):
        dim = _Dim(size)
        digit = np.arange(size, dtype=np.int64) * stride
        dim.put("result", level, digit)
        if (stride, size) in have:
            dim.put("source", level, digit)
        dims.append(dim)
    return dims


def _matched(ours: tuple[Part, ...], theirs: tuple[Part, ...]) -> bool:
    return [(p.lo, p.size) for p in ours] == [(p.lo, p.size) for p in theirs]


def _digit(
    axis: int, a: Part, b: Part, have: frozenset[PrimeDigit], open_levels: tuple[Level, Level]
) -> _Dim | None:
    if a.level not in open_levels and b.level not in open_levels:
        if (a.level, a.stride) != (b.level, b.stride):
            raise NoPassError(f"a digit goes from {a.level.value} to {b.level.value}")
        return None
    if a.level not in open_levels or b.level not in open_levels:
        raise NoPassError(f"a digit goes from {a.level.value} to {b.level.value}")
    index = np.arange(a.size, dtype=np.int64)
    dim = _Dim(a.size, axis, a.lo)
    dim.put("source", a.level, index * a.stride)
    dim.put("result", b.level, index * b.stride)
    if a.level is Level.ADDR and b.level is not Level.ADDR:
        # The source has copies on these units, so each unit takes the value from its own copy.
        reach = {0}
        for stride, size in have:
            reach = {at + stride * value for at in reach for value in range(size)}
        if all(int(at) in reach for at in index * b.stride):
            dim.put("source", b.level, index * b.stride)
    return dim


def _combined(dims: list[_Dim], shape: tuple[int, ...]) -> Moves:
    def total(arrays: list[IntArray]) -> IntArray:
        out = np.zeros(1, dtype=np.int64)
        for array in arrays:
            out = (out[:, None] + array).reshape(-1)
        return out

    # Digits may reach past the end of an axis. Another element may lie there, so drop such moves.
    inside = np.ones(total([np.zeros_like(dim.index) for dim in dims]).size, dtype=bool)
    for axis, size in enumerate(shape):
        own = [d.index if d.axis == axis else np.zeros_like(d.index) for d in dims]
        inside &= total(own) < size
    return Moves(
        total([dim.result for dim in dims])[inside],
        total([dim.result_at for dim in dims])[inside],
        total([dim.source for dim in dims])[inside],
        total([dim.source_at for dim in dims])[inside],
    )
