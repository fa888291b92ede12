"""Plain layouts: the elements of a row follow each other in DRAM, and where its units lie.

A *unit* is as many elements as the smallest MV moves. The axis of a row is divided so that a unit
is one run of long words of one DRAM: the digits go up in the order in which transfers between DRAM
and LM take units. Above them come the addresses, and then the L2Bs, with a part of the row each.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...graph.digits import Part
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...graph.layout import UNIT_LEVELS, Broadcast, Layout, Level
from ...machine import IntArray, Target
from ..base import layout_of
from ..default_layout import built
from ..dram_transfer_order import orders_of, words_at
from ..dram_transfer_plan import plan_transfer

#: Rows go to L2Bs as a whole if that takes less than this part of the elements.
_LESS = 7 / 8
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
    """Return the plain layout of rows, which are the last axis; all other axes lie in Addr.

    Each L2B has a part of every row, or some of the rows if that pads much less: MVs are then
    shorter.
    """
    first, *others = plain_layouts(shape, dtype, target)
    most = prod(first.padded_shape) * _LESS
    return next((found for found in others if prod(found.padded_shape) < most), first)


def plain_layouts(shape: tuple[int, ...], dtype: MNDtype, target: Target) -> list[Layout]:
    """Return the plain layouts: with a part of every row in each L2B, and with rows in each."""
    found = [_plain(shape, dtype, target, by_rows=False)]
    if len(shape) > 1 and target.level_range["L2B"] > 1:
        found.append(_plain(shape, dtype, target, by_rows=True))
    return found


def _plain(shape: tuple[int, ...], dtype: MNDtype, target: Target, *, by_rows: bool) -> Layout:
    length, l2bs = shape[-1], target.level_range["L2B"]
    own = _below(dtype, target)
    lo = prod(part.size for part in own)
    # Where rows have no order, a value only takes room, and no row of it is read.
    step = target.row_words * dtype.words_per_long or lo * l2bs
    parts = 1 if by_rows else l2bs
    step //= l2bs // parts
    addresses = -(-length // step) * (step // (lo * parts))
    own.append(Part(lo, addresses, Level.ADDR, 1))
    if parts > 1:
        own.append(Part(lo * addresses, parts, Level.L2B, 1))
    placed = {len(shape) - 1: own}
    for axis in range(len(shape) - 2, -1, -1):
        size, placed[axis] = shape[axis], []
        if by_rows and axis == len(shape) - 2:
            size = -(-size // l2bs)
            placed[axis].append(Part(size, l2bs, Level.L2B, 1))
        if size > 1:
            placed[axis].insert(0, Part(1, size, Level.ADDR, addresses))
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
    index = *(one.reshape(rows, 1) for one in np.indices(front)), np.arange(count)[None, :] * unit
    plan = plan_transfer(layout, target)
    return words_at(plan, orders_of(plan), layout.coordinates(*index))
