"""Placing buffers of known lifetimes in memories of fixed sizes.

First best fit, in several orders. Where that fails, exact searches in the manner of MiniMalloc:
every buffer lies on the floor or on another one, a placement is checked against what still has to
fit above it in each stretch of time, stretches that have nothing in common any more are solved
apart, and when a search takes long another begins: in another order of preference, and by the
stretch of time with the fewest choices or by rising offsets.
Sizes, offsets and times are integers in units of the caller's choice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

_FAR = np.iinfo(np.int64).max // 4
#: Nodes an order is searched for at first; each round over all orders allows four times as many.
_FIRST_NODES, _MORE = 600, 4
#: A placement per level of recursion: larger problems are left to best fit.
_MOST_SEARCHED = 800


@dataclass(frozen=True)
class Buffer:
    """``size`` units that live from ``start`` to before ``end``.

    The offset is a multiple of ``align``; ``banks`` are the memories the buffer may lie in.
    """

    name: str
    start: int
    end: int
    size: int
    align: int = 1
    banks: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Place:
    """Memory and offset of a buffer."""

    bank: int
    offset: int


class OutOfTimeError(Exception):
    """The search was stopped before it could tell."""


def place(
    buffers: Sequence[Buffer], capacities: Sequence[int], seconds: float = 10.0
) -> dict[str, Place] | None:
    """Place all buffers in banks of ``capacities``; None if that is impossible.

    With buffers that may choose their bank, None says only that the assignments tried are
    impossible. Raises OutOfTimeError after about ``seconds``.
    """
    deadline = time.monotonic() + seconds
    found: dict[str, Place] = {}
    for bank, own in enumerate(_assigned(buffers, len(capacities))):
        offsets = place_in_one(own, capacities[bank], deadline - time.monotonic())
        if offsets is None:
            return None
        found.update((name, Place(bank, offset)) for name, offset in offsets.items())
    return found


def place_in_one(
    buffers: Sequence[Buffer], capacity: int, seconds: float = 10.0
) -> dict[str, int] | None:
    """Place all buffers in one memory: best fit, else the search. OutOfTimeError as above."""
    if not buffers:
        return {}
    problem = _Problem(buffers, capacity)
    if problem.load.max() > capacity:
        return None
    for order in ORDERS.values():
        offsets = problem.best_fit(order(problem))
        if int((offsets + problem.size).max()) <= capacity:
            return problem.named(offsets)
    if len(buffers) > _MOST_SEARCHED:
        raise OutOfTimeError
    solved = _search(problem, time.monotonic() + seconds)
    return None if solved is None else problem.named(solved)


def best_fit(buffers: Sequence[Buffer]) -> tuple[dict[str, int], int]:
    """Place buffers in a memory without end: the offsets of the best order, and its size."""
    if not buffers:
        return {}, 0
    problem = _Problem(buffers, _FAR)
    tried = [problem.best_fit(order(problem)) for order in ORDERS.values()]
    peaks = [int((offsets + problem.size).max()) for offsets in tried]
    best = int(np.argmin(peaks))
    return problem.named(tried[best]), peaks[best]


def overlaps(buffers: Sequence[Buffer], places: Mapping[str, Place]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of buffers that share a unit while both live."""
    for number, one in enumerate(buffers):
        for other in buffers[number + 1 :]:
            a, b = places[one.name], places[other.name]
            apart = a.bank != b.bank or one.end <= other.start or other.end <= one.start
            if not apart and a.offset < b.offset + other.size and b.offset < a.offset + one.size:
                yield one.name, other.name


def _assigned(buffers: Sequence[Buffer], banks: int) -> list[list[Buffer]]:
    """Split the buffers over the banks: those with a choice, largest first, where load is least."""
    own: list[list[Buffer]] = [[] for _ in range(banks)]
    for buffer in sorted(buffers, key=lambda b: (len(b.banks) > 1, -b.size * (b.end - b.start))):

        def crowd(bank: int, buffer: Buffer = buffer) -> int:
            times = {buffer.start, *(b.start for b in own[bank] if b.start < buffer.end)}
            return max(
                sum(b.size for b in own[bank] if b.start <= at < b.end)
                for at in times
                if at >= buffer.start
            )

        own[min(buffer.banks, key=crowd) if len(buffer.banks) > 1 else buffer.banks[0]].append(
            buffer
        )
    return own


class _Problem:
    """Buffers as arrays. Time is cut into sections in which the same buffers live."""

    def __init__(self, buffers: Sequence[Buffer], capacity: int):
        self.buffers, self.capacity = buffers, capacity
        start = np.array([b.start for b in buffers], dtype=np.int64)
        end = np.array([b.end for b in buffers], dtype=np.int64)
        if (start >= end).any():
            raise ValueError("a buffer must live for some time")
        self.size = np.array([b.size for b in buffers], dtype=np.int64)
        self.align = np.array([b.align for b in buffers], dtype=np.int64)
        self.aligned = bool((self.align > 1).any())
        times = np.unique(np.concatenate([start, end]))
        self.low, self.high = np.searchsorted(times, start), np.searchsorted(times, end)
        self.duration = end - start
        sections = np.arange(len(times) - 1)
        self.cover = (self.low[:, None] <= sections) & (sections < self.high[:, None])
        self.load: IntArray = (self.cover * self.size[:, None]).sum(axis=0)
        self.crowd: IntArray = np.where(self.cover, self.load, 0).max(axis=1)
        self.meet = (self.low[:, None] < self.high) & (self.low < self.high[:, None])
        np.fill_diagonal(self.meet, False)

    def named(self, offsets: IntArray) -> dict[str, int]:
        return {b.name: int(at) for b, at in zip(self.buffers, offsets, strict=True)}

    def best_fit(self, order: IntArray) -> IntArray:
        """Return the offsets when each buffer in turn takes the tightest gap it fits."""
        offsets = np.full(len(self.buffers), -1, dtype=np.int64)
        for index in order:
            near = np.flatnonzero(self.meet[index] & (offsets >= 0))
            near = near[np.argsort(offsets[near], kind="stable")]
            best, waste, floor = None, _FAR, 0
            size, align = int(self.size[index]), int(self.align[index])
            for other in near:
                at = -(-floor // align) * align
                room = int(offsets[other]) - at
                if size <= room < waste:
                    best, waste = at, room
                floor = max(floor, int(offsets[other] + self.size[other]))
            offsets[index] = -(-floor // align) * align if best is None else best
        return offsets


#: Orders in which buffers are preferred, most wanted first.
ORDERS: dict[str, Callable[[_Problem], IntArray]] = {
    "crowd, duration, area": lambda p: np.lexsort((-p.size * p.duration, -p.duration, -p.crowd)),
    "crowd, area, duration": lambda p: np.lexsort((-p.duration, -p.size * p.duration, -p.crowd)),
    "duration, area, crowd": lambda p: np.lexsort((-p.crowd, -p.size * p.duration, -p.duration)),
    "area": lambda p: np.lexsort((-p.crowd, -p.size * p.duration)),
    "size": lambda p: np.lexsort((-p.duration, -p.size)),
}


#: Which section is decided next: one with few choices, and then little room or a low floor; empty
#: for the search by offset.
_CHOICES = ("few, tight", "", "few, low")


def _search(problem: _Problem, deadline: float) -> IntArray | None:
    """Search all orders in turn with a growing number of nodes; None if there is no solution."""
    nodes, depth = _FIRST_NODES, sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 4 * len(problem.buffers))
    try:
        while True:
            for order in ORDERS.values():
                for choice in _CHOICES:
                    kind = _Search if choice else _ByOffset
                    attempt = kind(problem, order(problem), choice, nodes, deadline)
                    try:
                        return attempt.run()
                    except _EnoughError:
                        continue
            nodes *= _MORE
    finally:
        sys.setrecursionlimit(depth)


class _EnoughError(Exception):
    """The nodes of an attempt are used up."""


class _Search:
    """One search in a given order of preference."""

    def __init__(
        self, problem: _Problem, order: IntArray, choice: str, nodes: int, deadline: float
    ):
        self.choice = choice
        self.p, self.nodes, self.deadline = problem, nodes, deadline
        self.rank = np.empty(len(order), dtype=np.int64)
        self.rank[order] = np.arange(len(order))
        self.offsets = np.zeros(len(order), dtype=np.int64)
        #: The least offset of each unplaced buffer, given the placed ones it meets.
        self.least = np.zeros(len(order), dtype=np.int64)
        self.rest = problem.load.copy()

    def run(self) -> IntArray | None:
        parts = self._parts(np.arange(len(self.offsets)))
        return self.offsets if all(self._solve(part) for part in parts) else None

    def _solve(self, items: IntArray) -> bool:
        """Place ``items``, which are all that is left between their first start and last end."""
        p, entry = self.p, self.least
        self.least = entry.copy()
        low, high = int(p.low[items].min()), int(p.high[items].max())
        cover, size = p.cover[items, low:high], p.size[items]
        meet = p.meet[np.ix_(items, items)]
        rest = self.rest[low:high]
        while True:
            self._count()
            least = self.least[items]
            table = np.where(cover, least[:, None], _FAR)
            floor = table.min(axis=0)
            spare = p.capacity - floor - rest
            used = rest > 0
            if (spare[used] < 0).any():
                break
            chosen = self._choose(table, floor, spare, used, least + size)
            chosen = chosen[np.argsort(self.rank[items[chosen]])]
            for number in chosen.tolist():
                if self._issue(items, number, meet[number]):
                    return True
                if not meet[number].any():
                    # It meets none of the others: it is not why they do not fit.
                    self.least = entry
                    return False
            # None of them lies on the floor: each rests on a buffer still to come.
            tops = np.where(meet[chosen], least + size, _FAR).min(axis=1)
            if (tops >= _FAR).any():
                break
            if p.aligned:
                tops = -(-tops // p.align[items[chosen]]) * p.align[items[chosen]]
            self.least[items[chosen]] = tops
        self.least = entry
        return False

    def _count(self) -> None:
        if self.nodes == 0:
            raise _EnoughError
        if self.nodes % 64 == 0 and time.monotonic() > self.deadline:
            raise OutOfTimeError
        self.nodes -= 1

    def _choose(
        self,
        table: IntArray,
        floor: IntArray,
        spare: IntArray,
        used: NDArray[np.bool_],
        top: IntArray,
    ) -> IntArray:
        """Return the buffers that may lie on the floor of the section with the fewest of them.

        Sections are left for later where another buffer still fits below one of these.
        """
        at_floor = (table == floor) & used
        lowest_top = np.where(table < _FAR, top[:, None], _FAR).min(axis=0)
        below = np.where(table < _FAR, lowest_top, _FAR).min(axis=1)
        early = (at_floor & (below[:, None] <= table)).any(axis=0)
        possible = np.flatnonzero(used & ~early)
        count = (at_floor.sum(axis=0) + (spare > 0))[possible]
        floor, spare = floor[possible], spare[possible]
        keys = {"few, tight": (spare, count), "few, low": (floor, count)}
        section = int(possible[np.lexsort(keys[self.choice])[0]])
        return np.flatnonzero(at_floor[:, section])

    def _issue(self, items: IntArray, number: int, meets: NDArray[np.bool_]) -> bool:
        """Place one of the items as low as it can lie, and all others after it."""
        p, index = self.p, int(items[number])
        others, met = np.delete(items, number), items[meets]
        least, rest = self.least, self.rest
        offset = int(least[index])
        self.offsets[index] = offset
        self.least = least.copy()
        self.least[met] = np.maximum(least[met], offset + int(p.size[index]))
        if p.aligned:
            self.least[met] = -(-self.least[met] // p.align[met]) * p.align[met]
        self.rest = rest.copy()
        self.rest[p.low[index] : p.high[index]] -= p.size[index]
        if all(self._solve(part) for part in self._parts(others)):
            return True
        self.least, self.rest = least, rest
        return False

    def _parts(self, items: IntArray) -> list[IntArray]:
        """Split the items where no lifetime crosses; smaller parts first."""
        if items.size == 0:
            return []
        p = self.p
        items = items[np.argsort(p.low[items], kind="stable")]
        reach = np.maximum.accumulate(p.high[items])
        cuts = np.flatnonzero(p.low[items][1:] >= reach[:-1]) + 1
        return sorted(np.split(items, cuts), key=len) if cuts.size else [items]


class _ByOffset(_Search):
    """The search in the order of offsets: no buffer is placed below the one before it.

    Better than :class:`_Search` where few buffers live at a time, worse where many do.
    """

    def run(self) -> IntArray | None:
        parts = self._parts(np.arange(len(self.offsets)))
        return self.offsets if all(self._solve_above(part, 0, -1) for part in parts) else None

    def _solve_above(self, items: IntArray, last: int, last_rank: int) -> bool:
        """Place ``items``, none below ``last``; at ``last`` only those after ``last_rank``."""
        self._count()
        p = self.p
        at = np.maximum(self.least[items], last)
        if p.aligned:
            at = -(-at // p.align[items]) * p.align[items]
        size = p.size[items]
        low, high = int(p.low[items].min()), int(p.high[items].max())
        # What lies above the end of another buffer leaves a place for that one below; what is
        # still to come has no room if this one begins too high.
        limit = min(int((at + size).min()), p.capacity - int(self.rest[low:high].max()) + 1)
        chosen = np.flatnonzero(at < limit)
        chosen = chosen[np.lexsort((self.rank[items[chosen]], at[chosen]))]
        for number in chosen.tolist():
            index, offset = int(items[number]), int(at[number])
            rank = int(self.rank[index])
            if offset == last and rank < last_rank:
                continue
            others = np.delete(items, number)
            met = others[p.meet[index, others]]
            least, rest = self.least, self.rest
            self.offsets[index] = offset
            self.least = least.copy()
            self.least[met] = np.maximum(least[met], offset + int(p.size[index]))
            self.rest = rest.copy()
            self.rest[p.low[index] : p.high[index]] -= p.size[index]
            fits = self._fits(others, met, offset)
            if fits and all(self._solve_above(part, offset, rank) for part in self._parts(others)):
                return True
            self.least, self.rest = least, rest
            if fits and met.size == 0:
                return False  # nothing meets this buffer: it is not why the others do not fit
        return False

    def _fits(self, items: IntArray, met: IntArray, last: int) -> bool:
        """Whether what is left fits above the least offsets, in the sections that have changed."""
        if met.size == 0:
            return True
        p = self.p
        low, high = int(p.low[met].min()), int(p.high[met].max())
        near = items[(p.low[items] < high) & (p.high[items] > low)]
        least = np.maximum(self.least[near], last)
        cover = p.cover[near, low:high]
        floor = np.where(cover, least[:, None], _FAR).min(axis=0)
        rest = self.rest[low:high]
        return not ((rest > 0) & (floor + rest > p.capacity)).any()
