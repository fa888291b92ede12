"""Mask registers that choose units by their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...graph.layout import Level
from ...machine import Target
from ...machine_limits import MOST_UNITS
from ..fragment import (
    Forward,
    Literal,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
)

#: Steps that make a mask.
MASK_STEPS = 3


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
        forward = Forward("alu")
        yield alu_step("imm", (Literal(others(units)),), Special("nowrite"))
        yield alu_step("ilsl", (forward, self._number), Special("nowrite"))
        yield alu_step("frelu", (forward, forward), mask_register(register, self._target))


#: The fixed inputs that hold the numbers of a PE's units.
NUMBERS = {Level.PE: "subpeid", Level.MAB: "mabid", Level.L1B: "l1bid", Level.L2B: "l2bid"}


def choose_units(units: Mapping[Level, int], into: list[Step], target: Target) -> PeOperand:
    """Return a mask register of the PEs whose units are chosen on all levels of ``units``.

    ``units`` has a bit for every chosen unit of a level. The steps go to ``into``. They use the
    last two long words of the second register file.
    """
    last = target.words("grf1") - 1
    number, total = (PeOperand("grf1", (at,) * target.cycles) for at in (last, last - 1))
    nowhere, forward = Special("nowrite"), Forward("alu")
    for index, (level, chosen) in enumerate(units.items()):
        into.append(alu_step("ipassa", (Special(NUMBERS[level]),), number))
        into.append(alu_step("imm", (Literal(others(chosen)),), nowhere))
        into.append(alu_step("ilsl", (forward, number), total if not index else nowhere))
        if index:
            into.append(alu_step("ior", (forward, total), total))
    register = mask_register(1, target)
    # The top bit of the total is 0 in the PEs that all levels choose.
    into.append(alu_step("frelu", (total, total), register))
    return register


def others(units: int) -> int:
    """Return a word with bit u, counted from the top, for every unit u that is not chosen."""
    return sum(1 << (MOST_UNITS - 1 - unit) for unit in range(MOST_UNITS) if not units >> unit & 1)
