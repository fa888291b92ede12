"""Mask registers that choose units by their number.

The flags of one instruction say whether the number equals another one, is larger or smaller, or has
none of some bits. Such sets of units take the fewest lines. Any other set is a literal with a bit
for each unit, which is shifted by the number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from emu2 import _core

from ...code.lines import Forward, Literal, PeOperand, Special, Step, alu_step, mask_register
from ...errors import error
from ...graph.layout import Level
from ...machine import Target
from ...machine_limits import MOST_UNITS

_WORD = (1 << 32) - 1


class UnitMasks:
    """Makes masks of sets of units (bit u of a number stands for unit u), and keeps them.

    ``unit`` is the fixed input with the unit's number (``mabid``, ``subpeid``). The last long word
    of the second register file holds a copy of it where a mask needs one.
    """

    def __init__(self, unit: str, target: Target):
        self._number = PeOperand("grf1", (target.words("grf1") - 1,) * target.cycles)
        self._unit = unit
        self._count = _count(unit, target)
        self._target = target
        # Entry 0 cannot be written: it masks nothing.
        self._registers = range(1, target.masks["entries"])
        self._made: dict[int, int] = {}
        self._ready = False

    def use(self, units: int, into: list[Step]) -> PeOperand:
        """Return the mask register of ``units``; the steps that make it go to ``into``."""
        if units not in self._made:
            if len(self._made) == len(self._registers):
                oldest = next(iter(self._made))
                register = self._made.pop(oldest)
            else:
                register = self._registers[len(self._made)]
            self._made[units] = register
            into.extend(self.make(units, register))
        return mask_register(self._made[units], self._target)

    def make(self, units: int, register: int) -> Iterator[Step]:
        """Yield the steps that make the mask of ``units`` in a mask register."""
        short = _compared(units, self._count)
        if short is not None:
            yield from _compare(*short, self._unit, mask_register(register, self._target))
            return
        # The bit of the PE's own unit is shifted to the top; the flag is set if that bit is 0.
        if not self._ready:
            self._ready = True
            yield alu_step("ipassa", (Special(self._unit),), self._number)
        forward = Forward("alu")
        yield alu_step(
            "imm", (Literal(others(units, self._unit, self._target)),), Special("nowrite")
        )
        yield alu_step("ilsl", (forward, self._number), Special("nowrite"))
        yield alu_step("frelu", (forward, forward), mask_register(register, self._target))


#: The fixed inputs that hold the numbers of a PE's units.
NUMBERS = {Level.PE: "subpeid", Level.MAB: "mabid", Level.L1B: "l1bid", Level.L2B: "l2bid"}


def choose_units(
    units: Mapping[Level, int], into: list[Step], target: Target, entry: int = 1
) -> PeOperand:
    """Return mask register ``entry`` of the PEs whose units are chosen on all levels of ``units``.

    ``units`` has a bit for every chosen unit of a level. The steps go to ``into``. They use the
    last two long words of the second register file.
    """
    register = mask_register(entry, target)
    if len(units) == 1:
        ((level, chosen),) = units.items()
        short = _compared(chosen, _count(NUMBERS[level], target))
        if short is not None:
            into.extend(_compare(*short, NUMBERS[level], register))
            return register
    last = target.words("grf1") - 1
    number, total = (PeOperand("grf1", (at,) * target.cycles) for at in (last, last - 1))
    nowhere, forward = Special("nowrite"), Forward("alu")
    for index, (level, chosen) in enumerate(units.items()):
        into.append(alu_step("ipassa", (Special(NUMBERS[level]),), number))
        into.append(alu_step("imm", (Literal(others(chosen, NUMBERS[level], target)),), nowhere))
        first = total if len(units) > 1 and not index else nowhere
        into.append(alu_step("ilsl", (forward, number), first))
        if index:
            into.append(alu_step("ior", (forward, total), total))
    # The top bit of the total is 0 in the PEs that all levels choose.
    top = (total, total) if len(units) > 1 else (forward, forward)
    into.append(alu_step("frelu", top, register))
    return register


def _count(unit: str, target: Target) -> int:
    """Return how many units the number ``unit`` counts."""
    level = next(level for level, name in NUMBERS.items() if name == unit)
    return target.level_range[level.value]


#: The instructions that the crate ``switches`` numbers. The first joins the number of the unit and
#: a literal; the flags of the last choose units.
_COMPARISONS = (("ixor",), ("iand",), ("imin",), ("imax",), ("iand", "ilnot"), ("ior", "inot"))


@lru_cache(maxsize=4096)
def _compared(units: int, count: int) -> tuple[tuple[str, ...], int] | None:
    """Return instructions and a literal whose last flags choose ``units``; None if none do."""
    found = _core.compare_units(units, count)
    if found is None:
        return None
    names = _COMPARISONS[found[0]]
    return names, _WORD ^ found[1] if "ior" in names else found[1]


def _compare(
    names: tuple[str, ...], literal: int, unit: str, register: PeOperand
) -> Iterator[Step]:
    """Yield the steps that compare the number of a unit with a literal."""
    yield alu_step("imm", (Literal(literal),), Special("nowrite"))
    sources: tuple[Special | Forward, ...] = (Special(unit), Forward("alu"))
    for number, name in enumerate(names):
        last = number == len(names) - 1
        yield alu_step(name, sources, register if last else Special("nowrite"))
        sources = (Forward("alu"),)


def others(units: int, unit: str, target: Target) -> int:
    """Return a word with bit u, counted from the top, for every unit u that is not chosen.

    ``unit`` is the fixed input with the unit's number. Units behind the last bit are chosen. P0606
    if some of them are not.
    """
    count = _count(unit, target)
    if any(not units >> behind & 1 for behind in range(MOST_UNITS, count)):
        reason = (
            f"a mask of some of {count} units (`{unit}`) needs a bit for each, "
            f"and a word has {MOST_UNITS}"
        )
        raise error("P0606", spec=target.name, reason=reason)
    return sum(1 << (MOST_UNITS - 1 - unit) for unit in range(MOST_UNITS) if not units >> unit & 1)
