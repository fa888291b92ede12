"""The cycle model while a program is written: when MVs end, and how long waits stall."""

from __future__ import annotations

from heapq import heappop, heappush

from ..code.lines import Move
from ..cost.moves import move_cost
from ..machine import Target

#: Why a `wait` stalls: the MV waits for a port, its words move, or they are on their way.
STALLS = ("queue", "transfer", "latency")


class Clock:
    """Follows a program in issue order; all times are cycles."""

    def __init__(self, target: Target):
        self._target = target
        self._stalls = 0
        #: The cycles of all stalls, by reason.
        self.stalls = dict.fromkeys(STALLS, 0)
        #: When each MV starts and when it has released its memories, by tag.
        self._held: dict[int, tuple[int, int]] = {}
        #: When each memory is free for the next MV.
        self._free: dict[str, int] = {}
        #: When the MVs end that no line has waited for, by tag; and the same by time.
        self._ends: dict[int, int] = {}
        self._by_end: list[tuple[int, int]] = []

    def now(self, steps: int) -> int:
        """Return the cycle in which the step after ``steps`` steps begins."""
        return self._target.cycles * steps + self._stalls

    def issue(self, tag: int, move: Move, steps: int) -> tuple[int, int]:
        """Note an MV; return when it starts and when it ends."""
        cost = move_cost(move, self._target)
        start = max((self._free.get(port, 0) for port in cost.ports), default=0)
        start = max(start, self.now(steps))
        for port in cost.ports:
            self._free[port] = start + cost.holds
        self._held[tag] = start, start + cost.holds
        self._ends[tag] = end = start + cost.holds + cost.latency
        heappush(self._by_end, (end, tag))
        return start, end

    def wait(self, tag: int, steps: int) -> None:
        """Note a wait: no line is issued until the MV has ended."""
        for kind, until in zip(STALLS, (*self._held[tag], self._ends.pop(tag)), strict=True):
            stall = max(0, until - self.now(steps))
            self.stalls[kind] += stall
            self._stalls += stall

    def over(self, steps: int) -> list[int]:
        """Return the tag of an MV that has ended and that no line has waited for, if any."""
        while self._by_end:
            end, tag = self._by_end[0]
            if self._ends.get(tag) == end:
                return [tag] if end <= self.now(steps) else []
            heappop(self._by_end)
        return []
