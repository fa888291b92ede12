"""The moves of passes and their steps, in Python: the reference of the crate ``switches``."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
from reference_pass_ways import casts, count_fills, rows
from reference_straight_rows import count_straight, straight

from pycompiler.cost.moves import broadcast_rate, latency_steps, pdm_rate
from pycompiler.graph.digits import Part, PrimeDigit, all_ranges, copied_digits, segments
from pycompiler.graph.layout import UNIT_LEVELS, Level
from pycompiler.layers.switch.l1b_passes import _blocks
from pycompiler.layers.switch.l1bm_vectors import l1bm_room
from pycompiler.layers.switch.pass_moves import LayoutChange, Moves, NoPassError
from pycompiler.layers.switch.rows import origins_of, rows_of_l1b
from pycompiler.layers.switch.word_passes import ADDRESSED_BITS, _groups
from pycompiler.machine import IntArray, Target


def pass_steps(change: LayoutChange, level: Level, target: Target) -> int:
    """Estimate the steps of the pass over ``level``, hazards included.

    NoPassError if one pass cannot do it.
    """
    # If several rows go together, the number of rows matters, and a pattern does not tell it.
    whole = level is Level.L1B and rows_together(target) > 1
    found = (moves if whole else pattern)(change, level, target)
    if level is Level.W:
        cost = word_cost(found, change.dtype.bits, target)
    elif level is Level.PE:
        cost = pe_cost(found, target)
    elif level is Level.MAB:
        cost = mab_cost(found, target)
    elif level is Level.L1B:
        cost = l1b_cost(found, target)
    else:
        cost = l2b_cost(found, target)
    return cost + _around(target)


def _around(target: Target) -> int:
    """Estimate the steps that hazards cost before and behind a pass."""
    return 2 * target.cycles


def least_steps(level: Level, target: Target, *, copies: bool) -> int:
    """Return a lower bound of :func:`pass_steps` for passes over ``level``.

    With ``copies``, units of the level may hold copies, so that nothing need go to another unit.
    """
    zero = np.zeros(1, dtype=np.int64)
    least = Moves(zero + 1, zero, zero, zero)
    assert least.result != least.source
    costs_of = {Level.L1B: l1b_cost, Level.L2B: l2b_cost}
    # On the other levels a single move may cost next to nothing: count one step.
    far = level in costs_of and not copies and target.level_range[level.value] > 1
    return (costs_of[level](least, target) if far else 1) + _around(target)


def moves(change: LayoutChange, level: Level, target: Target) -> Moves:
    """Return the moves of the pass over ``level``; NoPassError if one pass cannot do it."""
    return _combined(_dims(change, level, target)[0], change.shape)


def pattern(change: LayoutChange, level: Level, target: Target) -> Moves:
    """Return the moves for one value of the digits that only change their addresses.

    ``times`` of the result is the number of values that these digits have.
    """
    dims, idle = _dims(change, level, target, whole=False)
    return replace(_combined(dims, change.shape), times=idle)


class _Dim:
    """The amounts that the values of one digit add to the four coordinates and an axis's index."""

    def __init__(self, size: int, axis: int | None = None, lo: int = 0):
        self.result, self.result_at, self.source, self.source_at = (
            np.zeros(size, dtype=np.int64) for _ in range(4)
        )
        self.axis = axis
        self.index = np.arange(size, dtype=np.int64) * lo

    def put(self, side: str, level: Level, places: IntArray) -> None:
        name = f"{side}_at" if level is Level.ADDR else side
        setattr(self, name, getattr(self, name) + places)


def _dims(
    change: LayoutChange, level: Level, target: Target, whole: bool = True
) -> tuple[list[_Dim], int]:
    """Return the digits of a pass, and the number of values of the digits left out.

    Digits that only change their addresses are left out if ``whole`` is false.
    """
    source, result, shape = change.source, change.result, change.shape
    ranges = all_ranges(target.level_range, change.dtype)
    open_levels = (level, Level.ADDR)
    for other in (Level.W, *UNIT_LEVELS):
        if other is not level:
            have, want = (copied_digits(x, other, ranges) for x in (source, result))
            if not want <= have:
                raise NoPassError(f"no copies on {other.value}")
    have, want = (copied_digits(x, level, ranges) for x in (source, result))
    dims: list[_Dim] = []
    idle = 1
    found_segments = segments(source, result, shape)
    reach = dict.fromkeys(range(len(shape)), 1)
    for segment in found_segments:
        reach[segment.axis] *= segment.size
    for segment in found_segments:
        in_addr = all(part.level is Level.ADDR for part in (*segment.source, *segment.result))
        if in_addr and not whole and reach[segment.axis] == shape[segment.axis]:
            idle *= segment.size
            continue
        if segment.source == segment.result or _matched(segment.source, segment.result):
            pairs = zip(segment.source, segment.result, strict=True)
            digits = (_digit(segment.axis, a, b, have, open_levels) for a, b in pairs)
            dims += [dim for dim in digits if dim is not None]
            continue
        places = (*segment.source, *segment.result)
        if any(part.level not in open_levels for part in places):
            raise NoPassError(f"axis {segment.axis} is cut otherwise")
        dim = _Dim(segment.size, segment.axis, segment.lo)
        index = np.arange(segment.size, dtype=np.int64)
        for side, found in (("source", segment.source), ("result", segment.result)):
            for part in found:
                digit = index // (part.lo // segment.lo) % part.size
                dim.put(side, part.level, digit * part.stride)
        dims.append(dim)
    for stride, size in sorted(want):
        dim = _Dim(size)
        digit = np.arange(size, dtype=np.int64) * stride
        dim.put("result", level, digit)
        if (stride, size) in have:
            dim.put("source", level, digit)
        dims.append(dim)
    return dims, idle


def _matched(ours: tuple[Part, ...], theirs: tuple[Part, ...]) -> bool:
    return [(p.lo, p.size) for p in ours] == [(p.lo, p.size) for p in theirs]


def _digit(
    axis: int, a: Part, b: Part, have: frozenset[PrimeDigit], open_levels: tuple[Level, Level]
) -> _Dim | None:
    if a.level not in open_levels and b.level not in open_levels:
        if (a.level, a.stride) != (b.level, b.stride):
            raise NoPassError(f"a digit goes from {a.level.value} to {b.level.value}")
        return None
    if a.level not in open_levels or b.level not in open_levels:
        raise NoPassError(f"a digit goes from {a.level.value} to {b.level.value}")
    index = np.arange(a.size, dtype=np.int64)
    dim = _Dim(a.size, axis, a.lo)
    dim.put("source", a.level, index * a.stride)
    dim.put("result", b.level, index * b.stride)
    if a.level is Level.ADDR and b.level is not Level.ADDR:
        # The source has copies on these units, so each unit takes the value from its own copy.
        reach = {0}
        for stride, size in have:
            reach = {at + stride * value for at in reach for value in range(size)}
        if all(int(at) in reach for at in index * b.stride):
            dim.put("source", b.level, index * b.stride)
    return dim


def _combined(dims: list[_Dim], shape: tuple[int, ...]) -> Moves:
    def total(arrays: list[IntArray]) -> IntArray:
        out = np.zeros(1, dtype=np.int64)
        for array in arrays:
            out = (out[:, None] + array).reshape(-1)
        return out

    # Digits may reach past the end of an axis. Another element may lie there, so drop such moves.
    inside = np.ones(total([np.zeros_like(dim.index) for dim in dims]).size, dtype=bool)
    for axis, size in enumerate(shape):
        own = [d.index if d.axis == axis else np.zeros_like(d.index) for d in dims]
        inside &= total(own) < size
    return Moves(
        total([dim.result for dim in dims])[inside],
        total([dim.result_at for dim in dims])[inside],
        total([dim.source for dim in dims])[inside],
        total([dim.source_at for dim in dims])[inside],
    )


def word_cost(found: Moves, bits: int, target: Target) -> int:
    """Count the steps of :func:`word_steps`."""
    if bits == ADDRESSED_BITS:
        places = set(zip(found.result.tolist(), found.result_at.tolist(), strict=True))
        return -(-len(places) * found.times // target.cycles)
    groups, cuts = _groups(found, bits)
    return 2 * len(cuts) + sum(
        -(-len(rows) * found.times // target.cycles) * 3 * len(group)
        for group, rows in groups.items()
    )


#: Steps that set a mask.
_MASK = 3


def pe_cost(found: Moves, target: Target) -> int:
    """Count the steps of ``pe_mab_passes.pe_steps``; a mask takes three."""
    count = target.counts["pe"]
    by, masked, vectors = _turns(found, count, target.cycles)
    rounds = np.maximum(1, np.minimum(by, count - by))
    return int((rounds * vectors).sum() + _MASK * masked.sum())


def mab_cost(found: Moves, target: Target) -> int:
    """Count the steps of ``pe_mab_passes.mab_steps``; a mask takes three."""
    other = _turns_or_casts(found, target)
    fills = count_fills(rows(found, target, even=True), target, found.times)
    return other if fills is None else min(other, fills)


def _turns_or_casts(found: Moves, target: Target) -> int:
    count = target.counts["mab"]
    _, masked, vectors = _turns(found, count, target.cycles)
    by_turns = int(2 * vectors.sum() + _MASK * masked.sum())
    by_turns = min(by_turns, _shared(found, target))
    # A cast brings at most one vector of results. This bound often shows that turns are cheaper.
    results = np.unique(_number(found.source_at, found.result_at, found.source)).size * found.times
    read = np.unique(found.source_at).size * found.times
    if by_turns <= -(-read // target.cycles) + -(-results // target.cycles):
        return by_turns
    all_casts = casts(found, count, target.cycles)
    masks = {cast.units for cast in all_casts if cast.units is not None}
    by_casts = -(-read // target.cycles) + len(all_casts) * found.times + _MASK * len(masks)
    return min(by_turns, by_casts)


def _shared(found: Moves, target: Target) -> int:
    """Count the steps of ``shared_turns.shared_steps``, one vector of sources at a time."""
    count = target.counts["mab"]
    rows = zip(found.result, found.result_at, found.source, found.source_at, strict=True)
    writers: dict[int, dict[tuple[int, int], set[int]]] = {}
    for result, result_at, source, source_at in rows:
        ways = writers.setdefault(int(source_at), {})
        ways.setdefault((int(result - source) % count, int(result_at)), set()).add(int(result))
    # Sources whose turns and writing units are the same go up together.
    kinds = Counter(
        tuple(sorted((by, tuple(sorted(units))) for (by, _), units in ways.items()))
        for ways in writers.values()
    )
    steps = vectors = 0
    masks = set()
    for turns, sources in kinds.items():
        some = -(-sources * found.times // target.cycles)
        vectors += some
        # The way up takes a step of its own unless the ALU copies beside it; nothing goes up if
        # the ALU copies all.
        copies = sum(by == 0 for by, _ in turns)
        steps += some * (len(turns) + (copies == 0))
        masks |= {units for _, units in turns if len(units) < count}
    batches = -(-vectors // l1bm_room(target).vectors)
    kept = len(masks) < target.masks["entries"]
    return steps + _MASK * len(masks) * (1 if kept else batches)


def rows_together(target: Target) -> int:
    """Return how many rows one instruction between L1BM and L2BM moves."""
    return rows_of_l1b(target).block


def l1b_cost(found: Moves, target: Target) -> int:
    """Estimate the steps of ``l1b_passes.l1b_steps``."""
    if (found.source == found.result).all():
        return copies_cost(found, target.counts["l1b"], target)
    room = rows_of_l1b(target)
    wide = max(1, room.row // target.transfer("l2bm", "up", l1b_number=0).source_words)
    if room.block == 1:
        up = np.unique(_number(found.source, found.source_at)).size
        down = np.unique(_number(found.result_at, found.source, found.source_at)).size
        rows = np.unique(found.result_at).size
    else:
        blocks = _blocks(origins_of(found, target.counts["l1b"]), room.block)
        origins = [{o for o in block.origins if o is not None} for block in blocks]
        up, down = len(set().union(*origins)), sum(map(len, origins))
        rows = len(blocks) * room.block
    times = found.times
    through = wide * (up + down) * times + 2 * -(-rows * times // room.vector)
    sent = straight(origins_of(found, target.counts["l1b"]), target)
    return through if sent is None else min(through, count_straight(sent, target, times))


def l2b_cost(found: Moves, target: Target) -> int:
    """Estimate the steps of ``l2b_passes.l2b_lines``, with the waits for MVs."""
    if (found.source == found.result).all():
        return copies_cost(found, target.level_range["L2B"], target)
    row = rows_of_l1b(target).row * target.counts["l1b"]
    columns = (found.result, found.source, found.source_at, found.result_at)
    rows_of = list(zip(*(column.tolist() for column in columns), strict=True))
    units = target.level_range["L2B"]
    takers = Counter(row[1:] for row in rows_of)
    # The cycles for which a word of each row holds the ports of PDMs and L2BMs.
    near, far = (1 / pdm_rate(target, far=way) for way in (False, True))
    all_ = 1 / broadcast_rate(target)
    ports: dict[tuple[str, int], Fraction] = defaultdict(Fraction)

    def hold(port: str, unit: int, time: Fraction) -> None:
        ports[port, unit] += time

    for unit, _, _ in (row for row, count in takers.items() if count == units):
        hold("pdm", unit // target.l2bs_per_group, near + all_)
        hold("l2bm", unit, near)
        for to in range(units):
            hold("l2bm", to, all_)
    moved = [row[:3] for row in rows_of if takers[row[1:]] < units]
    for home, unit, _ in {(to // target.l2bs_per_group, unit, at) for to, unit, at in moved}:
        time = near if unit // target.l2bs_per_group == home else far
        hold("pdm", home, time)
        hold("l2bm", unit, time)
    for to, _, _ in moved:
        hold("pdm", to // target.l2bs_per_group, near)
        hold("l2bm", to, near)
    rows = np.unique(found.source_at).size + np.unique(found.result_at).size
    mvs = ceil(max(ports.values()) * row / target.cycles)
    return int(2 * latency_steps(target) + found.times * (mvs + rows))


def copies_cost(found: Moves, count: int, target: Target) -> int:
    """Count the steps of ``local_copies.copy_steps``; a mask takes three."""
    _, masked, vectors = _turns(found, count, target.cycles)
    return int(vectors.sum() + _MASK * masked.sum())


def _number(*keys: IntArray) -> IntArray:
    """Return one number per combination of keys. The keys must not be negative."""
    code = np.zeros_like(keys[0])
    for key in keys:
        code = code * (int(key.max(initial=0)) + 1) + key
    return code


def _turns(found: Moves, count: int, cycles: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return for every turn the units upwards, whether it has a mask, and its vectors.

    The turns are those of ``pe_mab_passes.turns``.
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
