"""Layouts: the unit, long word and word that hold each element of a tensor.

A layout gives every axis of a tensor a list of subaxes. The index on an axis splits into
mixed-radix digits, one for each subaxis; the last subaxis runs fastest. A subaxis adds
``digit * stride`` to the coordinate of its level. Levels named in ``broadcast`` hold copies.
Strides of the level ``Addr`` are in long words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import error
from .dtypes import MNDtype
from .html import html_table


class Level(Enum):
    """What a digit selects: a unit, a word in a long word, an address, a slice; outermost first."""

    TIME = "Time"
    L2B = "L2B"
    L1B = "L1B"
    MAB = "MAB"
    PE = "PE"
    ADDR = "Addr"
    W = "W"

    # Planners look layouts up all the time. The hash of an Enum hashes its name at every call, so
    # the hash of the object is used instead.
    __hash__ = object.__hash__


UNIT_LEVELS = (Level.L2B, Level.L1B, Level.MAB, Level.PE)


class SubAxis(NamedTuple):
    """A digit of ``size`` values on ``level``, which lie ``stride`` coordinates apart."""

    size: int
    level: Level = Level.ADDR
    stride: int = 1

    def __str__(self) -> str:
        level = "" if self.level is Level.ADDR else f"_{self.level.value}"
        return f"{self.size}{level}:{self.stride}"


class Broadcast(NamedTuple):
    """An entry of ``B@``: copies on the whole ``level``, or on ``size`` units ``stride`` apart.

    A ``level`` of None stands for ``...``: every unit level that no axis and no other entry uses.
    """

    level: Level | None
    size: int | None = None
    stride: int = 1

    def __str__(self) -> str:
        if self.level is None:
            return "..."
        if self.size is None:
            return self.level.value
        return f"{self.size}_{self.level.value}:{self.stride}"


@dataclass(frozen=True)
class Layout:
    """A layout without the tensor's shape; the docstring of the module explains the fields."""

    axes: tuple[tuple[SubAxis, ...], ...]
    broadcast: tuple[Broadcast, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.broadcast))

    def __reduce__(self) -> tuple[type[Layout], tuple[object, ...]]:
        # The pickle leaves the cached hash out, because hashes differ between processes.
        return Layout, (self.axes, self.broadcast)

    def __str__(self) -> str:
        axes = ", ".join("(" + ", ".join(map(str, axis)) + ")" for axis in self.axes)
        if not self.broadcast:
            return f"({axes})"
        return f"({axes}; B@[{','.join(map(str, self.broadcast))}])"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the digits of each axis by level, outermost level first."""
        levels = [level for level in Level if self.on(level) or self._names(level)]
        rows = [
            (f"axis {number}", prod(sub.size for sub in axis), *_cells(axis, levels))
            for number, axis in enumerate(self.axes)
        ]
        for entry in self.broadcast:
            whole = "all" if entry.size is None else f"{entry.size}:{entry.stride}"
            cells = (whole if level is entry.level else "" for level in levels)
            rows.append(("copies" if entry.level else "copies elsewhere", "", *cells))
        head = ("", "elements", *(level.value for level in levels))
        return html_table(str(self), head, rows)

    @cached_property
    def subaxes(self) -> tuple[SubAxis, ...]:
        """All subaxes of all axes."""
        return tuple(sub for axis in self.axes for sub in axis)

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """Elements per axis, padding included."""
        return tuple(prod(sub.size for sub in axis) for axis in self.axes)

    def on(self, level: Level) -> tuple[SubAxis, ...]:
        """Return the subaxes that use ``level``."""
        return tuple(sub for sub in self.subaxes if sub.level is level)

    def extent(self, level: Level) -> int:
        """Return one more than the largest coordinate that the axes reach on ``level``."""
        return 1 + sum((sub.size - 1) * sub.stride for sub in self.on(level))

    @cached_property
    def address_words(self) -> int:
        """Long words per PE, before rounding up."""
        return prod(sub.size for sub in self.on(Level.ADDR))

    @cached_property
    def slices(self) -> int:
        """The number of time slices."""
        return self.extent(Level.TIME)

    @cached_property
    def slice(self) -> Layout:
        """The layout of one time slice."""
        if not self.on(Level.TIME):
            return self
        axes = (tuple(s for s in axis if s.level is not Level.TIME) for axis in self.axes)
        return Layout(tuple(axes), self.broadcast)

    def num_lw(self, step: int) -> int:
        """Return the long words a value takes per PE, rounded up to a multiple of ``step``."""
        return -(-max(self.address_words, self.extent(Level.ADDR)) // step) * step

    def copies(self, ranges: Mapping[Level, int]) -> tuple[SubAxis, ...]:
        """Return the entries of ``B@`` with sizes; ``ranges`` has the count of each level."""
        out: list[SubAxis] = []
        for entry in self.broadcast:
            if entry.level is None:
                rest = [lv for lv in UNIT_LEVELS if not self.on(lv) and not self._names(lv)]
                out += [SubAxis(ranges[lv], lv) for lv in rest]
            elif entry.size is None:
                out.append(SubAxis(ranges[entry.level], entry.level))
            else:
                out.append(SubAxis(entry.size, entry.level, entry.stride))
        return tuple(out)

    def _names(self, level: Level) -> bool:
        return any(entry.level is level for entry in self.broadcast)

    def coordinates(self, *indices: NDArray[np.int64]) -> dict[Level, NDArray[np.int64]]:
        """Return the coordinates of the elements at ``indices``, one array for each level.

        ``indices`` has one array per axis. The arrays broadcast against each other, and so do the
        results. To find a copy, add the coordinates of :meth:`copies`.
        """
        out: dict[Level, NDArray[np.int64]] = {}
        for axis, index in zip(self.axes, indices, strict=True):
            rest = index
            for sub in reversed(axis):
                digit = (rest % sub.size) * sub.stride
                out[sub.level] = out[sub.level] + digit if sub.level in out else digit
                rest = rest // sub.size
        return out

    def check(
        self, shape: tuple[int, ...], dtype: MNDtype, ranges: Mapping[Level, int], words: int
    ) -> None:
        """Raise P0202 if the layout is illegal for the shape and dtype; ``words`` bounds Addr."""
        problem = self._problem(shape, dtype, ranges, words)
        if problem is not None:
            raise error("P0202", layout=str(self), reason=problem)

    def _problem(
        self, shape: tuple[int, ...], dtype: MNDtype, ranges: Mapping[Level, int], words: int
    ) -> str | None:
        if len(shape) != len(self.axes):
            return f"it has {len(self.axes)} axes, the tensor {len(shape)}"
        for number, (size, padded) in enumerate(zip(shape, self.padded_shape, strict=True)):
            if size > padded:
                return f"axis {number} has {size} elements, its digits reach {padded}"
        if any(sub.size < 1 or sub.stride < 0 for sub in self.subaxes):
            return "sizes must be at least 1 and strides not negative"
        limits = {**ranges, Level.W: dtype.words_per_long, Level.ADDR: words, Level.TIME: words}
        levels: dict[Level, list[SubAxis]] = {}
        for sub in (*self.subaxes, *self.copies(limits)):
            levels.setdefault(sub.level, []).append(sub)
        for level in (Level.TIME, *UNIT_LEVELS, Level.ADDR, Level.W):
            digits = levels.get(level)
            if digits is None:
                continue
            reach = sum((sub.size - 1) * sub.stride for sub in digits)
            if reach >= limits[level]:
                return f"{level.value} reaches {reach}, its coordinates are 0..{limits[level] - 1}"
            below = 1
            for sub in sorted((s for s in digits if s.size > 1), key=lambda s: s.stride):
                if sub.stride < below:
                    return f"two digits of {level.value} reach the same coordinate"
                below = sub.stride * sub.size
        packed = prod(sub.size for sub in self.on(Level.W))
        if packed not in (1, dtype.words_per_long):
            return f"{dtype.value} has {dtype.words_per_long} words in a long word, W has {packed}"
        return None


#: The layouts of values, by their names.
Layouts = Mapping[str, Layout]
#: Layouts of all operands of a node, one way to lay them out after the other.
Ways = Iterator[Layouts]


def _cells(axis: tuple[SubAxis, ...], levels: list[Level]) -> list[str]:
    """Return the digits ``size:stride`` of an axis on each level."""
    return [
        " ".join(f"{sub.size}:{sub.stride}" for sub in axis if sub.level is level)
        for level in levels
    ]


@dataclass(frozen=True)
class PadLayout:
    """A layout with the tensor's own shape, as graph texts print it."""

    shape: tuple[int, ...] | None
    layout: Layout

    def __str__(self) -> str:
        shape = "" if self.shape is None else f"({','.join(map(str, self.shape))})/"
        return f"PadLayout{{{shape}{self.layout}}}"

    def _repr_html_(self) -> str:
        """Return the table of the layout for notebooks."""
        return self.layout._repr_html_()
