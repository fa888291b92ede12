"""Passes between L1Bs that need no L2BM: `l2bmi` sends rows from L1BM straight to other L1BMs.

One instruction serves all L1Bs of an L2B. Some of them send, all the same row, and each L1B takes
from the sender that agrees with it in some bits of its number. If the L1Bs of a result row take
different rows, several instructions send it, and masks let each L1B write what it shall take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from emu2 import _core

from ...code.lines import BlockOperand, PeOperand, Step
from ...graph.dtypes import MNDtype
from ...graph.layout import Level
from ...machine import Target
from ..scratch import Words
from .pass_costs import facts
from .pass_moves import Moves
from .rows import RowRoom, l2_step, rows_of_l1b, way_down, way_up
from .unit_masks import NUMBERS, UnitMasks, choose_units


@dataclass(frozen=True)
class Sent:
    """``row`` of the senders goes to row ``at`` of ``units``, a bit for each; None means all."""

    at: int
    row: int
    mnemonic: str
    units: int | None


def straight_rows(found: Moves, target: Target) -> list[Sent] | None:
    """Return how rows go straight.

    None if they cannot, or if the way through L2BM takes fewer steps.
    """
    sent = _core.straight_rows(found.rows, facts(MNDtype.FLOAT, target))
    if sent is None:
        return None
    return [
        Sent(at, row, f"l2bmi@{first}/{free}" if free else f"l2bmi@{first}", units or None)
        for at, row, first, free, units in sent
    ]


class _Masks:
    """Makes the masks of rows that only some L1Bs write, of the PEs that may write at all."""

    def __init__(self, around: Mapping[Level, int], target: Target):
        self._around = around
        self._target = target
        self._own = UnitMasks(NUMBERS[Level.L1B], target)
        self._last: tuple[int | None, PeOperand] | None = None

    def use(self, units: int | None, into: list[Step]) -> PeOperand | None:
        """Return the mask of L1Bs, None if all PEs write; the steps that make it go to ``into``."""
        if not self._around:
            return None if units is None else self._own.use(units, into)
        if self._last is None or self._last[0] != units:
            chosen = dict(self._around)
            if units is not None:
                chosen[Level.L1B] = chosen.get(Level.L1B, units) & units
            self._last = units, choose_units(chosen, into, self._target)
        return self._last[1]


def straight_steps(
    sent: Sequence[Sent], source: Words, result: Words, target: Target, around: Mapping[Level, int]
) -> list[Step]:
    """Return the code; only the PEs of the units ``around`` write, if there are any."""
    room = rows_of_l1b(target)
    masks = _Masks(around, target)
    by_result: dict[int, list[Sent]] = defaultdict(list)
    for one in sent:
        by_result[one.at].append(one)
    # Rows that take from the same rows come together, so that each row goes up once.
    ordered = sorted(
        by_result.values(), key=lambda rows: (sorted({r.row for r in rows}), rows[0].at)
    )
    out: list[Step] = []
    start = 0
    while start < len(ordered):
        batch = _Batch(room)
        while start < len(ordered) and batch.takes(ordered[start]):
            start += 1
        out += batch.steps(source, result, masks)
    return out


class _Batch:
    """Rows that have room in L1BM together, going up and coming down."""

    def __init__(self, room: RowRoom):
        self._room = room
        self._reads: dict[int, None] = {}
        self._of_units: dict[int | None, list[Sent]] = defaultdict(list)

    def takes(self, rows: Sequence[Sent]) -> bool:
        """Add the rows that make one result row, unless they find no room."""
        room = self._room
        reads = self._reads | dict.fromkeys(one.row for one in rows)
        sizes = {units: len(those) for units, those in self._of_units.items()}
        for one in rows:
            sizes[one.units] = sizes.get(one.units, 0) + 1
        down = sum(-(-size // room.vector) for size in sizes.values())
        if self._reads and (len(reads) > room.half * room.vector or down > room.half):
            return False
        self._reads = reads
        for one in rows:
            self._of_units[one.units].append(one)
        return True

    def steps(self, source: Words, result: Words, masks: _Masks) -> Iterator[Step]:
        """Yield the code."""
        room, reads = self._room, list(self._reads)
        words = room.row * room.vector
        for start in range(0, len(reads), room.vector):
            part = reads[start : start + room.vector]
            part += [part[-1]] * (room.vector - len(part))
            yield way_up(source, part, start * room.row, words)
        up = {row: index * room.row for index, row in enumerate(reads)}
        down: list[tuple[int | None, list[int], int]] = []
        at = room.half * words
        # What all units write comes first.
        for units in sorted(self._of_units, key=lambda units: (units is not None, units or 0)):
            those = self._of_units[units]
            for start in range(0, len(those), room.vector):
                sends = those[start : start + room.vector]
                # A vector that is not full begins with rows that its last ones overwrite.
                spare = room.vector - len(sends)
                for index, one in enumerate(sends):
                    yield from _send(one, up[one.row], at + (spare + index) * room.row, room)
                down.append((units, [sends[0].at] * spare + [one.at for one in sends], at))
                at += words
        for units, rows, place in down:
            made: list[Step] = []
            mask = masks.use(units, made)
            yield from made
            yield way_down(result, rows, place, words, mask)


def _send(sent: Sent, start: int, goal: int, room: RowRoom) -> Iterator[Step]:
    width = min(room.row, room.l2bm_words)
    for piece in range(0, room.row, width):
        here, there = (BlockOperand("l1bm", place + piece, width) for place in (start, goal))
        yield l2_step(sent.mnemonic, here, there)
