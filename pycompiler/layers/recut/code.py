"""The code of a recut: units of DRAM come to L2BM, are moved by less than a unit, and go back.

MVs move whole units. Where a piece begins somewhere else in its unit than in that of the result,
its long words pass through the PEs: ``l2bmb`` moves by blocks of L2BM, and ``shifts.py`` by less.
All L2Bs do so at the same time, with a part of the units each. Pieces that are moved by as much
share such a part, each in a *place* of a unit behind the other. Units of the result that consist of
several pieces are put together word by word under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from ...code.lines import BlockOperand, Move, PeOperand, Step, single_step
from ...code.nest import Nest, alike, each, runs
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

    @property
    def above(self) -> int:
        """The long word of a buffer of L2BM where a part leaves from."""
        return self.buffer - self.words

    def shares(self, words: int, more: int, line: Callable[[int, int], Nest]) -> Nest:
        """Yield the lines of all L1Bs of a part of ``words``, with ``more`` words of each."""

        def own(l1b: int) -> int:
            return min(self.share, words - l1b * self.share) + more

        def share(l1b: int) -> Nest:
            yield each(range(0, own(l1b), self.step), partial(line, l1b))

        return alike(range(-(-words // self.share)), own, share)

    def kept(self, at: int, made: PeOperand) -> Step:
        """Return the step that brings a vector to L1BM."""
        return single_step(
            "l1bm", "l1bmd", (made,), BlockOperand("l1bm", self.local + at, self.vector)
        )

    def vectors(self, words: int) -> list[tuple[int, int]]:
        """Return number and first long word of the vectors of an L1B of a part of ``words``."""
        return list(enumerate(range(0, min(words, self.share), self.vector)))


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


class _Units:
    """The units of values in DRAM: group and long word of each, value by value and row by row."""

    def __init__(self, values: Sequence[MNValue], target: Target):
        self.values, self.size = values, target.mv_unit
        groups, words = zip(*(units_in_dram(value, target) for value in values), strict=True)
        self.per_row = [own.shape[1] for own in groups]
        self.begins = np.cumsum([0, *(own.size for own in groups)])
        self.groups, self.words = (np.concatenate([*map(np.ravel, x)]) for x in (groups, words))
        self.ends = [dram_words(layout_of(value), target) for value in values]

    def of(self, number: int, row: int, first: int, count: int) -> IntArray:
        """Return units of a row of a value; those outside of the row are `_NOTHING`.

        Units that are moved need the next one too. So the last one of a piece has a place behind it
        that nothing is stored from.
        """
        found, per_row = np.arange(first, first + count), self.per_row[number]
        inside = (found >= 0) & (found < per_row)
        return np.where(inside, self.begins[number] + row * per_row + found, _NOTHING)

    def moves(self, units: IntArray) -> Iterator[tuple[int, int, BlockOperand]]:
        """Yield the first place, the long words and the operand of each run of units in DRAM."""
        places = np.flatnonzero(units != _NOTHING)
        if not len(places):
            return
        chosen = units[places]
        groups, words = self.groups[chosen], self.words[chosen]
        owners = np.searchsorted(self.begins, chosen, "right") - 1
        breaks = (np.diff(words) != self.size) | (np.diff(places) != 1)
        breaks |= (np.diff(groups) != 0) | (np.diff(owners) != 0)
        ends = np.flatnonzero(breaks) + 1
        for start, stop in zip((0, *ends), (*ends, len(places)), strict=True):
            first, long = int(words[start]), int(stop - start) * self.size
            assert first + long <= self.ends[owners[start]]
            name, group = self.values[owners[start]].name, int(groups[start])
            yield int(places[start]), long, BlockOperand("dram", first, long, name, group=group)


@dataclass(frozen=True)
class _Part:
    """What all L2Bs work on at a time: ``words`` of each.

    ``brought`` has the MVs of each step with the long word of L2BM where they begin, and ``stored``
    those of the result.
    """

    room: _Room
    words: int
    brought: Sequence[tuple[int, Sequence[Move]]]
    stored: Sequence[Move]

    def form(self) -> object:
        """Return what is equal for parts whose code takes the same."""
        return (
            self.words,
            [[*map(_form, own)] for _, own in self.brought],
            [*map(_form, self.stored)],
        )


def _form(move: Move) -> object:
    """Return what decides how long an MV takes."""
    return move._replace(
        source=move.source._replace(offset=0), destination=move.destination._replace(offset=0)
    )


class _Recut:
    """Makes the code of one node."""

    def __init__(self, node: MNNode, graph: MNGraph, target: Target):
        self.target = target
        self.sources = _Units([graph.values[name] for name in node.inputs], target)
        goal = graph.values[node.outputs[0]]
        self.goal = _Units([goal], target)
        self.length = goal.shape[-1]
        self.unit = unit_of(goal.dtype, target)
        self.per_long = goal.dtype.words_per_long
        self.pieces = list(pieces_of(node, graph))
        self.shifts = Shifts(goal.dtype, target)
        self.turn = count()

    def code(self) -> Nest:
        whole: dict[tuple[int, int], list[tuple[Piece, range]]] = {}
        for piece in self.pieces:
            units = whole_units(piece, self.unit, self.length)
            if units:
                whole.setdefault(self._first(piece)[1:], []).append((piece, units))
        for (offset, shift), moved in whole.items():
            yield from self._whole(moved, offset, shift)
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
            most = len(joined) if self.shifts.vectors_alike else 1
            parts = [part for own in runs(joined, most) for part in self._mixed_parts(own, steps)]
            yield from alike(parts, _Part.form, partial(self._mixed, steps))

    def _first(self, piece: Piece) -> tuple[int, int, int]:
        """Return by how many units, blocks of L2BM and elements a source is ahead of its result.

        Blocks are counted in long words.
        """
        units, rest = divmod(piece.at - piece.to, self.unit)
        block = self.target.transfer("l2bmb", "down").source_words // self.target.cycles
        blocks = rest // self.per_long // block * block
        return units, blocks, rest - blocks * self.per_long

    # -- moves ---------------------------------------------------------------------------------

    def _parts(self, read: Sequence[IntArray], stored: IntArray, moved: bool) -> Iterator[_Part]:
        """Yield the parts of all L2Bs at a time."""
        l2bs, each, total = self.target.level_range["L2B"], self.target.mv_unit, len(stored)
        # All L2Bs have parts of the same number of units.
        room = _room(self.target, -(-total // l2bs) * each)
        most = min(room.words // each, -(-total // l2bs))
        for start in range(0, total, most * l2bs):
            begins = range(start, min(start + most * l2bs, total), most)
            parts = [range(begin, min(begin + most, total)) for begin in begins]
            brought = list[tuple[int, list[Move]]]()
            for units in read:
                base, moves = next(self.turn) % _TURNS * room.buffer, list[Move]()
                for l2b, part in enumerate(parts):
                    # The last unit of a part may need the first one of the next part.
                    more = int(moved and stored[part.stop - 1] != _NOTHING)
                    moves += self._bring(units[part.start : part.stop + more], base, l2b)
                brought.append((base, moves))
            up = base + room.above if moved else base
            away = [
                move
                for l2b, part in enumerate(parts)
                for move in self._store(stored[part.start : part.stop], up, l2b)
            ]
            yield _Part(room, len(parts[0]) * each, brought, away)

    def _bring(self, units: IntArray, base: int, l2b: int) -> Iterator[Move]:
        """Bring units to L2BM; the first one goes to ``base``."""
        for first, long, place in self.sources.moves(units):
            at = base + first * self.target.mv_unit
            yield Move("mvp", long, place, self._l2bm(at, long, l2b))

    def _store(self, goals: IntArray, base: int, l2b: int) -> Iterator[Move]:
        for first, long, place in self.goal.moves(goals):
            at = base + first * self.target.mv_unit
            yield Move("mvp", long, self._l2bm(at, long, l2b), place)

    def _l2bm(self, at: int, words: int, l2b: int) -> BlockOperand:
        group, own = divmod(l2b, self.target.l2bs_per_group)
        return BlockOperand("l2bm", at, words, l2b=own, group=group)

    def _down(self, base: int, words: int, room: _Room) -> Nest:
        """Bring a part of every L2B to L1BM."""

        def line(l1b: int, at: int) -> Nest:
            above = BlockOperand("l2bm", base + l1b * room.share + at, room.step)
            there = BlockOperand("l1bm", at, room.step)
            yield single_step("l2bm", f"l2bmb@{l1b}", (above,), there)

        return room.shares(words, room.step, line)

    def _up(self, base: int, words: int, room: _Room) -> Nest:
        """Bring what the PEs have made to L2BM."""

        def line(l1b: int, at: int) -> Nest:
            below = BlockOperand("l1bm", room.local + at, room.step)
            above = BlockOperand("l2bm", base + l1b * room.share + at, room.step)
            yield single_step("l2bm", f"l2bm@{l1b}", (below,), above)

        return room.shares(words, 0, line)

    # -- whole units ---------------------------------------------------------------------------

    def _whole(self, pieces: Sequence[tuple[Piece, range]], offset: int, shift: int) -> Nest:
        """Yield the code for units that one piece fills; all pieces are moved by as much."""
        moved = bool(offset or shift)
        sources, goals = list[IntArray](), list[IntArray]()
        for piece, units in pieces:
            first, size = self._first(piece)[0] + units.start, len(units)
            sources.append(self.sources.of(piece.source, piece.row, first, size + moved))
            goals.append(self.goal.of(0, piece.goal_row, units.start, size))
            if moved:
                goals.append(np.array([_NOTHING]))
        if shift % self.per_long == 0 and moved:
            yield from self.shifts.masks(shift)

        def vector(room: _Room, job: tuple[int, int]) -> Nest:
            number, at = job
            made = yield from self.shifts.shifted(at, shift, number)
            yield room.kept(at, made)

        def code(part: _Part) -> Nest:
            ((base, brought),), room = part.brought, part.room
            yield from brought
            if moved:
                yield from self._down(base + offset, part.words, room)
                yield each(room.vectors(part.words), partial(vector, room))
                yield from self._up(base + room.above, part.words, room)
            yield from part.stored

        parts = self._parts([np.concatenate(sources)], np.concatenate(goals), moved)
        yield from alike(parts, _Part.form, code)

    # -- units of several pieces ---------------------------------------------------------------

    def _mixed_parts(
        self, joined: Sequence[tuple[int, int, list[Piece]]], steps: Sequence[tuple[int, ...]]
    ) -> Iterator[_Part]:
        """Return the parts of units of several pieces, which begin alike and are moved alike."""
        stored = np.full(2 * len(joined), _NOTHING)
        read = [stored.copy() for _ in steps]
        for at, (row, number, pieces) in enumerate(joined):
            stored[2 * at] = self.goal.of(0, row, number, 1)[0]
            for units, piece in zip(read, pieces, strict=True):
                first = number + self._first(piece)[0]
                units[2 * at : 2 * at + 2] = self.sources.of(piece.source, piece.row, first, 2)
        return self._parts(read, stored, moved=True)

    def _mixed(self, steps: Sequence[tuple[int, ...]], part: _Part) -> Nest:
        """Yield the code of a part of units of several pieces."""
        room = part.room
        vectors = room.vectors(part.words)
        for index, ((base, brought), step) in enumerate(zip(part.brought, steps, strict=True)):
            yield from brought
            begin, offset, shift = step
            yield from self._down(base + offset, part.words, room)
            if index:
                yield from self.shifts.behind(begin)
            if shift % self.per_long == 0:
                yield from self.shifts.masks(shift)
            yield each(vectors, partial(self._added, shift, index))
        yield each(vectors, partial(self._summed, room))
        yield from self._up(part.brought[-1][0] + room.above, part.words, room)
        yield from part.stored

    def _added(self, shift: int, index: int, job: tuple[int, int]) -> Nest:
        number, at = job
        made = yield from self.shifts.shifted(at, shift, number)
        yield self.shifts.merged(made, number, masked=bool(index))

    def _summed(self, room: _Room, job: tuple[int, int]) -> Nest:
        number, at = job
        yield room.kept(at, self.shifts.sum(number))


def recut_code(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Return the code."""
    return _Recut(node, graph, target).code()
