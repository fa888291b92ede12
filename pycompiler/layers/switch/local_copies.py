"""Passes in which no long word leaves its unit: the units hold copies, and each keeps its part.

The ALU copies to the new addresses, under masks of the units.
"""

from __future__ import annotations

from ...code.lines import Step, alu_step
from ...graph.layout import Level
from ...machine import Target
from ..scratch import Words, vector
from .pass_costs import turns
from .pass_moves import Moves
from .pe_mab_passes import chunks
from .unit_masks import NUMBERS, UnitMasks


def stays(found: Moves) -> bool:
    """Whether no long word leaves its unit."""
    return bool((found.source == found.result).all())


def copy_steps(
    found: Moves, source: Words, result: Words, level: Level, target: Target
) -> list[Step]:
    """Return the code of a pass over ``level`` in which nothing leaves its unit."""
    masks = UnitMasks(NUMBERS[level], target)
    out: list[Step] = []
    for _, units, pairs in turns(found, level, target):
        mask = masks.use(units, out) if units else None
        for part in chunks(pairs, target.cycles):
            here = vector(source, tuple(at for at, _ in part))
            out.append(
                alu_step("lpassa", (here,), vector(result, tuple(at for _, at in part), mask))
            )
    return out
