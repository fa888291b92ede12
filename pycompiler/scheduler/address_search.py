"""Place buffers of known lifetimes in a memory of a fixed size.

Best fit is tried first, in several orders. If it fails, the exact search of the crate ``packing``
follows. Sizes, offsets and times are integers in units that the caller chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from emu2 import _core

IntArray = NDArray[np.int64]

#: The search recurses once per buffer, so larger problems are left to best fit.
_MOST_SEARCHED = 1000
#: The work of a search without a limit in time, so that all hosts find the same.
WORK, _MOST_WORK = 1 << 26, (1 << 64) - 1


@dataclass(frozen=True)
class Buffer:
    """A buffer of ``size`` units that lives from ``start`` to before ``end``.

    Its offset is a multiple of ``align``.
    """

    name: str
    start: int
    end: int
    size: int
    align: int = 1


class OutOfTimeError(Exception):
    """The search was stopped before it had an answer."""


def place(
    buffers: Sequence[Buffer], capacity: int, seconds: float | None = None, work: int = WORK
) -> dict[str, int] | None:
    """Place all buffers in a memory by best fit, or else by search.

    None if that is impossible. Raises OutOfTimeError after about ``seconds``; without them after
    ``work``, which counts all buffers at each node, or if there are too many for the search.
    """
    # Buffers without size overlap nothing.
    empty = {buffer.name: 0 for buffer in buffers if not buffer.size}
    buffers = [buffer for buffer in buffers if buffer.size]
    if not buffers:
        return empty
    problem = _Problem(buffers)
    if problem.load.max() > capacity:
        return None
    for order in ORDERS.values():
        offsets, peak = problem.best_fit(order(problem))
        if peak <= capacity:
            return problem.named(offsets) | empty
    if len(buffers) > _MOST_SEARCHED:
        raise OutOfTimeError
    orders = [order(problem).tolist() for order in ORDERS.values()]
    limits = (inf, work) if seconds is None else (seconds, _MOST_WORK)
    try:
        solved = _core.search_offsets(problem.rows, capacity, orders, *limits)
    except TimeoutError as late:
        raise OutOfTimeError from late
    return None if solved is None else problem.named(solved) | empty


def best_fit(buffers: Sequence[Buffer]) -> tuple[dict[str, int], int]:
    """Place buffers in an unlimited memory; return the offsets of the best order and the peak."""
    if not buffers:
        return {}, 0
    problem = _Problem(buffers)
    tried = (problem.best_fit(order(problem)) for order in ORDERS.values())
    offsets, peak = min(tried, key=lambda one: one[1])
    return problem.named(offsets), peak


class _Problem:
    """Buffers as arrays, with time cut into sections in which the same buffers live."""

    def __init__(self, buffers: Sequence[Buffer]):
        self.buffers = buffers
        self.rows = [(b.start, b.end, b.size, b.align) for b in buffers]
        start = np.array([b.start for b in buffers], dtype=np.int64)
        end = np.array([b.end for b in buffers], dtype=np.int64)
        if (start >= end).any():
            raise ValueError("a buffer must live for some time")
        self.size = np.array([b.size for b in buffers], dtype=np.int64)
        times = np.unique(np.concatenate([start, end]))
        low, high = np.searchsorted(times, start), np.searchsorted(times, end)
        self.duration = end - start
        change = np.zeros(len(times), dtype=np.int64)
        np.add.at(change, low, self.size)
        np.subtract.at(change, high, self.size)
        self.load: IntArray = np.cumsum(change)
        lives = np.stack([low, high], axis=1).ravel()
        self.crowd: IntArray = np.maximum.reduceat(self.load, lives)[::2]

    def named(self, offsets: Sequence[int]) -> dict[str, int]:
        return {b.name: at for b, at in zip(self.buffers, offsets, strict=True)}

    def best_fit(self, order: IntArray) -> tuple[list[int], int]:
        """Return offsets and peak if each buffer in ``order`` takes the narrowest fitting gap."""
        none = [None] * len(self.rows)
        offsets = _core.fit_offsets(self.rows, none, order.tolist(), True)
        return offsets, max(at + row[2] for at, row in zip(offsets, self.rows, strict=True))


#: Orders of the buffers for best fit and for the search. A name lists the criteria, largest first.
ORDERS: dict[str, Callable[[_Problem], IntArray]] = {
    "crowd, duration, area": lambda p: np.lexsort((-p.size * p.duration, -p.duration, -p.crowd)),
    "crowd, area, duration": lambda p: np.lexsort((-p.duration, -p.size * p.duration, -p.crowd)),
    "duration, area, crowd": lambda p: np.lexsort((-p.crowd, -p.size * p.duration, -p.duration)),
    "area": lambda p: np.lexsort((-p.crowd, -p.size * p.duration)),
    "size": lambda p: np.lexsort((-p.duration, -p.size)),
}
