"""The code of a recut: units of DRAM come to L2BM, are moved by less than a unit, and go back.

MVs move whole units. Where a piece begins somewhere else in its unit than in that of the result,
its long words pass through the PEs: ``l2bmb`` moves by blocks of L2BM, ``l1bmd`` by MABs, ``msr``
by PEs, and the ALU by a word. All L2Bs do so at the same time, with a part of the piece each. Units
of the result that consist of several pieces are put together word by word under a mask.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Level
from ...machine import WORDS_PER_LONG, IntArray, Target
from ..base import layout_of
from ..dram_transfer_plan import dram_words
from ..fragment import (
    BlockOperand,
    Forward,
    Line,
    Literal,
    Move,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
    single_step,
)
from ..scratch import Scratch, vector
from ..switch.l1bm_vectors import shifts
from ..switch.unit_masks import NUMBERS, others
from .pieces import Piece, mixed_units, pieces_of, whole_units
from .plain import unit_of, units_in_dram

_NOWHERE, _BEFORE = Special("nowrite"), Forward("alu")
#: The most vectors of a PE in one part.
_VECTORS = 4
#: Mask registers: MABs and PEs that take from the next ones, and words behind a place.
_MABS, _PES, _BEHIND = (1, 2), 3, 4
_TURNS = 2  # buffers of L2BM


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


class _Recut:
    """Makes the code of one node."""

    def __init__(self, node: MNNode, graph: MNGraph, target: Target):
        self.target = target
        self.sources = [graph.values[name] for name in node.inputs]
        self.goal = graph.values[node.outputs[0]]
        self.unit = unit_of(self.goal.dtype, target)
        self.per_long = self.goal.dtype.words_per_long
        self.places = [units_in_dram(value, target) for value in self.sources]
        self.goals = units_in_dram(self.goal, target)
        self.pieces = list(pieces_of(node, graph))
        self.shift = shifts(target)
        self.turn = count()

    def lines(self) -> Iterator[Line]:
        length = self.goal.shape[-1]
        for piece in self.pieces:
            yield from self._interior(piece, whole_units(piece, self.unit, length))
        mixed = mixed_units(self.pieces, self.unit, length)
        if mixed:
            yield from self._numbers()
        for (row, number), found in mixed.items():
            yield from self._joined(row, number, found)

    # -- moves ---------------------------------------------------------------------------------

    def _moves(
        self, value: MNValue, places: tuple[IntArray, IntArray], row: int, units: range
    ) -> Iterator[tuple[int, int, BlockOperand]]:
        """Yield the number of the first unit, the long words and the place in DRAM of each run."""
        whole, size = dram_words(layout_of(value), self.target), self.target.mv_unit
        groups, words = (found[row, units.start : units.stop] for found in places)
        if not len(groups):
            return
        ends = np.flatnonzero((np.diff(words) != size) | (np.diff(groups) != 0)) + 1
        for start, stop in zip((0, *ends), (*ends, len(groups)), strict=True):
            first, long = int(words[start]), int(stop - start) * size
            assert first + long <= whole
            place = BlockOperand("dram", first, long, value.name, group=int(groups[start]))
            yield units.start + int(start), long, place

    def _bring(self, piece: Piece, units: range, base: int, l2b: int) -> Iterator[Line]:
        """Bring units of a piece's source row to L2BM; unit ``units.start`` goes to ``base``."""
        value, places = self.sources[piece.source], self.places[piece.source]
        there = range(max(0, units.start), min(units.stop, places[0].shape[1]))
        for first, long, place in self._moves(value, places, piece.row, there):
            at = base + (first - units.start) * self.target.mv_unit
            yield Move("mvp", long, place, self._l2bm(at, long, l2b))

    def _store(self, row: int, units: range, base: int, l2b: int) -> Iterator[Line]:
        for first, long, place in self._moves(self.goal, self.goals, row, units):
            at = base + (first - units.start) * self.target.mv_unit
            yield Move("mvp", long, self._l2bm(at, long, l2b), place)

    def _l2bm(self, at: int, words: int, l2b: int) -> BlockOperand:
        group, own = divmod(l2b, self.target.l2bs_per_group)
        return BlockOperand("l2bm", at, words, l2b=own, group=group)

    # -- whole units ---------------------------------------------------------------------------

    def _interior(self, piece: Piece, units: range) -> Iterator[Line]:
        """Yield the code for the units that one piece fills, a part for each L2B at a time."""
        target = self.target
        l2bs, each = target.level_range["L2B"], target.mv_unit
        # All L2Bs have parts of the same number of units.
        share = -(-len(units) // l2bs)
        room = _room(target, share * each)
        most = room.words // each
        distance = piece.at - piece.to
        moved = distance % self.unit != 0
        if moved and len(units):
            yield from self._masks(self._first(distance)[2])
        for start in range(units.start, units.stop, most * l2bs):
            begins = range(start, min(start + most * l2bs, units.stop), most)
            parts = [range(begin, min(begin + most, units.stop)) for begin in begins]
            base = next(self.turn) % _TURNS * room.buffer
            up = base + room.buffer - room.words if moved else base
            first, offset, shift = self._first(distance)
            for l2b, part in enumerate(parts):
                more = 2 if moved else 0
                wanted = range(part.start + first, part.stop + first + more)
                yield from self._bring(piece, wanted, base, l2b)
            if moved:
                yield from self._through_pes(base + offset, up, shift, room)
            for l2b, part in enumerate(parts):
                yield from self._store(piece.goal_row, part, up, l2b)

    def _first(self, distance: int) -> tuple[int, int, int]:
        """Return by how many units, blocks of L2BM and elements a source is ahead of its result.

        Blocks are counted in long words.
        """
        units, rest = divmod(distance, self.unit)
        block = self._block
        blocks = rest // self.per_long // block * block
        return units, blocks, rest - blocks * self.per_long

    @property
    def _block(self) -> int:
        """The long words of which L2BM addresses of ``l2bmb`` are multiples."""
        return self.target.transfer("l2bmb", "down").source_words // self.target.cycles

    def _through_pes(self, base: int, up: int, shift: int, room: _Room) -> Iterator[Line]:
        """Move a part of every L2B by ``shift`` elements on its way through the PEs."""
        target, step = self.target, room.step
        l1bs = target.counts["l1b"]
        for l1b in range(l1bs):
            for at in range(0, room.share + step, step):
                above = BlockOperand("l2bm", base + l1b * room.share + at, step)
                yield single_step("l2bm", f"l2bmb@{l1b}", (above,), BlockOperand("l1bm", at, step))
        for number, at in enumerate(range(0, room.share, room.vector)):
            made = yield from self._shifted(at, shift, number)
            there = BlockOperand("l1bm", room.local + at, room.vector)
            yield single_step("l1bm", "l1bmd", (made,), there)
        for l1b in range(l1bs):
            for at in range(0, room.share, step):
                below = BlockOperand("l1bm", room.local + at, step)
                above = BlockOperand("l2bm", up + l1b * room.share + at, step)
                yield single_step("l2bm", f"l2bm@{l1b}", (below,), above)

    # -- shifts by less than a block -----------------------------------------------------------

    def _masks(self, shift: int) -> Iterator[Step]:
        """Make the masks that a shift needs."""
        words = shift // self.per_long
        # A shift by a word needs two shifts by long words, whose masks are made between them.
        if shift % self.per_long == 0:
            yield from self._masks_of(words)

    def _masks_of(self, words: int) -> Iterator[Step]:
        mabs, pes = self.target.counts["mab"], self.target.counts["pe"]
        by_mab, by_pe = divmod(words, pes)
        for register, number in zip(_MABS, (by_mab, by_mab + 1), strict=True):
            if 0 < number < mabs:
                yield from self._mask(register, Level.MAB, mabs - number, mabs)
        if by_pe:
            yield from self._mask(_PES, Level.PE, pes - by_pe, pes)

    def _mask(self, register: int, level: Level, start: int, stop: int) -> Iterator[Step]:
        units = sum(1 << unit for unit in range(start, stop))
        number = PeOperand("grf1", (self.target.words("grf1") - 1,) * self.target.cycles)
        yield alu_step("ipassa", (Special(NUMBERS[level]),), number)
        yield alu_step("imm", (Literal(others(units)),), _NOWHERE)
        yield alu_step("ilsl", (_BEFORE, number), _NOWHERE)
        yield alu_step("frelu", (_BEFORE, _BEFORE), mask_register(register, self.target))

    def _vector(self, number: int, mask: int | None = None, memory: str = "grf0") -> PeOperand:
        cycles = self.target.cycles
        at = tuple(range(number * cycles, (number + 1) * cycles))
        chosen = None if mask is None else mask_register(mask, self.target)
        return vector(Scratch(memory), at, chosen)

    def _shifted(self, at: int, shift: int, number: int) -> Generator[Step, None, PeOperand]:
        """Bring a vector from ``shift`` elements behind ``at`` of L1BM on; return its register."""
        words, within = divmod(shift, self.per_long)
        first = 4 * (number % 2)
        made = self._vector(first)
        if not within:
            yield from self._by_words(at, words, first)
            return made
        yield from self._masks_of(words)
        yield from self._by_words(at, words, first)
        yield from self._masks_of(words + 1)
        yield from self._by_words(at, words + 1, first + 1)
        # The result's first word is the second one here, and its second word the first one of the
        # next long word.
        out = self._vector(first + 2)
        for source, word in ((made, 0), (self._vector(first + 1), 1)):
            yield alu_step("ipassa", (_word(source, 1 - word),), _word(out, word))
        return out

    def _by_words(self, at: int, words: int, number: int) -> Iterator[Step]:
        pes = self.target.counts["pe"]
        by_mab, by_pe = divmod(words, pes)
        goal = self._vector(number)
        if not by_pe:
            yield from self._by_mabs(at, by_mab, number, _MABS[0])
            return
        scratch = number + 3 - number % 4
        yield from self._by_mabs(at, by_mab, scratch, _MABS[0])
        yield from self._round(self._vector(scratch), by_pe, goal)
        yield from self._by_mabs(at, by_mab + 1, scratch, _MABS[1])
        yield from self._round(self._vector(scratch), by_pe, self._vector(number, _PES))

    def _round(self, source: PeOperand, by: int, goal: PeOperand) -> Iterator[Step]:
        """Send a vector down by PEs, round the PEs of a MAB."""
        here: PeOperand | Forward = source
        for left in range(by - 1, -1, -1):
            yield alu_step("msr", (here,), _NOWHERE if left else goal)
            here = _BEFORE

    def _by_mabs(self, at: int, by: int, number: int, mask: int) -> Iterator[Step]:
        mabs, pes = self.target.counts["mab"], self.target.counts["pe"]
        size, row = mabs * pes * self.target.cycles, mabs * pes
        if by == mabs:
            at, by = at + row, 0
        name = f"l1bmd{self.shift[-by % mabs]}"
        there = BlockOperand("l1bm", at, size)
        yield single_step("l1bm", name, (there,), self._vector(number))
        if by:
            there = BlockOperand("l1bm", at + row, size)
            yield single_step("l1bm", name, (there,), self._vector(number, mask))

    # -- units of several pieces ---------------------------------------------------------------

    def _numbers(self) -> Iterator[Step]:
        """Give every word of a vector its number in a unit (in ``grf1``)."""
        target = self.target
        row = target.counts["mab"] * target.counts["pe"]
        for cycle in range(target.cycles):
            at = PeOperand("grf0", (32 + cycle,) * target.cycles)
            yield alu_step("imm", (Literal(cycle * row * self.per_long),), at)
        found, offsets = self._vector(0, memory="grf1"), self._vector(8)
        number = PeOperand("grf1", (target.words("grf1") - 1,) * target.cycles)
        yield alu_step("ipassa", (Special("peid"),), number)
        if self.per_long == WORDS_PER_LONG:
            yield alu_step("imm", (Literal(1),), _NOWHERE)
            yield alu_step("ilsl", (number, _BEFORE), number)
        yield alu_step("iadd", (number, offsets), found)
        if self.per_long == WORDS_PER_LONG:
            yield alu_step("iinc", (_word(found, 1),), _word(found, 1))

    def _joined(self, row: int, number: int, found: Sequence[Piece]) -> Iterator[Line]:
        """Yield the code for a unit of several pieces."""
        room, target = _room(self.target, 1), self.target
        base = next(self.turn) % _TURNS * room.buffer
        total = self._vector(9)
        for index, piece in enumerate(found):
            units, offset, shift = self._first(piece.at - piece.to)
            first = number + units
            yield from self._bring(piece, range(first, first + 2), base, 0)
            for at in range(0, target.mv_unit + self._block + 1, room.step):
                above = BlockOperand("l2bm", base + offset + at, room.step)
                yield single_step("l2bm", "l2bmb", (above,), BlockOperand("l1bm", at, room.step))
            if shift % self.per_long == 0:
                yield from self._masks_of(shift // self.per_long)
            made = yield from self._shifted(0, shift, 0)
            if not index:
                yield alu_step("lpassa", (made,), total)
                continue
            begin = piece.to - number * self.unit
            yield alu_step("imm", (Literal(-begin & 0xFFFFFFFF),), _NOWHERE)
            yield alu_step("iadd", (_BEFORE, self._vector(0, memory="grf1")), _NOWHERE)
            yield alu_step("frelu", (_BEFORE, _BEFORE), mask_register(_BEHIND, target))
            yield alu_step("lpassa", (made,), self._vector(9, _BEHIND))
        up = base + room.buffer - room.words
        there = BlockOperand("l1bm", room.local, room.vector)
        yield single_step("l1bm", "l1bmd", (total,), there)
        for at in range(0, target.mv_unit, room.step):
            below = BlockOperand("l1bm", room.local + at, room.step)
            yield single_step("l2bm", "l2bm@0", (below,), BlockOperand("l2bm", up + at, room.step))
        yield from self._store(row, range(number, number + 1), up, 0)


def _word(operand: PeOperand, word: int) -> PeOperand:
    return PeOperand(operand.memory, operand.offsets, words=1, word=word)


def recut_lines(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Line]:
    """Yield the code."""
    yield from _Recut(node, graph, target).lines()
