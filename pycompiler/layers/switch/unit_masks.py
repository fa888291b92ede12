"""Mask registers that choose units by their number."""

from __future__ import annotations

from collections.abc import Iterator

from ...machine import MOST_UNITS, Target
from ..fragment import (
    Forward,
    Literal,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
)


class UnitMasks:
    """Makes masks of sets of units (bit u of a number stands for unit u), and keeps them.

    ``unit`` is the fixed input with the unit's number (``mabid``, ``subpeid``). The last long word
    of the second register file holds a copy of it.
    """

    def __init__(self, unit: str, target: Target):
        self._number = PeOperand("grf1", (target.words("grf1") - 1,) * target.cycles)
        self._unit = unit
        self._target = target
        # Entry 0 cannot be written: it masks nothing.
        self._registers = range(1, target.masks["entries"])
        self._made: dict[int, int] = {}
        self._ready = False

    def use(self, units: int, into: list[Step]) -> PeOperand:
        """Return the mask register of ``units``; the steps that make it go to ``into``."""
        if units not in self._made:
            if not self._ready:
                into.append(alu_step("ipassa", (Special(self._unit),), self._number))
                self._ready = True
            if len(self._made) == len(self._registers):
                oldest = next(iter(self._made))
                register = self._made.pop(oldest)
            else:
                register = self._registers[len(self._made)]
            self._made[units] = register
            into.extend(self._make(units, register))
        return mask_register(self._made[units], self._target)

    def _make(self, units: int, register: int) -> Iterator[Step]:
        """Shift the bit of the PE's own unit to the top; the flag is set if that bit is 0."""
        bits = sum(
            1 << (MOST_UNITS - 1 - unit) for unit in range(MOST_UNITS) if not units >> unit & 1
        )
        forward = Forward("alu")
        yield alu_step("imm", (Literal(bits),), Special("nowrite"))
        yield alu_step("ilsl", (forward, self._number), Special("nowrite"))
        yield alu_step("frelu", (forward, forward), mask_register(register, self._target))
