"""Moves a program to another DRAM base, by a list of the lines that contain DRAM addresses."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ..machine import Target


@dataclass(frozen=True)
class Relocation:
    """Line ``line`` (from 0) names the DRAM address ``value`` + ``offset``.

    A PE line has it as a literal, in blocks of an MV.
    """

    line: int
    value: str
    offset: int


@dataclass(frozen=True)
class Moved:
    """The DRAM words from ``start`` to before ``stop`` of a program are at ``at`` instead."""

    start: int
    stop: int
    at: int


def relocate(
    text: str,
    relocations: Sequence[Relocation],
    delta: int,
    target: Target,
    moved: Sequence[Moved] = (),
) -> str:
    """Return the program with ``delta`` added to its DRAM addresses; ``moved`` lists exceptions."""
    if not delta and not moved:
        return text
    dram = f"${target.letter('dram')}"
    address = re.compile(re.escape(dram) + r"(\d+)")
    by_start = sorted(moved, key=lambda part: part.start)
    starts = [part.start for part in by_start]

    literal = re.compile(r'ui"0x([0-9A-F]{8})"')
    block = target.mv_block

    def place(at: int) -> int:
        number = bisect_right(starts, at) - 1
        if number >= 0 and at < by_start[number].stop:
            return by_start[number].at + at - starts[number]
        return at + delta

    def operand(match: re.Match[str]) -> str:
        return f"{dram}{place(int(match.group(1)))}"

    def bits(match: re.Match[str]) -> str:
        return f'ui"0x{place(int(match.group(1), 16) * block) // block:08X}"'

    lines = text.split("\n")
    for relocation in relocations:
        line, moves = address.subn(operand, lines[relocation.line])
        lines[relocation.line] = line if moves else literal.sub(bits, line)
    return "\n".join(lines)
