"""Cuts long MVs into short ones, between which others find room.

An MV holds its memories until all its words have passed. One that adds up or fills all L2BMs holds
all of them, for up to two thousand cycles; a short sum on which everything waits must stay behind
it. Nothing is lost by cutting it: the latencies of MVs overlap, and lines that read the first words
need not wait for the last ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from ..code.lines import BlockOperand, Line, Move
from ..code.move_costs import move_cost
from ..machine import Target

#: An MV holds its memories for at most its latency divided by this.
_PARTS = 8


def short_moves(lines: tuple[Line, ...], target: Target) -> tuple[Line, ...]:
    """Return the lines with short MVs: the same object if there is no long one."""
    out: list[Line] = []
    for line in lines:
        out += _pieces(line, target) if isinstance(line, Move) else (line,)
    return tuple(out) if len(out) > len(lines) else lines


def _pieces(move: Move, target: Target) -> Iterator[Move]:
    """Yield the MVs that together do what ``move`` does."""
    source, goal = move.source, move.destination
    plain = all(one.value is None and one.entries is None for one in (source, goal))
    if not plain or {source.words, goal.words} != {move.words}:
        yield move
        return
    cost = move_cost(move, target)
    # Without a latency, MVs end as they release their memories: pieces are as short as they can be.
    count = -(-cost.holds * _PARTS // max(1, cost.latency))
    # A multiple of this many words is whole for every kind of MV.
    unit = lcm(target.mv_unit, target.mv_block * target.groups * target.l2bs_per_group)
    each = -(-move.words // max(1, count) // unit) * unit
    for start in range(0, move.words, each):
        words = min(each, move.words - start)

        def part(one: BlockOperand, start: int = start, words: int = words) -> BlockOperand:
            return one._replace(offset=one.offset + start, words=words)

        yield move._replace(words=words, source=part(source), destination=part(goal))
