"""The moves of one pass of a layout switch.

A pass changes digits of one level (words, PEs, MABs, L1Bs or L2Bs) and of Addr. All units of the
other levels do the same. So a pass is a list of moves ``(unit, address) <- (unit, address)``, where
``unit`` is the number of a unit (or word) on its level.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.dtypes import MNDtype
from ...graph.layout import Layout
from ...machine import IntArray


@dataclass(frozen=True, eq=False)
class Moves:
    """``result_at[i]`` of unit ``result[i]`` takes ``source_at[i]`` of unit ``source[i]``."""

    result: IntArray
    result_at: IntArray
    source: IntArray
    source_at: IntArray


@dataclass(frozen=True)
class LayoutChange:
    """A tensor of ``shape`` and ``dtype`` goes from layout ``source`` to layout ``result``."""

    source: Layout
    result: Layout
    shape: tuple[int, ...]
    dtype: MNDtype


class NoPassError(ValueError):
    """The two layouts differ in more than one pass can change."""
