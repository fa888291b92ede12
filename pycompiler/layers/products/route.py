"""How the vectors of all MABs come together in every L1BM of a share.

A *share* is a set of L1Bs that multiply the same vectors, each by its own columns. Every PE sends
long words; a vector is one long word of each PE of a MAB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from ...code.lines import BlockOperand, Operand, Step, single_step
from ...graph.layout import Level
from ...machine import IntArray, Target, TransferMap


@dataclass(frozen=True)
class Route:
    """The route of the long words that all PEs send in one step of ``l1bmd``.

    ``sent``: long words in L1BM after the step. ``above``: long words of L2BM that they take, 0 if
    they stay in L1BM. ``landed``: long words in L1BM when all vectors of the share are there.
    ``up`` and ``down`` are the L2BM instructions, with their long words at the source and at the
    destination. ``order`` has for each vector in L1BM, in address order, the unit of the share
    (MABs minor) that sent it, and the cycle; it is empty if instructions cannot keep vectors whole.
    """

    sent: int
    above: int
    landed: int
    up: tuple[str, int, int]
    down: tuple[str, int, int]
    order: tuple[tuple[int, int], ...]

    @property
    def steps(self) -> int:
        """Number of L2BM instructions."""
        return self.sent // self.up[1] + self.above // self.down[1] if self.above else 0

    def steps_of_vectors(self, cycles: int) -> tuple[int, ...]:
        """Return the first vectors of the steps that multiply all; () if that is impossible.

        The vectors of a step were sent in one cycle. Where they are no whole steps, the last step
        begins earlier and multiplies some vectors again.
        """
        starts: list[int] = []
        for _, run in groupby(range(len(self.order)), lambda at: self.order[at][1]):
            places = tuple(run)
            if len(places) < cycles:
                return ()
            starts += (min(at, places[-cycles]) for at in places[::cycles])
        return tuple(starts)

    def climb(self, l1: int, l2: int) -> Iterator[Step]:
        """Yield the steps that bring the long words from ``l1`` of L1BM to ``l2`` of L2BM."""
        name, below, above = self.up
        for part in range(self.sent // below if self.above else 0):
            source = BlockOperand("l1bm", l1 + part * below, below)
            yield _l2bm(name, source, BlockOperand("l2bm", l2 + part * above, above))

    def land(self, l2: int, l1: int) -> Iterator[Step]:
        """Yield the steps that bring them from ``l2`` of L2BM to ``l1`` of the share's L1BMs."""
        name, above, below = self.down
        for part in range(self.above // above if self.above else 0):
            source = BlockOperand("l2bm", l2 + part * above, above)
            yield _l2bm(name, source, BlockOperand("l1bm", l1 + part * below, below))


def shares(target: Target) -> tuple[int, ...]:
    """Return the numbers of neighbouring L1Bs that a route can join."""
    every = target.level_range[Level.L1B.value]
    found = {1, every}
    if every % target.l1b_pair == 0:
        found.add(target.l1b_pair)
    return tuple(sorted(found))


@lru_cache(maxsize=16)
def route(share: int, target: Target) -> Route:
    """Return the route for shares of ``share`` L1Bs."""
    l1bs, pes = target.level_range[Level.L1B.value], target.counts["pe"]
    send, climb = target.transfer("l1bmd", "from_pe"), target.transfer("l2bmd", "up")
    down = "l2bmb" if share == l1bs else "l2bmb2"
    land = target.transfer(down, "down")
    sent = send.destination_words
    unit = np.arange(l1bs)[:, None] * target.counts["mab"] + send.source["mab"]
    token = (unit * pes + send.source["pe"]) * target.cycles + send.source["cycle"]
    l1 = np.zeros((l1bs, sent), dtype=np.int64)
    l1[:, send.destination["addr"]] = token
    above = 0
    if share > 1:
        above = sent // climb.source_words * climb.destination_words
        if sent % climb.source_words or above % land.source_words:
            return Route(sent, above, sent, ("l2bmd", 1, 1), (down, 1, 1), ())
        l2 = np.zeros(above, dtype=np.int64)
        for part in range(sent // climb.source_words):
            l2[part * climb.destination_words + climb.destination["addr"]] = l1[
                climb.source["l1b"], part * climb.source_words + climb.source["addr"]
            ]
        l1 = _landed(l2, land, l1bs)
    return Route(
        sent,
        above,
        l1.shape[1],
        ("l2bmd", climb.source_words, climb.destination_words),
        (down, land.source_words, land.destination_words),
        _vectors(l1[0], share, target),
    )


def _landed(l2: IntArray, land: TransferMap, l1bs: int) -> IntArray:
    parts = l2.size // land.source_words
    l1 = np.zeros((l1bs, parts * land.destination_words), dtype=np.int64)
    for part in range(parts):
        words = l2[part * land.source_words + land.source["addr"]]
        at = part * land.destination_words + land.destination["addr"]
        l1[land.destination["l1b"], at] = words
    return l1


def _vectors(words: IntArray, share: int, target: Target) -> tuple[tuple[int, int], ...]:
    """Return sender and cycle of every vector, whose long words lie in PE order; () if not."""
    by_vector = words.reshape(-1, target.counts["pe"])
    cycle = by_vector % target.cycles
    sender = by_vector // target.cycles
    pe = sender % target.counts["pe"]
    if (pe != np.arange(target.counts["pe"])).any() or (cycle != cycle[:, :1]).any():
        return ()
    unit = sender[:, 0] // target.counts["pe"] % (share * target.counts["mab"])
    return tuple(zip(unit.tolist(), cycle[:, 0].tolist(), strict=True))


def _l2bm(name: str, source: Operand, goal: Operand) -> Step:
    return single_step("l2bm", name, (source,), goal)
