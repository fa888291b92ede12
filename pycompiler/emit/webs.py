"""Finds which accesses of a node to transfer memories need common words, and which need not.

The crate `placing` follows the data through the lines of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emu2 import _core
from emu2._core import Ready

from ..machine import Target
from .ports import rules_of

#: The memories that data passes on its way. No node finds there what another one left.
MEMORIES = ("l1bm", "l2bm", "pdm")


@dataclass(eq=False)
class Web:
    """Instructions that need common words of ``memory``, from ``low`` to ``high``.

    Their addresses may grow by multiples of ``unit``. ``count`` is how many instructions there are.
    """

    memory: str
    low: int
    high: int
    unit: int
    count: int


#: The webs of each instruction of a line, at most one in each memory; those of an MV.
Webs = tuple[tuple[Web, ...], ...]


def webs_of(lines: Sequence[Ready], target: Target) -> list[Webs]:
    """Return the webs of each line of a node.

    A memory in which the node reads what an earlier one left, or words that only a register knows,
    has no webs.
    """
    out: list[list[tuple[Web, ...]]] = [[()] * max(1, len(ready.ops)) for ready in lines]
    for memory in MEMORIES:
        found, of_lines = _core.webs(rules_of(target), memory, lines)
        webs = [Web(memory, *facts) for facts in found]
        for own, numbered in zip(out, of_lines, strict=True):
            for instruction, number in numbered:
                own[instruction] += (webs[number],)
    return list(map(tuple, out))
