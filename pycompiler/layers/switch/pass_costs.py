"""The ways of moves between the units of one level, and their steps.

The crate ``switches`` decides which way moves between MABs and between L1Bs take, and counts the
steps; the modules beside this one make the code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from emu2 import _core

from ...cost.moves import broadcast_rate, latency_steps, pdm_rate
from ...graph.digits import all_ranges
from ...graph.dtypes import MNDtype
from ...graph.layout import UNIT_LEVELS, Level
from ...machine import LONGS_PER_WIDE, Target
from .l1bm_vectors import l1bm_room
from .pass_moves import Moves
from .rows import rows_of_l1b
from .word_passes import ADDRESSED_BITS

#: The levels in the order in which the crate numbers them.
LEVELS = (Level.W, *reversed(UNIT_LEVELS), Level.ADDR, Level.TIME)
NUMBER = {level: number for number, level in enumerate(LEVELS)}


class Facts(NamedTuple):
    """What the crate must know of the machine and of a dtype."""

    counts: list[int]
    bits: int
    addressed_bits: int
    lm0: int
    cycles: int
    mv_latency: int
    mv_near: int
    mv_far: int
    mv_all: int
    l2bs_per_group: int
    row: int
    block: int
    l2bm_words: int
    vectors: int
    masks: int
    wide: int


@lru_cache(maxsize=64)
def facts(dtype: MNDtype, target: Target) -> Facts:
    """Return what the crate must know of ``target`` for values of ``dtype``."""
    ranges = all_ranges(target.level_range, dtype)
    rows = rows_of_l1b(target)
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
        target.l2bs_per_group,
        rows.row,
        rows.block,
        rows.l2bm_words,
        l1bm_room(target).vectors,
        # Entry 0 masks nothing.
        target.masks["entries"] - 1,
        LONGS_PER_WIDE,
    )


#: By how many units a turn goes up, the units that write (a bit for each, 0 for all), and pairs of
#: addresses of sources and results.
Turn = tuple[int, int, list[tuple[int, int]]]


def turns(found: Moves, level: Level, target: Target) -> list[Turn]:
    """Return moves over ``level`` as turns, those that all units write first."""
    return _core.move_turns(found.rows, facts(MNDtype.FLOAT, target), NUMBER[level])
