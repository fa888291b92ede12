"""When the words of memories above the PEs were last touched, and when ports are free."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from .hazards import Access

#: A unit of a memory: its group and its L2B; None stands for all units.
Unit = tuple[int | None, int | None] | None


class TouchTimes:
    """The last time at which each block of ``granule`` long words was touched; before, -1."""

    def __init__(self, granule: int):
        self._granule = granule
        self._blocks: dict[tuple[str, Unit], dict[int, int]] = {}
        #: By memory and unit: the last touch of any block, and of all blocks.
        self._any: dict[tuple[str, Unit], int] = {}
        self._all: dict[tuple[str, Unit], int] = {}

    def last(self, access: Access, units: Iterable[Unit] = (None,), more: int = 0) -> int:
        """Return the last time at which a block was touched, ``more`` words above ``access``."""
        most = -1
        first = (access.low + more) // self._granule
        end = (access.high + more - 1) // self._granule + 1
        for unit in units:
            key = access.memory, unit
            if access.anywhere:
                most = max(most, self._any.get(key, -1))
                continue
            blocks = self._blocks.get(key)
            most = max(most, self._all.get(key, -1))
            if blocks is not None:
                for block in range(first, end):
                    at = blocks.get(block, -1)
                    if at > most:
                        most = at
        return most

    def note(self, access: Access, at: int, units: Iterable[Unit] = (None,)) -> None:
        """Note that ``access`` touches its blocks at a time."""
        for unit in units:
            key = access.memory, unit
            if self._any.get(key, -1) < at:
                self._any[key] = at
            if access.anywhere:
                self._all[key] = max(at, self._all.get(key, -1))
                continue
            blocks = self._blocks.setdefault(key, {})
            first, last = access.low // self._granule, (access.high - 1) // self._granule
            for block in range(first, last + 1):
                if blocks.get(block, -1) < at:
                    blocks[block] = at


class Port:
    """The cycles in which a memory serves MVs, one at a time."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def free(self, at: int, cycles: int) -> int:
        """Return the first cycle from ``at`` on at which the port is free for ``cycles``."""
        number = bisect_right(self._ends, at)
        while number < len(self._starts) and self._starts[number] < at + cycles:
            at = max(at, self._ends[number])
            number += 1
        return at

    def hold(self, at: int, cycles: int) -> None:
        """Take the port for ``cycles`` from ``at`` on."""
        number = bisect_right(self._starts, at)
        self._starts.insert(number, at)
        self._ends.insert(number, at + cycles)
