"""The code of a recut: units of DRAM come to L2BM, are moved by less than a unit, and go back.

MVs move whole units. Where a piece begins somewhere else in its unit than in that of the result,
its long words pass through the PEs: ``l2bmb`` moves by blocks of L2BM, and ``shifts.py`` by less.
All L2Bs do so at the same time, with a part of the units each. Pieces that are moved by as much
share such a part, each in a *place* of a unit behind the other. Units of the result that consist of
several pieces are put together word by word under a mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from ...code.lines import BlockOperand, Line, Move, single_step
from ...graph.graph import MNGraph, MNNode, MNValue
from ...machine import IntArray, Target
from ..base import layout_of
from ..dram_transfer_plan import dram_words
from .pieces import Piece, mixed_units, pieces_of, whole_units
from .plain import unit_of, units_in_dram
from .shifts import Shifts

#: The most vectors of a PE in one part.
_VECTORS = 4
_TURNS = 2  # buffers of L2BM
_NOTHING = -1  # a place without a unit


@dataclass(frozen=True)
class _Room:
    """The sizes of a part of a piece: ``share`` long words of each L1B."""

    target: Target
    share: int

    @property
    def vector(self) -> int:
        """The long words of one vector of all PEs of an L1B."""
        target = self.target
        return target.counts["mab"] * target.counts["pe"] * target.cycles

    @property
    def step(self) -> int:
        """The long words that one step brings to an L1B."""
        return self.target.transfer("l2bmb", "down").source_words

    @property
    def words(self) -> int:
        """The long words of L2BM that a part takes."""
        return self.share * self.target.counts["l1b"]

    @property
    def buffer(self) -> int:
        """The long words of L2BM for a part as it comes and as it leaves."""
        return 2 * self.words + 3 * self.target.mv_unit + 2 * self.step

    @property
    def local(self) -> int:
        """The long words of L1BM for the share of a part as it comes."""
        unit = self.vector
        return -(-(self.share + 2 * self.step) // unit) * unit


def _room(target: Target, words: int) -> _Room:
    """Return the room for parts of at most ``words`` long words in each L2B."""
    one = _Room(target, 0).vector
    for vectors in range(_VECTORS, 0, -1):
        room = _Room(target, vectors * one)
        fits = _TURNS * room.buffer <= target.words("l2bm")
        fits = fits and room.local + room.share <= target.words("l1bm")
        if vectors == 1 or (fits and words > (vectors - 1) * one * target.counts["l1b"]):
            return room
    raise AssertionError


class _Operand:
    """A value in DRAM: the group and the long word of each of its units, row by row."""

    def __init__(self, value: MNValue, target: Target):
        self.value, self.size = value, target.mv_unit
        groups, words = units_in_dram(value, target)
        self.per_row = groups.shape[1]
        self.groups, self.words = groups.reshape(-1), words.reshape(-1)
        self.end = dram_words(layout_of(value), target)

    def units(self, row: int, first: int, count: int) -> IntArray:
        """Return the numbers of units of a row; those outside of the row are `_NOTHING`."""
        found = np.arange(first, first + count)
        inside = (found >= 0) & (found < self.per_row)
        return np.where(inside, row * self.per_row + found, _NOTHING)

    def moves(self, units: IntArray) -> Iterator[tuple[int, int, BlockOperand]]:
        """Yield the first place, the long words and the operand of each run of units in DRAM."""
        places = np.flatnonzero(units != _NOTHING)
        if not len(places):
            return
        groups, words = self.groups[units[places]], self.words[units[places]]
        breaks = (np.diff(words) != self.size) | (np.diff(groups) != 0) | (np.diff(places) != 1)
        ends = np.flatnonzero(breaks) + 1
        for start, stop in zip((0, *ends), (*ends, len(places)), strict=True):
            first, long = int(words[start]), int(stop - start) * self.size
            assert first + long <= self.end
            name, group = self.value.name, int(groups[start])
            yield int(places[start]), long, BlockOperand("dram", first, long, name, group=group)


@dataclass(frozen=True)
class _Places:
    """Units that come and go side by side; each number belongs to one of the operands.

    Units that are moved need the next one too. So the last one of a piece has a place behind it
    that nothing is stored from.
    """

    operands: IntArray
    units: IntArray


class _Recut:
    """Makes the code of one node."""

    def __init__(self, node: MNNode, graph: MNGraph, target: Target):
        self.target = target
        self.sources = [_Operand(graph.values[name], target) for name in node.inputs]
        goal = graph.values[node.outputs[0]]
        self.goal = _Operand(goal, target)
        self.length = goal.shape[-1]
        self.unit = unit_of(goal.dtype, target)
        self.per_long = goal.dtype.words_per_long
        self.pieces = list(pieces_of(node, graph))
        self.shifts = Shifts(goal.dtype, target)
        self.turn = count()

    def lines(self) -> Iterator[Line]:
        whole: dict[tuple[int, int], list[tuple[Piece, range]]] = {}
        for piece in self.pieces:
            units = whole_units(piece, self.unit, self.length)
            if units:
                whole.setdefault(self._first(piece)[1:], []).append((piece, units))
        for (offset, shift), alike in whole.items():
            yield from self._whole(alike, offset, shift)
        mixed: dict[tuple[tuple[int, ...], ...], list[tuple[int, int, list[Piece]]]] = {}
        for (row, number), found in mixed_units(self.pieces, self.unit, self.length).items():
            begins = [piece.to - number * self.unit for piece in found]
            key = tuple(
                (max(0, begin), *self._first(piece)[1:])
                for begin, piece in zip(begins, found, strict=True)
            )
            mixed.setdefault(key, []).append((row, number, found))
        if mixed:
            yield from self.shifts.numbers()
        for steps, joined in mixed.items():
            each = len(joined) if self.shifts.vectors_alike else 1
            for start in range(0, len(joined), each):
                yield from self._mixed(joined[start : start + each], steps)

    def _first(self, piece: Piece) -> tuple[int, int, int]:
        """Return by how many units, blocks of L2BM and elements a source is ahead of its result.

        Blocks are counted in long words.
        """
        units, rest = divmod(piece.at - piece.to, self.unit)
        block = self.target.transfer("l2bmb", "down").source_words // self.target.cycles
        blocks = rest // self.per_long // block * block
        return units, blocks, rest - blocks * self.per_long

    # -- moves ---------------------------------------------------------------------------------

    def _parts(self, total: int) -> tuple[_Room, Iterator[list[range]]]:
        """Return the room for a number of places, and the parts of all L2Bs at a time."""
        l2bs, each = self.target.level_range["L2B"], self.target.mv_unit
        # All L2Bs have parts of the same number of units.
        room = _room(self.target, -(-total // l2bs) * each)
        most = min(room.words // each, -(-total // l2bs))

        def parts() -> Iterator[list[range]]:
            for start in range(0, total, most * l2bs):
                begins = range(start, min(start + most * l2bs, total), most)
                yield [range(begin, min(begin + most, total)) for begin in begins]

        return room, parts()

    def _bring(self, places: _Places, wanted: range, base: int, l2b: int) -> Iterator[Line]:
        """Bring units to L2BM; the first one goes to ``base``."""
        operands = places.operands[wanted.start : wanted.stop]
        units = places.units[wanted.start : wanted.stop]
        for number in np.unique(operands):
            own = np.where(operands == number, units, _NOTHING)
            for first, long, place in self.sources[number].moves(own):
                at = base + first * self.target.mv_unit
                yield Move("mvp", long, place, self._l2bm(at, long, l2b))

    def _store(self, goals: IntArray, base: int, l2b: int) -> Iterator[Line]:
        for first, long, place in self.goal.moves(goals):
            at = base + first * self.target.mv_unit
            yield Move("mvp", long, self._l2bm(at, long, l2b), place)

    def _l2bm(self, at: int, words: int, l2b: int) -> BlockOperand:
        group, own = divmod(l2b, self.target.l2bs_per_group)
        return BlockOperand("l2bm", at, words, l2b=own, group=group)

    def _turn(self, room: _Room) -> int:
        """Return where the next buffer of L2BM begins."""
        return next(self.turn) % _TURNS * room.buffer

    def _down(self, base: int, words: int, room: _Room) -> Iterator[Line]:
        """Bring a part of every L2B to L1BM."""
        for l1b in range(-(-words // room.share)):
            own = min(room.share, words - l1b * room.share)
            for at in range(0, own + room.step, room.step):
                above = BlockOperand("l2bm", base + l1b * room.share + at, room.step)
                there = BlockOperand("l1bm", at, room.step)
                yield single_step("l2bm", f"l2bmb@{l1b}", (above,), there)

    def _up(self, base: int, words: int, room: _Room) -> Iterator[Line]:
        """Bring what the PEs have made to L2BM."""
        for l1b in range(-(-words // room.share)):
            own = min(room.share, words - l1b * room.share)
            for at in range(0, own, room.step):
                below = BlockOperand("l1bm", room.local + at, room.step)
                above = BlockOperand("l2bm", base + l1b * room.share + at, room.step)
                yield single_step("l2bm", f"l2bm@{l1b}", (below,), above)

    # -- whole units ---------------------------------------------------------------------------

    def _whole(
        self, alike: Sequence[tuple[Piece, range]], offset: int, shift: int
    ) -> Iterator[Line]:
        """Yield the code for units that one piece fills; all pieces are moved by as much."""
        moved = bool(offset or shift)
        sources, goals = list[IntArray](), list[IntArray]()
        for piece, units in alike:
            first, size = self._first(piece)[0] + units.start, len(units)
            sources.append(self.sources[piece.source].units(piece.row, first, size + moved))
            goals.append(self.goal.units(piece.goal_row, units.start, size))
            if moved:
                goals.append(np.array([_NOTHING]))
        numbers = [np.full(len(s), p.source) for s, (p, _) in zip(sources, alike, strict=True)]
        places = _Places(np.concatenate(numbers), np.concatenate(sources))
        stored = np.concatenate(goals)
        if shift % self.per_long == 0 and moved:
            yield from self.shifts.masks(shift)
        room, all_parts = self._parts(len(stored))
        for parts in all_parts:
            base = self._turn(room)
            up = base + room.buffer - room.words if moved else base
            for l2b, part in enumerate(parts):
                # The last unit of a part may need the first one of the next part.
                more = int(moved and stored[part.stop - 1] != _NOTHING)
                yield from self._bring(places, range(part.start, part.stop + more), base, l2b)
            if moved:
                words = len(parts[0]) * self.target.mv_unit
                yield from self._down(base + offset, words, room)
                for number, at in enumerate(range(0, min(words, room.share), room.vector)):
                    made = yield from self.shifts.shifted(at, shift, number)
                    there = BlockOperand("l1bm", room.local + at, room.vector)
                    yield single_step("l1bm", "l1bmd", (made,), there)
                yield from self._up(up, words, room)
            for l2b, part in enumerate(parts):
                yield from self._store(stored[part.start : part.stop], up, l2b)

    # -- units of several pieces ---------------------------------------------------------------

    def _mixed(
        self, joined: Sequence[tuple[int, int, list[Piece]]], steps: Sequence[tuple[int, ...]]
    ) -> Iterator[Line]:
        """Yield the code for units of several pieces, which begin alike and are moved alike."""
        stored = np.full(2 * len(joined), _NOTHING)
        read = [_Places(stored.copy(), stored.copy()) for _ in steps]
        for at, (row, number, pieces) in enumerate(joined):
            stored[2 * at] = self.goal.units(row, number, 1)[0]
            for places, piece in zip(read, pieces, strict=True):
                own = slice(2 * at, 2 * at + 2)
                places.operands[own] = piece.source
                first = number + self._first(piece)[0]
                places.units[own] = self.sources[piece.source].units(piece.row, first, 2)
        room, all_parts = self._parts(len(stored))
        for parts in all_parts:
            words = len(parts[0]) * self.target.mv_unit
            vectors = range(0, min(words, room.share), room.vector)
            for index, (places, (begin, offset, shift)) in enumerate(zip(read, steps, strict=True)):
                base = self._turn(room)
                for l2b, part in enumerate(parts):
                    yield from self._bring(places, range(part.start, part.stop + 1), base, l2b)
                yield from self._down(base + offset, words, room)
                if index:
                    yield from self.shifts.behind(begin)
                if shift % self.per_long == 0:
                    yield from self.shifts.masks(shift)
                for number, at in enumerate(vectors):
                    made = yield from self.shifts.shifted(at, shift, number)
                    yield self.shifts.merged(made, number, masked=bool(index))
            for number, at in enumerate(vectors):
                there = BlockOperand("l1bm", room.local + at, room.vector)
                yield single_step("l1bm", "l1bmd", (self.shifts.sum(number),), there)
            up = base + room.buffer - room.words
            yield from self._up(up, words, room)
            for l2b, part in enumerate(parts):
                yield from self._store(stored[part.start : part.stop], up, l2b)


def recut_lines(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Line]:
    """Yield the code."""
    yield from _Recut(node, graph, target).lines()
