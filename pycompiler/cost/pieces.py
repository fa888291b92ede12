"""About how long operators on tiles of a few places take, before any of them has a layout.

guess: the numbers of cycles are those of programs of stencils of up to 500 words in a PE.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..machine import Target
from .moves import dram_rate, latency_steps


def operator_cycles(words: Iterable[int], copies: Iterable[int]) -> int:
    """Return the cycles of operators of two operands and of copies, of so many words in a PE."""
    return sum(12 + 3 * own for own in words) + sum(8 + 2 * own for own in copies)


def exchange_cycles(sides: int, far: int, target: Target) -> int:
    """Return the cycles in which PEs get words from neighbours on so many sides.

    The sides of ``far`` exchanges reach the next L2B by two MVs.
    """
    return 100 * sides + 9 * latency_steps(target) * far


def carried_cycles(words: int, groups: int, target: Target) -> int:
    """Return the cycles in which so many words get from DRAM to so many groups, or back."""
    return words // (groups * dram_rate(target))
