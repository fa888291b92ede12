"""What the crate ``switches`` must know of the machine."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...cost.moves import broadcast_rate, exchange_rate, latency_steps, pdm_rate
from ...errors import error
from ...graph.digits import all_ranges
from ...graph.dtypes import MNDtype
from ...graph.layout import UNIT_LEVELS, Level
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from .l1bm_vectors import l1bm_room

#: The levels in the order in which the crate numbers them.
LEVELS = (Level.W, *reversed(UNIT_LEVELS), Level.ADDR, Level.TIME)
NUMBER = {level: number for number, level in enumerate(LEVELS)}

LONG_BITS = 64
#: Bits of the words that have addresses of their own.
ADDRESSED_BITS = LONG_BITS // WORDS_PER_LONG


class Facts(NamedTuple):
    """What the crate must know of the machine and of a dtype: the fields of its ``Machine``."""

    counts: list[int]
    bits: int
    addressed_bits: int
    lm0: int
    cycles: int
    mv_latency: int
    mv_near: int
    mv_far: int
    mv_all: int
    mv_dram: int
    l2bs_per_group: int
    row: int
    block: int
    l2bm_words: int
    spread: tuple[int, int]
    vectors: int
    l2bm: int
    pdm: int
    masks: int
    wide: int


@lru_cache(maxsize=64)
def facts(dtype: MNDtype, target: Target) -> Facts:
    """Return what the crate must know of ``target`` for values of ``dtype``.

    P0606 if L1BM is too small, or if an L2BM instruction moves more rows than a vector has.
    """
    ranges = all_ranges(target.level_range, dtype)
    room = l1bm_room(target)
    step, spread = target.transfer("l2bm", "up", l1b_number=0), target.transfer("l2bmd", "up")
    block = max(1, step.source_words // room.row)
    if block > target.cycles:
        reason = (
            f"an L2BM instruction moves {block} rows at once, which are more than the "
            f"{target.cycles} of a vector"
        )
        raise error("P0606", spec=target.name, reason=reason)
    return Facts(
        [ranges[level] for level in LEVELS if level in ranges],
        dtype.bits,
        ADDRESSED_BITS,
        target.words("lm0"),
        target.cycles,
        latency_steps(target),
        int(pdm_rate(target, far=False)),
        int(pdm_rate(target, far=True)),
        int(broadcast_rate(target)),
        int(exchange_rate(target)),
        target.l2bs_per_group,
        room.row,
        block,
        step.source_words,
        (spread.source_words, spread.destination_words),
        room.vectors,
        target.words("l2bm"),
        target.words("pdm"),
        # Entry 0 masks nothing.
        target.masks["entries"] - 1,
        LONGS_PER_WIDE,
    )
