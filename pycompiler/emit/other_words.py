"""Gives nodes other words of the memories in which they keep what only they need.

Layers use register files, mask registers, L1BM, L2BM and the PDMs from the first word on. In a
merged program, a line would wait until other nodes have read what its words held before. What a
node puts there is gone when the node ends, so it may use any words. It gets those that are free
first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import lcm

from emu2._core import Access, Timeline

from ..layers.dram_transfer_plan import RING_SHARE
from ..machine import REGISTER_FILES, Target
from .addressed_lines import Lines
from .line_shift import Shift

#: At most how many places are tried in each memory.
_PLACES = 32
#: The unit of places in register files: any access is aligned there.
_REGISTERS = 32
#: The memories that MVs use.
_OF_MOVES = ("l2bm", "pdm")
_BLOCKS = "l1bm"


@dataclass(frozen=True)
class _Room:
    """The words of a memory that nodes may use; addresses differ by multiples of ``unit``."""

    first: int
    end: int
    unit: int


@dataclass
class _Use:
    """What a node uses of a memory: all its words, and each write with the number of its line."""

    low: int
    high: int
    unit: int = 1
    written: dict[tuple[object, ...], tuple[Access, int]] = field(default_factory=dict)


class OtherWords:
    """The choice of words. Words of L2BM stay below ``limit`` if they can.

    With ``masks_stay``, mask registers keep their words: nodes read what others have left there.
    """

    def __init__(self, target: Target, limit: int, *, masks_stay: bool = False):
        masks, cycles = target.masks, target.cycles
        l1bm, unit = target.words(_BLOCKS), lcm(target.mv_unit, target.l2bm_row)
        self._limit = limit
        self._rooms = {
            **{file: _Room(0, target.words(file), _REGISTERS) for file in REGISTER_FILES},
            # The first entry is no register.
            masks["memory"]: _Room(cycles, masks["entries"] * cycles, cycles),
            # The rest is for downloads.
            _BLOCKS: _Room(0, l1bm - l1bm // RING_SHARE, 1),
            **{memory: _Room(0, target.words(memory), unit) for memory in _OF_MOVES},
        }
        if masks_stay:
            del self._rooms[masks["memory"]]

    def of(self, lines: Lines, steps: Timeline, kept: Collection[str] = ()) -> Shift:
        """Return how far the words of a node move in each memory, but for those of ``kept``."""
        used = {memory: use for memory, use in self._used(lines).items() if memory not in kept}
        found = ((memory, self._best(memory, use, steps)) for memory, use in used.items())
        return tuple(sorted((memory, more) for memory, more in found if more))

    def _used(self, lines: Lines) -> dict[str, _Use]:
        out: dict[str, _Use] = {}
        for number, line in enumerate(lines.lines):
            writes = line.writes
            for access in (*line.reads, *writes):
                memory = access.memory
                if memory not in self._rooms:
                    continue
                use = out.setdefault(memory, _Use(access.low, access.high))
                use.low, use.high = min(use.low, access.low), max(use.high, access.high)
                if memory == _BLOCKS:
                    # A block begins at a multiple of its words.
                    use.unit = lcm(use.unit, access.high - access.low)
            for access in writes:
                if access.memory in out:
                    key = access.unit, access.low, access.high, access.cycles
                    out[access.memory].written.setdefault(key, (access, number))
        return out

    def _best(self, memory: str, use: _Use, steps: Timeline) -> int:
        """Return how far words move: the nearest place at which the node can start first."""
        room = self._rooms[memory]
        if use.low < room.first or not use.written:
            return 0
        end = room.end
        if memory == _OF_MOVES[0] and use.high <= self._limit:
            end = min(end, self._limit)
        unit = lcm(room.unit, use.unit)
        each = -(-(room.end - room.first) // (_PLACES * unit)) * unit
        below = (use.low - room.first) // each * each
        places = range(-below, end - use.high + 1, each)
        if len(places) < 2:
            return 0
        written = tuple(use.written.values())
        first = -1 - min(number for _, number in written)  # nothing was touched before
        best, start = 0, None
        for more in sorted(places, key=abs):
            found = _start(written, steps, more, start)
            if found is not None:
                best, start = more, found
            if start == first:
                break
        return best


def _start(
    written: Sequence[tuple[Access, int]], steps: Timeline, more: int, limit: int | None
) -> int | None:
    """Return the step in which the node might start with its words ``more`` higher.

    None if that is not before ``limit``.
    """
    most: int | None = None
    for access, number in written:
        start = steps.last_of(access, more) - number
        if limit is not None and start >= limit:
            return None
        if most is None or start > most:
            most = start
    return most
