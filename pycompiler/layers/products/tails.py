"""The last block of a contracted axis that does not fill it: its padding must not reach the MAU.

The words after the last element are undefined, and may even be infinite. So these words of vectors
and rows are cleared before they are converted to block float.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...code.lines import Forward, Instruction, Line, Literal, PeOperand, Step, alu_step
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...machine import WORDS_PER_LONG, Target
from ..switch.facts import ADDRESSED_BITS
from ..switch.unit_masks import UnitMasks
from .roles import Precision
from .tiles import NOWHERE, Pair, convert, uses


class Tails:
    """Writes the code of last blocks, which have ``counts`` elements.

    ``halves`` names the values of halves. The code keeps the bits of their elements in a long word
    of the second register file.
    """

    def __init__(
        self, kind: Precision, halves: Collection[str], counts: Collection[int], target: Target
    ):
        self.kind, self.halves, self.counts, self.target = kind, halves, counts, target
        self.masks = UnitMasks("subpeid", target)
        self._kept = PeOperand("grf1", (kind.long * target.cycles,) * target.cycles)

    def ready(self, values: Sequence[MNValue]) -> Iterator[Line]:
        """Yield the lines that all last blocks need before them: kept bits, then masks."""
        short = self.kind.words == self.kind.element
        packed = [value.name in self.halves and not short for value in values]
        for count in sorted(self.counts):
            if any(packed):
                yield from self._keep(count)
            if short:
                yield from self._mask(count)[1]
            elif not all(packed):
                for word in range(min(self.kind.words, count)):
                    yield from self._mask(self._units(count, word))[1]

    def lines(self, pairs: Sequence[Pair], count: int) -> Iterator[Line]:
        """Yield the lines of a block of ``count`` elements for each vector or row in ``pairs``."""
        for source, instructions in pairs:
            if self.kind.words == self.kind.element:
                yield from self._short(source, count)
            elif source.value in self.halves:
                yield alu_step("land", (source, self._kept), NOWHERE)
                yield Step((convert(self.kind, Forward("alu")),))
            else:
                yield from self._long(source, count)
            yield from map(Step, uses(instructions))

    def _units(self, count: int, word: int) -> int:
        """Return how many PEs have an element in a word of a vector."""
        whole, within = divmod(count, self.kind.words)
        return whole + (word < within)

    def _mask(self, count: int) -> tuple[PeOperand, list[Step]]:
        """Return the mask of the first PEs, and the steps that make it if it is not there."""
        steps: list[Step] = []
        return self.masks.use((1 << count) - 1, steps), steps

    def _short(self, source: PeOperand, count: int) -> Iterator[Line]:
        """Each PE has one element or none."""
        letter = "l" if self.kind.element == WORDS_PER_LONG else "i"
        mask, steps = self._mask(count)
        yield from steps
        yield Step((Instruction("alu", f"{letter}passa", (source,), (NOWHERE,), mask),))
        yield Step((convert(self.kind, Forward("alu")),))

    def _long(self, source: PeOperand, count: int) -> Iterator[Line]:
        """Copy each single to zeroed registers, under a mask of the PEs with an element in it."""
        kind, cycles = self.kind, self.target.cycles
        at = tuple(range(0, kind.long * cycles, kind.long))
        total = PeOperand("grf1", at, words=kind.words)
        yield alu_step("zero", (), total)
        for word in range(min(kind.words, count)):
            mask, steps = self._mask(self._units(count, word))
            yield from steps
            place, word = divmod(word, WORDS_PER_LONG)
            here = PeOperand(
                source.memory, tuple(at + place for at in source.offsets), source.value, word=word
            )
            there = PeOperand(
                "grf1", tuple(at + place for at in total.offsets), word=word, mask=mask
            )
            yield alu_step("ipassa", (here,), there)
        cleared = total._replace(reduce=kind.words > WORDS_PER_LONG)
        yield Step((convert(kind, cleared),))

    def _keep(self, count: int) -> Iterator[Line]:
        """Write the bits that each PE keeps: of all its halves, of some, or of none."""
        halves, bits = MNDtype.HALF.words_per_long, MNDtype.HALF.bits
        whole, within = divmod(count, halves)
        every = (1 << halves * bits) - 1
        some = every & ~((1 << (halves - within) * bits) - 1)
        yield alu_step("zero", (), self._kept)
        for units, number in (((1 << whole) - 1, every), (1 << whole, some)):
            if not units or not number:
                continue
            steps: list[Step] = []
            mask = self.masks.use(units, steps)
            yield from steps
            for word in range(WORDS_PER_LONG):
                shift = (WORDS_PER_LONG - 1 - word) * ADDRESSED_BITS
                part = number >> shift & ((1 << ADDRESSED_BITS) - 1)
                yield alu_step("imm", (Literal(part),), self._kept._replace(word=word, mask=mask))
