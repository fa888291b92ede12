"""The costs of passes, counted without making their code: planners ask for thousands.

The counts follow the functions that make the code, in :mod:`.pe_mab_passes` and
:mod:`.l1b_l2b_passes`.
"""

from __future__ import annotations

import numpy as np

from ...machine import IntArray, Target
from .l1b_l2b_passes import _blocks, _l1b_room, _origins
from .pass_moves import Moves
from .pe_mab_passes import casts

#: Steps that set a mask.
_MASK = 3


def pe_cost(found: Moves, target: Target) -> int:
    """Count the steps of :func:`.pe_mab_passes.pe_steps`; a mask takes three."""
    count = target.counts["pe"]
    by, masked, vectors = _turns(found, count, target.cycles)
    rounds = np.maximum(1, np.minimum(by, count - by))
    return int((rounds * vectors).sum() + _MASK * masked.sum())


def mab_cost(found: Moves, target: Target) -> int:
    """Count the steps of :func:`.pe_mab_passes.mab_steps`; a mask takes three."""
    count = target.counts["mab"]
    _, masked, vectors = _turns(found, count, target.cycles)
    by_turns = int(2 * vectors.sum() + _MASK * masked.sum())
    # A cast brings at most one vector of results. This bound often shows that turns are cheaper.
    results = np.unique(_number(found.source_at, found.result_at, found.source)).size * found.times
    read = np.unique(found.source_at).size * found.times
    if by_turns <= -(-read // target.cycles) + -(-results // target.cycles):
        return by_turns
    all_casts = casts(found, count, target.cycles)
    masks = {cast.units for cast in all_casts if cast.units is not None}
    by_casts = -(-read // target.cycles) + len(all_casts) * found.times + _MASK * len(masks)
    return min(by_turns, by_casts)


def rows_together(target: Target) -> int:
    """Return how many rows one instruction between L1BM and L2BM moves."""
    return _l1b_room(target).block


def l1b_cost(found: Moves, target: Target) -> int:
    """Estimate the steps of :func:`.l1b_l2b_passes.l1b_steps`."""
    room = _l1b_room(target)
    wide = max(1, room.row // target.transfer("l2bm", "up", l1b_number=0).source_words)
    if room.block == 1:
        up = np.unique(_number(found.source, found.source_at)).size
        down = np.unique(_number(found.result_at, found.source, found.source_at)).size
        rows = np.unique(found.result_at).size
    else:
        blocks = _blocks(_origins(found, target.counts["l1b"]), room.block)
        origins = [{o for o in block.origins if o is not None} for block in blocks]
        up, down = len(set().union(*origins)), sum(map(len, origins))
        rows = len(blocks) * room.block
    times = found.times
    return wide * (up + down) * times + 2 * -(-rows * times // room.vector)


def l2b_cost(found: Moves, target: Target) -> int:
    """Estimate the steps of :func:`.l1b_l2b_passes.l2b_lines`, with the waits for MVs."""
    row = _l1b_room(target).row * target.counts["l1b"]
    moved = np.unique(_number(found.result_at, found.result)).size * found.times
    rows = np.unique(found.result_at).size * found.times
    # An MV of any size takes long to begin: about as many steps as the MV unit has long words.
    per_step = target.mv_unit * target.cycles
    return 2 * (target.mv_unit + moved * row // per_step) + rows


def _number(*keys: IntArray) -> IntArray:
    """Return one number per combination of keys. The keys must not be negative."""
    code = np.zeros_like(keys[0])
    for key in keys:
        code = code * (int(key.max(initial=0)) + 1) + key
    return code


def _turns(found: Moves, count: int, cycles: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return for every turn the units upwards, whether it has a mask, and its vectors.

    The turns are those of :func:`.pe_mab_passes.turns`.
    """
    turned = (found.result - found.source) % count
    _, first, inverse = np.unique(
        _number(turned, found.source_at, found.result_at), return_index=True, return_inverse=True
    )
    units = np.zeros(first.size, dtype=np.int64)
    np.bitwise_or.at(units, inverse.reshape(-1), np.int64(1) << found.result)
    by, at = turned[first], found.result_at[first]
    rank = np.where(by != 0, -np.bitwise_count(units).astype(np.int64), -count)
    order = np.lexsort((np.arange(at.size), rank, at))
    ahead = np.ones(at.size, dtype=bool)
    ahead[order[1:]] = at[order[1:]] != at[order[:-1]]
    masks = np.where(ahead, 0, units)
    groups, sizes = np.unique(_number(masks, by), return_counts=True)
    span = int(by.max(initial=0)) + 1
    return groups % span, (groups // span > 0).astype(np.int64), -(-sizes * found.times // cycles)
