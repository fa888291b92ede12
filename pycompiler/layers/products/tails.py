"""The last block of a contracted axis that does not fill it: its padding must not reach the MAU.

The words after the last element are undefined, and may even be infinite. So these words of vectors
and rows are cleared before they are converted to block float.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ...code.lines import Forward, Instruction, Line, Literal, PeOperand, Step, alu_step
from ...graph.dtypes import MNDtype
from ...machine import WORDS_PER_LONG, Target
from ..switch.unit_masks import UnitMasks
from ..switch.word_passes import ADDRESSED_BITS
from .roles import Precision
from .tiles import NOWHERE, Pair, convert, uses

#: Steps for each vector or row of a last block, where a whole block takes one: clear, convert, use.
_STEPS = 3


def tail_steps(kind: Precision, dtype: MNDtype) -> int:
    """Return the steps for each vector or row of a last block; singles are copied one by one."""
    copied = 0 if dtype is MNDtype.HALF or kind.words == kind.element else kind.words
    return _STEPS + copied


class Tails:
    """Writes the code of last blocks.

    ``halves`` names the values of halves. The code keeps the bits of their elements in the first
    long word of the second register file.
    """

    def __init__(self, kind: Precision, halves: Collection[str], masks: UnitMasks, target: Target):
        self.kind, self.halves, self.masks, self.target = kind, halves, masks, target
        self._kept: int | None = None

    def lines(self, pairs: Sequence[Pair], count: int) -> Iterator[Line]:
        """Yield the lines of a block of ``count`` elements for each vector or row in ``pairs``."""
        for source, instructions in pairs:
            if self.kind.words == self.kind.element:
                yield from self._short(source, count)
            elif source.value in self.halves:
                yield from self._packed(source, count)
            else:
                yield from self._long(source, count)
            yield from map(Step, uses(instructions))

    def _short(self, source: PeOperand, count: int) -> Iterator[Line]:
        """Each PE has one element or none."""
        letter = "l" if self.kind.element == WORDS_PER_LONG else "i"
        steps: list[Step] = []
        mask = self.masks.use((1 << count) - 1, steps)
        yield from steps
        yield Step((Instruction("alu", f"{letter}passa", (source,), (NOWHERE,), mask),))
        yield Step((convert(self.kind, Forward("alu")),))

    def _long(self, source: PeOperand, count: int) -> Iterator[Line]:
        """Copy each single to zeroed registers, under a mask of the PEs with an element in it."""
        kind, cycles = self.kind, self.target.cycles
        whole, within = divmod(count, kind.words)
        at = tuple(range(0, kind.long * cycles, kind.long))
        total = PeOperand("grf1", at, words=kind.words)
        self._kept = None
        yield alu_step("zero", (), total)
        for word in range(kind.words):
            units = whole + (word < within)
            if units == 0:
                continue
            steps: list[Step] = []
            mask = self.masks.use((1 << units) - 1, steps)
            yield from steps
            place, word = divmod(word, WORDS_PER_LONG)
            here = PeOperand(
                source.memory, tuple(at + place for at in source.offsets), source.value, word=word
            )
            there = PeOperand(
                "grf1", tuple(at + place for at in total.offsets), word=word, mask=mask
            )
            yield alu_step("ipassa", (here,), there)
        cleared = replace(total, reduce=kind.words > WORDS_PER_LONG)
        yield Step((convert(kind, cleared),))

    def _packed(self, source: PeOperand, count: int) -> Iterator[Line]:
        """Keep the bits of the halves that exist; a PE holds one long word of them."""
        kept = PeOperand("grf1", (0,) * self.target.cycles)
        if self._kept != count:
            yield from self._keep(count, kept)
            self._kept = count
        yield alu_step("land", (source, kept), NOWHERE)
        yield Step((convert(self.kind, Forward("alu")),))

    def _keep(self, count: int, kept: PeOperand) -> Iterator[Line]:
        """Write the bits that each PE keeps: of all its halves, of some, or of none."""
        halves, bits = MNDtype.HALF.words_per_long, MNDtype.HALF.bits
        whole, within = divmod(count, halves)
        every = (1 << halves * bits) - 1
        some = every & ~((1 << (halves - within) * bits) - 1)
        yield alu_step("zero", (), kept)
        for units, number in (((1 << whole) - 1, every), (1 << whole, some)):
            if not units or not number:
                continue
            steps: list[Step] = []
            mask = self.masks.use(units, steps)
            yield from steps
            for word in range(WORDS_PER_LONG):
                shift = (WORDS_PER_LONG - 1 - word) * ADDRESSED_BITS
                part = number >> shift & ((1 << ADDRESSED_BITS) - 1)
                yield alu_step("imm", (Literal(part),), replace(kept, word=word, mask=mask))
