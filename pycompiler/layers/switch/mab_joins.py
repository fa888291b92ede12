"""Sums, maxima and minima over MABs, by the reduction network between the MABs and L1BM.

An instruction sends a vector of every MAB up, and the network joins those of a set of MABs. Another
one brings the result down to all MABs of the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from ...code.lines import BlockOperand, PeOperand, Step, single_step
from ...graph.digits import PrimeDigit, primes
from ...graph.layout import Level
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, IntArray, Target, TransferMap
from ..scratch import Scratch

#: The instructions that send up, without their operation, and those that bring down.
_PAIRS = (("l1bmr", "l1bmm"), ("l1bmr4", "l1bmm4"))


@dataclass(frozen=True)
class Join:
    """The instructions that join MABs: those that differ only in ``digits`` of their numbers.

    ``words`` are the long words that one vector of all MABs takes in L1BM.
    """

    up: str
    down: str
    digits: frozenset[PrimeDigit]
    words: int


@lru_cache(maxsize=64)
def joins(operation: str, target: Target) -> tuple[Join, ...]:
    """Return the ways to join MABs by ``operation``, those that join most MABs first."""
    found: list[Join] = []
    for name, down in _PAIRS:
        up = name + operation
        there, back = target.transfer(up, "from_pe"), target.transfer(down, "to_pe")
        places = _place_of_mabs(there, there.source, there.destination)
        if (places != _place_of_mabs(back, back.destination, back.source)).any():
            continue
        mabs = np.arange(len(places))
        digits = frozenset(
            digit
            for digit in primes(target.level_range[Level.MAB.value])
            if all(
                (places == places[mabs - mabs // digit.stride % digit.size * digit.stride]).tolist()
            )
        )
        sets = len(set(places.tolist()))
        if digits and sets * prod(digit.size for digit in digits) == len(places):
            found.append(Join(up, down, digits, there.destination_words))
    return tuple(sorted(found, key=lambda one: -prod(digit.size for digit in one.digits)))


def _place_of_mabs(found: TransferMap, of: object, at: object) -> IntArray:
    """Return for each MAB the long word of L1BM that PE 0 has in the first cycle."""
    mabs, above = dict(of), dict(at)  # type: ignore[call-overload]
    here = (mabs["cycle"] == 0) & (mabs["pe"] == 0)
    out = np.full(int(mabs["mab"].max()) + 1, -1, dtype=np.int64)
    out[mabs["mab"][here]] = above["addr"][here]
    return out


def join_steps(join: Join, part: Scratch, words: int, target: Target) -> Iterator[Step]:
    """Yield the steps that replace long words 0 to ``words`` of ``part`` by the joined ones.

    ``words`` is a multiple of the long words of a vector.
    """
    vectors = words // target.cycles
    most = target.words("l1bm") // join.words
    for first in range(0, vectors, most):
        batch = range(first, min(first + most, vectors))
        runs = [
            (at, min(LONGS_PER_WIDE, batch.stop - at))
            for at in range(batch.start, batch.stop, LONGS_PER_WIDE)
        ]
        for up in (True, False):
            for at, size in runs:
                wide = size == LONGS_PER_WIDE
                above = BlockOperand(
                    "l1bm", (at - batch.start) * join.words, size * join.words, wide=wide
                )
                here = _vectors(part, at * target.cycles, size, target)
                if up:
                    yield single_step("l1bm", join.up, (here,), above)
                else:
                    yield single_step("l1bm", join.down, (above,), here)


def _vectors(part: Scratch, at: int, size: int, target: Target) -> PeOperand:
    """Return ``size`` vectors of long words from ``at`` on: that many per cycle."""
    first = part.base + at
    words = tuple(range(first, first + size * target.cycles, size))
    return PeOperand(part.memory, words, None, words=size * WORDS_PER_LONG)
