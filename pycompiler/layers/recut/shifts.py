"""Moves of long words by less than a block of L2BM: from L1BM through the PEs.

``l1bmd`` moves by MABs, ``msr`` by PEs, and the ALU by a word. Masks choose the units that take
from the next vector.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ...code.lines import (
    BlockOperand,
    Forward,
    Literal,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
    single_step,
)
from ...graph.dtypes import MNDtype
from ...graph.layout import Level
from ...machine import WORDS_PER_LONG, Target
from ..scratch import Scratch, vector
from ..switch.l1bm_vectors import shifts
from ..switch.unit_masks import NUMBERS, others

_NOWHERE, _BEFORE = Special("nowrite"), Forward("alu")
#: Mask registers: MABs and PEs that take from the next ones, and words behind a place.
_MABS, _PES, _BEHIND = (1, 2), 3, 4
#: Vectors of GRF0 behind those of the shifts: for the numbers, and the first of the sums.
_OFFSETS, _SUMS = 8, 9


class Shifts:
    """Makes the steps of shifts of one element type."""

    def __init__(self, dtype: MNDtype, target: Target):
        self.target = target
        self.per_long = dtype.words_per_long
        self._shift = shifts(target)

    def masks(self, shift: int) -> Iterator[Step]:
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
        yield alu_step("imm", (Literal(others(units, NUMBERS[level], self.target)),), _NOWHERE)
        yield alu_step("ilsl", (_BEFORE, number), _NOWHERE)
        yield alu_step("frelu", (_BEFORE, _BEFORE), mask_register(register, self.target))

    def _vector(self, number: int, mask: int | None = None, memory: str = "grf0") -> PeOperand:
        cycles = self.target.cycles
        at = tuple(range(number * cycles, (number + 1) * cycles))
        chosen = None if mask is None else mask_register(mask, self.target)
        return vector(Scratch(memory), at, chosen)

    def shifted(self, at: int, shift: int, number: int) -> Generator[Step, None, PeOperand]:
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
        name = f"l1bmd{self._shift[-by % mabs]}"
        there = BlockOperand("l1bm", at, size)
        yield single_step("l1bm", name, (there,), self._vector(number))
        if by:
            there = BlockOperand("l1bm", at + row, size)
            yield single_step("l1bm", name, (there,), self._vector(number, mask))

    # -- units of several pieces

    @property
    def vectors_alike(self) -> bool:
        """Whether the words of all units in a vector have the same numbers."""
        return self.target.mv_unit % (self.target.counts["mab"] * self.target.counts["pe"]) == 0

    def numbers(self) -> Iterator[Step]:
        """Give every word of a vector its number in the units of MVs (in ``grf1``)."""
        target = self.target
        row = target.counts["mab"] * target.counts["pe"]
        for cycle in range(target.cycles):
            at = PeOperand("grf0", (_OFFSETS * target.cycles + cycle,) * target.cycles)
            first = cycle * row % target.mv_unit if self.vectors_alike else cycle * row
            yield alu_step("imm", (Literal(first * self.per_long),), at)
        found, offsets = self._vector(0, memory="grf1"), self._vector(_OFFSETS)
        number = PeOperand("grf1", (target.words("grf1") - 1,) * target.cycles)
        yield alu_step("ipassa", (Special("peid"),), number)
        if self.per_long == WORDS_PER_LONG:
            yield alu_step("imm", (Literal(1),), _NOWHERE)
            yield alu_step("ilsl", (number, _BEFORE), number)
        yield alu_step("iadd", (number, offsets), found)
        if self.per_long == WORDS_PER_LONG:
            yield alu_step("iinc", (_word(found, 1),), _word(found, 1))

    def merged(self, made: PeOperand, number: int, masked: bool) -> Step:
        """Return the step that keeps a vector as the sum ``number``, or what is behind a place."""
        return alu_step(
            "lpassa", (made,), self._vector(_SUMS + number, _BEHIND if masked else None)
        )

    def sum(self, number: int) -> PeOperand:
        """Return the register of a sum."""
        return self._vector(_SUMS + number)

    def behind(self, place: int) -> Iterator[Step]:
        """Make the mask of the words from ``place`` of a unit on."""
        yield alu_step("imm", (Literal(-place & 0xFFFFFFFF),), _NOWHERE)
        yield alu_step("iadd", (_BEFORE, self._vector(0, memory="grf1")), _NOWHERE)
        yield alu_step("frelu", (_BEFORE, _BEFORE), mask_register(_BEHIND, self.target))


def _word(operand: PeOperand, word: int) -> PeOperand:
    return PeOperand(operand.memory, operand.offsets, words=1, word=word)
