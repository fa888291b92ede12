"""Gives each block of data that a node sends through transfer memories words that are free.

Where a line would wait until other lines have read what its words held before, its web (`webs.py`)
lies elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from emu2._core import Access, Ready

from ..layers.dram_transfer_plan import RING_SHARE
from ..machine import Target
from .shifted import MEMORY, raised
from .timeline import Placed, Timeline
from .units import Kind
from .webs import MEMORIES, Web, Webs, webs_of

#: At most how many places are tried for a web.
_PLACES = 64
_BLOCKS = "l1bm"
#: The parts of memories that nodes leave to others. Downloads may run ahead in theirs. A product
#: would fill all of a memory with what it needs later, and transfers beside it would wait.
_PARTS: Mapping[Kind, Mapping[str, int]] = {
    Kind.DOWNLOAD: {},
    Kind.TRANSFER: {_BLOCKS: RING_SHARE, MEMORY: 4},
    Kind.OTHER: {_BLOCKS: 2, MEMORY: 2},
}
#: A node that needs more than this part of a memory at once has no room there to move webs.
_FULL = 2


@dataclass(frozen=True)
class Use:
    """How one node uses transfer memories: the webs of its lines, and where each memory ends."""

    webs: Sequence[Webs]
    ends: Mapping[str, int]

    @property
    def memories(self) -> Collection[str]:
        """The memories in which it has webs."""
        return {web.memory for line in self.webs for one in line for web in one}


class OtherBlocks:
    """The choice of words. Words of L2BM stay below ``limit`` if they can."""

    def __init__(self, target: Target, limit: int):
        self._target, self._limit = target, limit
        row = lcm(target.mv_unit, target.l2bm_row)
        self._granules = {m: target.mv_unit if m == _BLOCKS else row for m in MEMORIES}
        self._words = {memory: target.words(memory) for memory in MEMORIES}
        #: The last step that touches each granule of a memory; before, -1.
        self._last = {m: [-1] * -(-self._words[m] // self._granules[m]) for m in MEMORIES}
        #: How many webs that are in use hold each granule.
        self._held = {memory: [0] * len(last) for memory, last in self._last.items()}
        #: Of the webs in use, how far they moved, and how many of their instructions are left.
        self._shifts: dict[Web, int] = {}
        self._left: dict[Web, int] = {}

    def use(self, lines: Sequence[Ready], kind: Kind) -> Use:
        """Return how a node of a kind uses transfer memories."""
        found = webs_of(lines, self._target)
        # Downloads choose their words of L2BM for all MVs of a chunk.
        memories = {_BLOCKS} if kind is Kind.DOWNLOAD else set(MEMORIES)
        memories -= {m for m, most in _most(found).items() if most * _FULL > self._words[m]}
        webs = [
            tuple(tuple(web for web in one if web.memory in memories) for one in line)
            for line in found
        ]
        parts = _PARTS[kind]
        ends = {m: n - n // parts[m] if m in parts else n for m, n in self._words.items()}
        return Use(webs, ends)

    def of(self, ready: Ready, number: int, use: Use, timeline: Timeline) -> Ready | None:
        """Return line ``number`` of a node with words that are free when it can start.

        None if webs of the node hold so many words that there is no place for another one.
        """
        webs = [web for one in use.webs[number] for web in one]
        for web in webs:
            if web not in self._left:
                start = timeline.steps.soonest(ready)
                more = self._best(web, use.ends[web.memory], start)
                if more is None:
                    more = self._best(web, self._words[web.memory], start)
                if more is None:
                    return None
                self._shifts[web], self._left[web] = more, web.count
                self._hold(web, 1)
        shifts = tuple(
            tuple((web.memory, self._shifts[web]) for web in one if self._shifts[web])
            for one in use.webs[number]
        )
        for web in webs:
            self._left[web] -= 1
            if not self._left[web]:
                self._hold(web, -1)
        return raised(ready, shifts, self._target)

    def _hold(self, web: Web, count: int) -> None:
        more, held = self._shifts[web], self._held[web.memory]
        for number in self._range(web, more):
            held[number] += count

    def _range(self, web: Web, more: int) -> range:
        granule = self._granules[web.memory]
        return range((web.low + more) // granule, -(-(web.high + more) // granule))

    def note(self, placed: Placed) -> None:
        """Note the step in which a line stands or an MV ends."""
        at = max(placed.step, -(-placed.end // self._target.cycles) - 1)
        for access in (*placed.ready.reads, *placed.ready.writes):
            if access.memory in self._last:
                self._touch(access, at)

    def _touch(self, access: Access, at: int) -> None:
        last, granule = self._last[access.memory], self._granules[access.memory]
        end = min(-(-access.high // granule), len(last))
        for number in range(access.low // granule, end):
            if last[number] < at:
                last[number] = at

    def _best(self, web: Web, end: int, start: int) -> int | None:
        """Return how far the words of a web move: the nearest place that is free at ``start``.

        If there is none, the place that is free first. None if webs in use hold all places.
        """
        last, held = self._last[web.memory], self._held[web.memory]
        if web.memory == MEMORY and web.high <= self._limit:
            end = min(end, self._limit)
        unit = lcm(self._granules[web.memory], web.unit)
        each = -(-end // (_PLACES * unit)) * unit
        places = range(-(web.low // each) * each, end - web.high + 1, each)
        best, least = None, None
        for more in sorted(places, key=abs):
            own = self._range(web, more)
            if any(held[own.start : own.stop]):
                continue
            at = max(last[own.start : own.stop])
            if least is None or at < least:
                best, least = more, at
                if at <= start:
                    break
        return best


def _most(webs: Sequence[Webs]) -> Mapping[str, int]:
    """Return the most long words of each memory that webs hold at the same time."""
    left: dict[Web, int] = {}
    held: Counter[str] = Counter()
    most: dict[str, int] = {}
    for line in webs:
        for web in (web for one in line for web in one):
            if web not in left:
                left[web] = web.count
                held[web.memory] += web.high - web.low
                most[web.memory] = max(most.get(web.memory, 0), held[web.memory])
            left[web] -= 1
            if not left[web]:
                held[web.memory] -= web.high - web.low
    return most
