"""How a lookup spreads its operands, and the loads in which it brings the rows.

A row of the table lies in DRAM as one run of long words, padded to whole addresses of LM. Along a
row, the elements fill the words of a long word, the PEs, the MABs, and then the addresses. The
table has the same rows in every group. The axes of the index lie on L2Bs, L1Bs and addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from ...graph.digits import Part, all_ranges, primes
from ...graph.dtypes import MNDtype
from ...graph.layout import UNIT_LEVELS, Broadcast, Layout, Level, SubAxis
from ...machine import WORDS_PER_LONG, IntArray, Target
from ..default_layout import built, closed, dense
from ..dram_transfer_instructions import equal_units, legal_set, members

_EVERYWHERE = Layout((), tuple(Broadcast(level) for level in UNIT_LEVELS))
#: The levels on which the axes of the index may lie.
_SPREAD = (Level.L2B, Level.L1B, Level.ADDR)


@dataclass(frozen=True)
class RowShape:
    """The size of a row: ``addresses`` of LM, ``blocks`` of DRAM that an entry names each.

    Only the first ``used`` addresses have elements.
    """

    used: int
    addresses: int
    blocks: int
    words: int


@dataclass(frozen=True)
class Load:
    """Rows that one filling of the address registers brings.

    ``asked`` has the address of the index for every row, in the order in which rows come.
    """

    asked: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Rows that go to the PEs together: as many for every set of L1Bs.

    ``goals`` are the addresses of the result of the rows of one set.
    """

    goals: tuple[int, ...]
    loads: tuple[Load, ...]


def row_shape(width: int, dtype: MNDtype, target: Target) -> RowShape:
    """Return the size of a row of ``width`` elements."""
    each = unit_words(target)
    # The PEs of a MAB compute entries of a row together, so its addresses have whole vectors.
    unit = lcm(each, target.mv_unit, entries_per_word(target) * target.mv_block) // each
    used = -(-width // (each * dtype.words_per_long))
    addresses = -(-used // unit) * unit
    return RowShape(used, addresses, addresses * each // target.mv_block, addresses * each)


def unit_words(target: Target) -> int:
    """Return the long words of an L1B at one address of LM."""
    return target.counts["mab"] * target.counts["pe"]


def entries_per_word(target: Target) -> int:
    """Return the entries that the PEs of a MAB hold at one address."""
    return target.counts["pe"] * WORDS_PER_LONG


def longest_row(dtype: MNDtype, target: Target) -> int:
    """Return the most elements of a row."""
    return target.dar_row * dtype.words_per_long


def table_layout(shape: tuple[int, ...], dtype: MNDtype, target: Target) -> Layout:
    """Return the layout of a table in DRAM, of shape (rows, elements of a row)."""
    row = row_shape(shape[1], dtype, target)
    rows = [Part(1, shape[0], Level.ADDR, row.addresses)] if shape[0] > 1 else []
    made = built(shape, {0: rows, 1: _along(shape[1], dtype, target)}, _EVERYWHERE, dtype, target)
    assert made is not None
    return made


def result_layout(
    wanted: Layout | None, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> Layout | None:
    """Return the layout of the result whose rows lie as in ``wanted``; None if there is none.

    Without ``wanted`` the rows are spread over L2Bs, then over L1Bs.
    """
    *index, width = shape
    row = row_shape(width, dtype, target)
    if wanted is None:
        # L2BM holds a row for every L1B that has other rows.
        found = _spread(index, row_words(target) // row.words, target)
    else:
        kept = [[p for p in _parts(axis) if p.level in _SPREAD] for axis in wanted.axes]
        found = {axis: closed(kept[axis], size) for axis, size in enumerate(index)}
    placed = {
        axis: [
            p._replace(stride=p.stride * row.addresses) if p.level is Level.ADDR else p for p in own
        ]
        for axis, own in dense(found).items()
    }
    placed[len(index)] = _along(width, dtype, target)
    made = built(shape, placed, _EVERYWHERE, dtype, target)
    if made is None or not all(legal_set(one, target) for one in _sets(made, target)):
        return None
    return made if len(l1b_sets(made, target)) * row.words <= row_words(target) else None


def index_layout(result: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target) -> Layout:
    """Return the layout of the index for ``result`` of shape ``shape``: L1Bs hold copies."""
    placed = {
        axis: [
            p._replace(level=Level.ADDR, stride=0) if p.level is Level.L1B else p
            for p in _parts(own)
        ]
        for axis, own in enumerate(result.axes[:-1])
    }
    made = built(shape[:-1], dense(placed), _EVERYWHERE, dtype, target)
    assert made is not None
    return made


def _parts(axis: Sequence[SubAxis]) -> list[Part]:
    """Return the parts of an axis with their padding, minor first."""
    out, lo = list[Part](), 1
    for sub in reversed(axis):
        if sub.size > 1:
            out.append(Part(lo, sub.size, sub.level, sub.stride))
        lo *= sub.size
    return out


def _along(width: int, dtype: MNDtype, target: Target) -> list[Part]:
    """Return the parts of a row. All PEs of an L1B have some, so that DRAM has the same order."""
    ranges = all_ranges(target.level_range, dtype)
    out, lo = list[Part](), 1
    for level in (Level.W, Level.PE, Level.MAB):
        if ranges[level] > 1:
            out.append(Part(lo, ranges[level], level, 1))
        lo *= ranges[level]
    if width > lo:
        out.append(Part(lo, -(-width // lo), Level.ADDR, 1))
    return out


def _spread(index: Sequence[int], most: int, target: Target) -> dict[int, list[Part]]:
    """Return parts of the axes of the index: outer digits on L2Bs, then on L1Bs, then in Addr.

    Each digit goes to the axis that it pads least. At most ``most`` L1Bs have rows of their own.
    """
    rest, found = list(index), {axis: list[Part]() for axis in range(len(index))}
    for level in (Level.L2B, Level.L1B):
        for stride, size in reversed(primes(target.level_range[level.value])):
            long = [axis for axis, left in enumerate(rest) if left > 1]
            if long and (level is Level.L2B or size <= most):
                most //= size if level is Level.L1B else 1
                axis = min(long, key=lambda one, by=size: -rest[one] % by / rest[one])  # type: ignore[misc]
                found[axis].append(Part(0, size, level, stride))
                rest[axis] = -(-rest[axis] // size)
    out = {}
    for axis, left in enumerate(rest):
        out[axis], lo = [Part(1, left, Level.ADDR, 0)] if left > 1 else [], left
        for part in reversed(found[axis]):
            out[axis].append(part._replace(lo=lo))
            lo *= part.size
    return out


def _sets(layout: Layout, target: Target) -> tuple[int, ...]:
    return equal_units(layout, Level.L1B, target)


@lru_cache(maxsize=256)
def l1b_sets(result: Layout, target: Target) -> tuple[int, ...]:
    """Return the sets of L1Bs that hold the same rows of the result; bit u is L1B u."""
    found = _coordinates(result.axes[:-1], result.padded_shape[:-1])[Level.L1B]
    reached = set(found.tolist())
    return tuple(one for one in _sets(result, target) if reached & set(members(one)))


@lru_cache(maxsize=256)
def batches(
    result: Layout, index: Layout, shape: tuple[int, ...], row: RowShape, target: Target
) -> tuple[Batch, ...]:
    """Return the batches of a lookup, each as large as the memories above LM allow.

    ``shape`` is that of the index.
    """
    asked = _asked(result, index, shape)
    goals = sorted({goal for _, goal in asked})
    sets = l1b_sets(result, target)
    first = [min(set(members(one)) & {l1b for l1b, _ in asked}) for one in sets]
    each = target.dar_entries // row.blocks
    room = min(
        target.words("l1bm") // row.words,
        row_words(target) // (row.words * len(sets)),
        max(1, each // len(sets)),
    )
    # Whole vectors go down where that is possible.
    whole = lcm(row.addresses, target.cycles) // row.addresses
    room = room // whole * whole or room

    def made() -> Iterator[Batch]:
        for start in range(0, len(goals), room):
            own = goals[start : start + room]
            rows = [asked[l1b, goal] for l1b in first for goal in own]
            loads = (Load(tuple(rows[at : at + each])) for at in range(0, len(rows), each))
            yield Batch(tuple(own), tuple(loads))

    return tuple(made()) if room else ()


def row_words(target: Target) -> int:
    """Return the long words of L2BM in which rows arrive; entries have the others."""
    return target.words("l2bm") - target.dar_rows


def _asked(result: Layout, index: Layout, shape: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Return the address of the index for every L1B and address of the result's rows.

    Rows of padding ask for what lies at address 0.
    """
    padding = _coordinates(result.axes[:-1], result.padded_shape[:-1])
    pairs = zip(padding[Level.L1B].tolist(), padding[Level.ADDR].tolist(), strict=True)
    out = dict.fromkeys(pairs, 0)
    here, there = _coordinates(result.axes[:-1], shape), _coordinates(index.axes, shape)
    triples = zip(
        here[Level.L1B].tolist(), here[Level.ADDR].tolist(), there[Level.ADDR].tolist(), strict=True
    )
    return out | {(l1b, goal): source for l1b, goal, source in triples}


def _coordinates(
    axes: tuple[tuple[SubAxis, ...], ...], shape: tuple[int, ...]
) -> dict[Level, IntArray]:
    """Return the coordinates of all elements of some axes."""
    places = np.indices(shape).reshape(len(axes), -1)
    zero = np.zeros(places.shape[1], dtype=np.int64)
    return dict.fromkeys(_SPREAD, zero) | Layout(axes).coordinates(*places)
