"""The code of one pass, and what it costs."""

from __future__ import annotations

from functools import lru_cache

from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...graph.layout import Layout, Level
from ...machine import Target
from ..fragment import Fragment, Line
from . import lanes, rows, words
from .passes import moves


@lru_cache(maxsize=4096)
def pass_steps(
    source: Layout,
    result: Layout,
    shape: tuple[int, ...],
    dtype: MNDtype,
    level: Level,
    target: Target,
) -> int:
    """Count about the steps of the pass, hazards included. NoPassError if one cannot do it."""
    found = moves(source, result, shape, dtype, level, target)
    if level is Level.W:
        cost = words.word_cost(found, dtype.bits, target)
    elif level is Level.PE:
        cost = lanes.pe_cost(found, target)
    elif level is Level.MAB:
        cost = lanes.mab_cost(found, target)
    elif level is Level.L1B:
        cost = rows.l1b_cost(found, target)
    else:
        cost = rows.l2b_cost(found, target)
    return cost + 2 * target.cycles


def pass_code(source: MNValue, result: MNValue, level: Level, target: Target) -> Fragment:
    """Return the code that brings ``source`` into the layout of ``result``, both in LM."""
    assert source.layout is not None
    assert result.layout is not None
    found = moves(source.layout, result.layout, source.shape, source.dtype, level, target)
    lines: list[Line] = []
    if level is Level.W:
        lines += words.word_steps(found, source, result, target)
    elif level is Level.PE:
        lines += lanes.pe_steps(found, source, result, target)
    elif level is Level.MAB:
        lines += lanes.mab_steps(found, source, result, target)
    elif level is Level.L1B:
        lines += rows.l1b_steps(found, source, result, target)
    else:
        lines += rows.l2b_lines(found, source, result, target)
    return Fragment(tuple(lines))
