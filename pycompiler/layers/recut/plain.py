"""Plain layouts: the elements of a row follow each other in DRAM, and where its units lie.

A *unit* is as many elements as the smallest MV moves. The axis of a row is divided so that a unit
is one run of long words of one DRAM: the digits go up in the order in which transfers between DRAM
and LM take units. Above them come the addresses, and then the L2Bs, with a part of the row each.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ...graph.digits import Part
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...graph.layout import UNIT_LEVELS, Broadcast, Layout, Level
from ...machine import IntArray, Target
from ..base import layout_of
from ..default_layout import built
from ..dram_transfer_order import Order, order_of
from ..dram_transfer_plan import plan_transfer

_EVERYWHERE = Layout((), tuple(Broadcast(level) for level in UNIT_LEVELS))


def unit_of(dtype: MNDtype, target: Target) -> int:
    """Return the elements of a unit."""
    return target.mv_unit * dtype.words_per_long


def _below(dtype: MNDtype, target: Target) -> list[Part]:
    """Return the parts of a row below the addresses, minor first."""
    counts = target.counts
    lane = target.l2bm_row // counts["l1b"]  # consecutive long words of one L1B
    low = lane // counts["pe"]
    levels = [
        (Level.W, dtype.words_per_long, 1),
        (Level.PE, counts["pe"], 1),
        (Level.MAB, low, 1),
        (Level.L1B, counts["l1b"], 1),
        (Level.MAB, counts["mab"] // low, low),
    ]
    out: list[Part] = []
    lo = 1
    for level, size, stride in levels:
        if size > 1:
            out.append(Part(lo, size, level, stride))
            lo *= size
    return out


def plain_layout(shape: tuple[int, ...], dtype: MNDtype, target: Target) -> Layout:
    """Return the plain layout of rows, which are the last axis; all other axes lie in Addr."""
    length, l2bs = shape[-1], target.level_range["L2B"]
    own = _below(dtype, target)
    lo = prod(part.size for part in own)
    step = target.row_words * dtype.words_per_long
    addresses = -(-length // step) * (step // (lo * l2bs))
    own.append(Part(lo, addresses, Level.ADDR, 1))
    if l2bs > 1:
        own.append(Part(lo * addresses, l2bs, Level.L2B, 1))
    placed = {len(shape) - 1: own}
    for axis in range(len(shape) - 2, -1, -1):
        size = shape[axis]
        placed[axis] = [Part(1, size, Level.ADDR, addresses)] if size > 1 else []
        addresses *= size
    made = built(shape, placed, _EVERYWHERE, dtype, target)
    assert made is not None, f"no plain layout of {shape}"
    return made


def units_in_dram(value: MNValue, target: Target) -> tuple[IntArray, IntArray]:
    """Return group and first long word of each unit of each row, counted from the value's begin.

    The value has a plain layout, with slices in front of it.
    """
    layout = layout_of(value)
    front = value.shape[:-1]
    rows = prod(front)
    unit = unit_of(value.dtype, target)
    count = -(-value.shape[-1] // unit)
    at = {level: np.zeros((rows, count), np.int64) for level in Level}
    index = [found.reshape(rows, 1) for found in np.indices(front)]
    index.append(np.arange(count)[None, :] * unit)
    for own, subs in zip(index, layout.axes, strict=True):
        rest = own
        for number, sub in enumerate(reversed(subs)):
            last = number == len(subs) - 1
            digit = rest if last else rest % sub.size
            rest = rest // sub.size
            at[sub.level] = at[sub.level] + digit * sub.stride
    plan = plan_transfer(layout.slice, target)
    order = _order(layout.slice, target)
    local = order.local[at[Level.L1B], at[Level.MAB], at[Level.PE], at[Level.ADDR]]
    found = order.above[at[Level.L2B], local]
    return found // plan.dram_words, found % plan.dram_words + at[Level.TIME] * plan.dram_words


@lru_cache(maxsize=4)
def _order(layout: Layout, target: Target) -> Order:
    return order_of(plan_transfer(layout, target))
