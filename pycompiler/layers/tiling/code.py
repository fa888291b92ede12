"""The code of MNCoreTiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...code.lines import Line, Literal, PeOperand, Step, alu_step
from ...code.nest import Nest, each, expand
from ...graph.graph import MNValue
from ...machine import IntArray, Target
from ..scratch import vector
from ..switch.pass_code import move_code
from ..switch.unit_masks import choose_units
from .plan import Exchange, Plan, Units, Zeros


def tiles_code(
    found: Plan, source: MNValue, result: MNValue, target: Target, aside: str | None = None
) -> Nest:
    """Yield the code; it may use words of the value ``aside`` in DRAM."""

    def copied(start: int) -> Iterator[Line]:
        rows = _filled(found.copies[start : start + target.cycles], target)
        to, fro = (vector(place, tuple(rows[:, i])) for i, place in enumerate((result, source)))
        yield alu_step("lpassa", (fro,), to)

    def moved(step: Exchange) -> Nest:
        return move_code(step.parts, step.level, result, result, target, aside=aside)

    yield each(range(0, len(found.copies), target.cycles), copied)
    for step, zeros in _groups(found):
        made = list(expand(moved(step))) if step is not None else []
        masks: list[Step] = []
        left: list[Zeros] = []
        # Lines that have no masks themselves leave all registers to these.
        free = not any(map(_masked, made)) and len(zeros) < target.masks["entries"]
        for entry, zero in enumerate(zeros, 1):
            kept = _others(zero, target) if free else None
            places = [] if kept is None else _bringing(made, zero, result)
            if not places or kept is None:
                left.append(zero)
                continue
            mask = choose_units(kept, masks, target, entry)
            for place in places:
                line = made[place]
                assert isinstance(line, Step)
                made[place] = Step(tuple(one._replace(flush=mask) for one in line.instructions))
        yield from (*masks, *made)
        for zero in left:
            yield from _clear(zero, result, target)


def _groups(found: Plan) -> Iterator[tuple[Exchange | None, list[Zeros]]]:
    """Yield each exchange with the zeros that follow it."""
    exchange: Exchange | None = None
    zeros: list[Zeros] = []
    for step in found.steps:
        if isinstance(step, Zeros):
            zeros.append(step)
            continue
        if exchange is not None or zeros:
            yield exchange, zeros
        exchange, zeros = step, []
    if exchange is not None or zeros:
        yield exchange, zeros


def _others(zero: Zeros, target: Target) -> Units | None:
    """Return the units whose words do not become 0; None if they differ on several levels."""
    if len(zero.units) != 1 or zero.word is not None:
        return None
    ((level, units),) = zero.units.items()
    return {level: (1 << target.level_range[level.value]) - 1 ^ units}


def _masked(line: Line) -> bool:
    return not isinstance(line, Step) or any(
        one.flush is not None
        or any(isinstance(to, PeOperand) and to.mask is not None for to in one.destinations)
        for one in line.instructions
    )


def _bringing(made: Sequence[Line], zero: Zeros, value: MNValue) -> list[int]:
    """Return the lines that bring the words of ``zero`` and no others; nothing if some do not.

    A line that clears words for other zeros already cannot do it for these too.
    """
    wanted, found, brought = set(zero.at.tolist()), [], set[int]()
    for place, line in enumerate(made):
        if not isinstance(line, Step):
            return []
        for one in line.instructions:
            for to in one.destinations:
                if not isinstance(to, PeOperand) or to.value != value.name:
                    continue
                words = set(to.offsets)
                if words.isdisjoint(wanted):
                    continue
                alone = one.slot == "l1bm" and len(line.instructions) == 1 and one.flush is None
                if not words <= wanted or not alone:
                    return []
                brought |= words
                found.append(place)
    return found if brought == wanted else []


def _clear(step: Zeros, value: MNValue, target: Target) -> Nest:
    made: list[Step] = []
    mask = _mask(step.units, made, target)
    yield from made
    zero = PeOperand("grf1", (0,) * target.cycles)
    yield alu_step("imm", (Literal(0),), zero)

    def cleared(start: int) -> Iterator[Line]:
        rows = _filled(step.at[start : start + target.cycles], target)
        there = vector(value, tuple(rows.tolist()), mask)._replace(word=step.word)
        yield alu_step("lpassa" if step.word is None else "ipassa", (zero,), there)

    yield each(range(0, step.at.size, target.cycles), cleared)


def _mask(units: Units, into: list[Step], target: Target) -> PeOperand | None:
    return choose_units(units, into, target) if units else None


def _filled(rows: IntArray, target: Target) -> IntArray:
    """Return ``rows`` with the last one repeated until they fill a vector."""
    return rows[np.minimum(np.arange(target.cycles), len(rows) - 1)]
