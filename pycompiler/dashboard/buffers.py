"""What lies in L2BM while a program runs: the words that MVs bring there, or take from there."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..machine import Target
from ..profile.programs import MVS, Program
from .lives import Life

L2BM = "L2BM"
_PLACE = re.compile(r"\$lc(\d+)")
_MOVE = re.compile(r"(mv[a-z]*)\d*[a-z]*/n(\d+)\S* (\S+) (\S+)")
#: MVs whose words are divided among all L2BMs.
_DIVIDED = "mvd"


@dataclass(frozen=True)
class _Move:
    text: str
    writes: bool
    addr: int
    words: int
    start: int
    end: int

    def meets(self, other: _Move) -> bool:
        """Whether the words of two MVs overlap."""
        return self.addr < other.addr + other.words and other.addr < self.addr + self.words


def buffers(program: Program, target: Target) -> list[Life]:
    """Return the lives of words in L2BM; their times are cycles, their words those of one L2BM.

    What an MV brings lives until the last instruction that names an address in it, before another
    MV meets its words. What an MV takes lives from the first such instruction on.
    """
    moves = sorted(_moves(program, target), key=lambda move: move.start)
    lines = {line.number: line for own in program.nodes.values() for line in own}
    touches = sorted(
        (line.start, int(addr))
        for line in lines.values()
        if "l2bm" in line.slots
        for addr in _PLACE.findall(line.text)
    )
    times = [time for time, _ in touches]
    places = np.array([addr for _, addr in touches], dtype=np.int64)
    found = []
    for k, move in enumerate(moves):
        start, stop = move.start, move.end
        if move.writes:
            later = (one.start for one in moves[k + 1 :] if one.meets(move))
            first, last = bisect_left(times, start), bisect_left(times, next(later, program.cycles))
        else:
            earlier = (one.end for one in reversed(moves[:k]) if one.meets(move))
            first, last = bisect_left(times, next(earlier, 0)), bisect_right(times, start)
        inside = places[first:last] - move.addr
        at = np.flatnonzero((inside >= 0) & (inside < move.words))
        if at.size and move.writes:
            stop = max(stop, times[first + int(at[-1])] + target.cycles)
        elif at.size:
            start = min(start, times[first + int(at[0])])
        found.append(Life(move.text, L2BM, start, stop, move.addr, move.words))
    return found


def _moves(program: Program, target: Target) -> Iterator[_Move]:
    tracks = {k for k, track in enumerate(program.tracks) if track.place[0] == MVS}
    l2bms = prod(target.counts[level] for level in ("group", "l2b"))
    for track, start, length, text, *_ in program.events:
        move = _MOVE.match(text) if track in tracks else None
        if move is None:
            continue
        words = int(move[2]) // (l2bms if move[1] == _DIVIDED else 1)
        for writes, operand in ((False, move[3]), (True, move[4])):
            place = _PLACE.match(operand)
            if place is not None:
                yield _Move(text, writes, int(place[1]), words, start, start + length)
