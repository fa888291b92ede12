"""The code of one pass."""

from __future__ import annotations

from ...code.lines import Fragment, Line
from ...graph.graph import MNValue
from ...graph.layout import Level
from ...machine import Target
from ..base import layout_of
from . import l1b_passes, l2b_passes, pe_mab_passes, word_passes
from .local_copies import copy_steps, stays
from .pass_moves import LayoutChange
from .pass_search import moves


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
    elif level in (Level.L1B, Level.L2B) and stays(found):
        lines += copy_steps(found, source, result, level, target)
    elif level is Level.L1B:
        lines += l1b_passes.l1b_steps(found, source, result, target)
    else:
        lines += l2b_passes.l2b_lines(found, source, result, target)
    return Fragment(tuple(lines))
