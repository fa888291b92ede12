"""The code of MNCoreTiles, and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...graph.graph import MNValue
from ...graph.layout import Level
from ...machine import IntArray, Target
from ..fragment import Line, Literal, PeOperand, Step, alu_step
from ..scratch import vector
from ..switch.l1b_passes import l1b_steps
from ..switch.l2b_passes import l2b_lines
from ..switch.pass_costs import move_steps
from ..switch.pe_mab_passes import mab_steps
from ..switch.unit_masks import choose_units
from .plan import Exchange, Plan, Units, Zeros


def cost(found: Plan, target: Target) -> int:
    """Estimate the steps."""
    cycles = target.cycles
    total = -(-len(found.copies) // cycles)
    for step in found.steps:
        total += 4 * len(step.units)
        if isinstance(step, Zeros):
            total += 1 + -(-step.at.size // cycles)
        else:
            total += (
                move_steps(step.moves, step.level, target) + 2 * cycles
            )  # hazards before and behind
    return total


def lines(found: Plan, source: MNValue, result: MNValue, target: Target) -> Iterator[Line]:
    """Yield the code."""
    for start in range(0, len(found.copies), target.cycles):
        rows = _filled(found.copies[start : start + target.cycles], target)
        to, fro = (vector(place, tuple(rows[:, i])) for i, place in enumerate((result, source)))
        yield alu_step("lpassa", (fro,), to)
    for step in found.steps:
        if isinstance(step, Zeros):
            yield from _clear(step, result, target)
        else:
            yield from _exchange(step, result, target)


def _exchange(step: Exchange, value: MNValue, target: Target) -> Iterator[Line]:
    if step.level is Level.MAB:
        assert not step.units
        yield from mab_steps(step.moves, value, value, target)
        return
    if step.level is Level.L1B:
        yield from l1b_steps(step.moves, value, value, target, dict(step.units))
        return
    made: list[Step] = []
    mask = _mask(step.units, made, target)
    yield from made
    yield from l2b_lines(step.moves, value, value, target, mask)


def _clear(step: Zeros, value: MNValue, target: Target) -> Iterator[Line]:
    made: list[Step] = []
    mask = _mask(step.units, made, target)
    yield from made
    zero = PeOperand("grf1", (0,) * target.cycles)
    yield alu_step("imm", (Literal(0),), zero)
    for start in range(0, step.at.size, target.cycles):
        rows = _filled(step.at[start : start + target.cycles], target)
        there = replace(vector(value, tuple(rows.tolist()), mask), word=step.word)
        yield alu_step("lpassa" if step.word is None else "ipassa", (zero,), there)


def _mask(units: Units, into: list[Step], target: Target) -> PeOperand | None:
    return choose_units(units, into, target) if units else None


def _filled(rows: IntArray, target: Target) -> IntArray:
    """Return ``rows`` with the last one repeated until they fill a vector."""
    return rows[np.minimum(np.arange(target.cycles), len(rows) - 1)]
