"""Calls the crate ``switches`` to find the passes of a layout switch, and their steps.

The crate knows neither the machine nor Python's layouts. This file converts both to numbers, and
the results to layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emu2 import _core

from ...graph.digits import all_ranges
from ...graph.dtypes import MNDtype
from ...graph.layout import Broadcast, Layout, Level, SubAxis
from ...machine import Target
from .facts import LEVELS, NUMBER, facts
from .pass_moves import LayoutChange, Moves, NoPassError

_Digit = tuple[int, int, int]
_Places = tuple[list[list[_Digit]], list[_Digit]]


class _Switch(NamedTuple):
    """A change in numbers: size, number of the level and stride of each digit."""

    source: _Places
    result: _Places
    shape: tuple[int, ...]


class Pass(NamedTuple):
    """One pass over ``level``, after which the value has ``layout``."""

    level: Level
    layout: Layout
    steps: int


def cheapest_passes(
    change: LayoutChange, target: Target, most: int | None = None
) -> tuple[Pass, ...] | None:
    """Return the cheapest passes, in order.

    None if every chain of passes needs more than LM, or more than ``most`` steps.
    """
    ranges = all_ranges(target.level_range, change.dtype)
    found = _core.plan_passes(_in_numbers(change, ranges), facts(change.dtype, target), most)
    if found is None:
        return None
    return tuple(
        Pass(LEVELS[level], change.result if places is None else _layout(places, ranges), steps)
        for level, places, steps in found
    )


@lru_cache(maxsize=4096)
def moves(change: LayoutChange, level: Level, target: Target) -> Moves:
    """Return the moves of the pass over ``level``; NoPassError if one pass cannot do it."""
    switch = _in_numbers(change, all_ranges(target.level_range, change.dtype))
    found = _core.pass_moves(switch, facts(change.dtype, target), NUMBER[level])
    if found is None:
        raise NoPassError(f"one pass over {level.value} does not do it")
    return Moves(*found)


@lru_cache(maxsize=4096)
def pass_steps(change: LayoutChange, level: Level, target: Target) -> int:
    """Estimate the steps of the pass over ``level``, hazards included.

    NoPassError if one pass cannot do it.
    """
    switch = _in_numbers(change, all_ranges(target.level_range, change.dtype))
    steps = _core.count_pass_steps(switch, facts(change.dtype, target), NUMBER[level])
    if steps is None:
        raise NoPassError(f"one pass over {level.value} does not do it")
    return steps


class Guesses:
    """Guesses of the steps of switches of values with one shape and dtype, without their passes."""

    def __init__(self, shape: tuple[int, ...], dtype: MNDtype, target: Target):
        self._ranges = all_ranges(target.level_range, dtype)
        self._guesses = _core.SwitchGuesses(shape, facts(dtype, target))
        self._numbers: dict[Layout, int] = {}

    def table(self, sources: Sequence[Layout], results: Sequence[Layout]) -> NDArray[np.int64]:
        """Return the steps from each of ``sources`` to each of ``results``, in rows."""
        ours, theirs = ([self._number(one) for one in layouts] for layouts in (sources, results))
        return self._guesses.table(ours, theirs).reshape(len(ours), len(theirs))

    def _number(self, layout: Layout) -> int:
        if layout not in self._numbers:
            self._numbers[layout] = self._guesses.number(_places(layout, self._ranges))
        return self._numbers[layout]


def _in_numbers(change: LayoutChange, ranges: Mapping[Level, int]) -> _Switch:
    source, result = (_places(layout, ranges) for layout in (change.source, change.result))
    return _Switch(source, result, change.shape)


def _places(layout: Layout, ranges: Mapping[Level, int]) -> _Places:
    return [_digits(axis) for axis in layout.axes], _digits(layout.copies(ranges))


def _digits(subs: Sequence[SubAxis]) -> list[_Digit]:
    return [(sub.size, NUMBER[sub.level], sub.stride) for sub in subs]


def _layout(places: _Places, ranges: Mapping[Level, int]) -> Layout:
    axes, copies = places
    entries = []
    for size, number, stride in copies:
        level = LEVELS[number]
        whole = size == ranges[level]
        entries.append(Broadcast(level) if whole else Broadcast(level, size, stride))
    made = ([SubAxis(size, LEVELS[level], stride) for size, level, stride in axis] for axis in axes)
    return Layout(tuple(tuple(axis) for axis in made), tuple(entries))
