"""The instructions between L2BM and LM that bring a value of a layout.

A level whose units all differ is distributed, a level whose units are all alike is broadcast.
If only some units of a level hold copies, there are two choices. DRAM holds the copies too, or one
broadcast per set of equal units brings each word to its set. The second one moves fewer words
through the memories above.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from ..graph.layout import Layout, Level
from ..machine import Target


class StageInstruction(NamedTuple):
    """The instruction of a stage, and the sets of units that it serves one after the other.

    Bit u of a set stands for unit u. Without sets one instruction serves all units. ``wide``: the
    instruction can move two long words per PE and cycle.
    """

    mnemonic: str
    sets: tuple[int, ...] = ()
    wide: bool = False

    @property
    def turns(self) -> int:
        """How often the instruction runs for the words of one unit."""
        return max(1, len(self.sets))


def instructions_to_pes(layout: Layout, target: Target) -> tuple[StageInstruction, ...]:
    """Return the instructions that can bring words from L1BM to the LM of all PEs."""
    sets = equal_units(layout, Level.MAB, target)
    if len(sets) == 1:
        return (StageInstruction("l1bmm", wide=True),)
    distributed = StageInstruction("l1bmd")
    if len(sets) == target.counts["mab"]:
        return (distributed,)
    return distributed, StageInstruction("l1bmm", sets, wide=True)


def instructions_to_l1bs(layout: Layout, target: Target) -> tuple[StageInstruction, ...]:
    """Return the instructions that can bring words from L2BM to all L1BMs of an L2B."""
    sets = equal_units(layout, Level.L1B, target)
    if len(sets) == 1:
        return (StageInstruction("l2bmb"),)
    distributed = StageInstruction("l2bmd")
    if len(sets) == target.counts["l1b"] or not all(legal_set(one, target) for one in sets):
        return (distributed,)
    return distributed, StageInstruction("l2bmb", sets)


def equal_units(layout: Layout, level: Level, target: Target) -> tuple[int, ...]:
    """Return the sets of units of ``level`` that hold the same words; bit u is unit u.

    Units that the digits do not reach count as copies.
    """
    digits = sorted((sub.stride, sub.size) for sub in layout.on(level) if sub.size > 1)
    copies = [
        copy.stride for copy in layout.broadcast if copy.level is level and copy.size is not None
    ]
    # A digit ends where the next one begins, which may be a digit of copies: of three MABs of four,
    # the fourth is not reached.
    ends = [
        min((s for s in (*copies, *dict(digits)) if s > stride), default=0) for stride, _ in digits
    ]
    sets: dict[tuple[int, ...], int] = {}
    for unit in range(target.level_range[level.value]):
        key = tuple(
            (unit % end if end else unit) // stride % size
            for (stride, size), end in zip(digits, ends, strict=True)
        )
        sets[key] = sets.get(key, 0) | 1 << unit
    return tuple(sets.values())


def members(units: int) -> tuple[int, ...]:
    """Return the numbers of the units of a set."""
    return tuple(unit for unit in range(units.bit_length()) if units >> unit & 1)


@lru_cache(maxsize=256)
def legal_set(l1bs: int, target: Target) -> tuple[tuple[str, int], ...]:
    """Return the parameters of `l2bmb` for a set of L1Bs; empty if no instruction names it."""
    chosen = members(l1bs)
    free = 0
    for l1b in chosen:
        free |= l1b ^ chosen[0]
    parameters = {"l1bs_first": chosen[0], "l1bs_free": free}
    reached = target.transfer("l2bmb", "down", **parameters).destination["l1b"]
    return tuple(parameters.items()) if set(chosen) == set(reached.tolist()) else ()


def same_in_all_groups(layout: Layout, target: Target) -> bool:
    """Whether the layout says that all groups hold copies, each L2B of a group its own words."""
    per_group = target.l2bs_per_group
    digits = [sub for sub in layout.on(Level.L2B) if sub.size > 1]
    if not digits or any(sub.stride * sub.size > per_group for sub in digits):
        return False
    copies = [copy for copy in layout.broadcast if copy.level is Level.L2B and copy.size]
    groups = prod(copy.size or 1 for copy in copies if copy.stride >= per_group)
    return target.groups > 1 and groups == target.groups
