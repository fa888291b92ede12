"""The code of one pass, and its cost."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...graph.graph import MNValue
from ...graph.layout import Level
from ...machine import Target
from ..base import layout_of
from ..fragment import Fragment, Line
from . import l1b_l2b_passes, pass_costs, pe_mab_passes, word_passes
from .pass_moves import LayoutChange, Moves, moves, pattern


@lru_cache(maxsize=4096)
def pass_steps(change: LayoutChange, level: Level, target: Target) -> int:
    """Estimate the steps of the pass over ``level``, hazards included.

    NoPassError if one pass cannot do it.
    """
    # If several rows go together, the number of rows matters, and a pattern does not tell it.
    whole = level is Level.L1B and pass_costs.rows_together(target) > 1
    found = (moves if whole else pattern)(change, level, target)
    if level is Level.W:
        cost = word_passes.word_cost(found, change.dtype.bits, target)
    elif level is Level.PE:
        cost = pass_costs.pe_cost(found, target)
    elif level is Level.MAB:
        cost = pass_costs.mab_cost(found, target)
    elif level is Level.L1B:
        cost = pass_costs.l1b_cost(found, target)
    else:
        cost = pass_costs.l2b_cost(found, target)
    return cost + _around(target)


def _around(target: Target) -> int:
    """Estimate the steps that hazards cost before and behind a pass."""
    return 2 * target.cycles


@lru_cache(maxsize=64)
def least_steps(level: Level, target: Target) -> int:
    """Return a lower bound of :func:`pass_steps` for passes over ``level``."""
    one = np.zeros(1, dtype=np.int64)
    least = Moves(one, one, one, one)
    costs_of = {Level.L1B: pass_costs.l1b_cost, Level.L2B: pass_costs.l2b_cost}
    # On the other levels a single move may cost next to nothing: count one step.
    found = costs_of[level](least, target) if level in costs_of else 1
    return found + _around(target)


def pass_code(source: MNValue, result: MNValue, level: Level, target: Target) -> Fragment:
    """Return the code that brings ``source`` into the layout of ``result``, both in LM."""
    change = LayoutChange(layout_of(source), layout_of(result), source.shape, source.dtype)
    found = moves(change, level, target)
    lines: list[Line] = []
    if level is Level.W:
        lines += word_passes.word_steps(found, source, result, target)
    elif level is Level.PE:
        lines += pe_mab_passes.pe_steps(found, source, result, target)
    elif level is Level.MAB:
        lines += pe_mab_passes.mab_steps(found, source, result, target)
    elif level is Level.L1B:
        lines += l1b_l2b_passes.l1b_steps(found, source, result, target)
    else:
        lines += l1b_l2b_passes.l2b_lines(found, source, result, target)
    return Fragment(tuple(lines))
