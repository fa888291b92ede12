"""The numbers of the machine that expansions need."""

from __future__ import annotations

from dataclasses import dataclass

import emu2


@dataclass(frozen=True)
class Chip:
    """Counts of units, and long words of areas and memories."""

    groups: int
    l2bs: int
    """L2Bs of a group."""
    l1bs: int
    """L1Bs of an L2B."""
    mabs: int
    pes: int
    """PEs of a MAB."""
    cycles: int
    last_tag: int
    l1bm: int
    l2bm: int
    registers: dict[str, int]
    """Words of the PE memories, by their letter in assembly."""

    @property
    def block(self) -> int:
        """Long words of an L1B: one for each PE."""
        return self.mabs * self.pes

    @property
    def part(self) -> int:
        """Long words of an L2B: one for each PE."""
        return self.block * self.l1bs

    @property
    def all_l2bs(self) -> int:
        """L2Bs of the chip."""
        return self.groups * self.l2bs

    @property
    def all_pes(self) -> int:
        """PEs of the chip."""
        return self.part * self.all_l2bs

    def l2b(self, number: int) -> str:
        """Return the group and number of an L2B as operands name it."""
        return f"{number // self.l2bs}.{number % self.l2bs}"


def chip(spec: emu2.Spec) -> Chip:
    """Return the numbers of a machine."""
    counts, memories = spec.counts, spec.memories
    words = {letter: 2 * memories[name]["words"] for letter, name in REGISTERS.items()}
    return Chip(
        counts["group"],
        counts["l2b"],
        counts["l1b"],
        counts["mab"],
        counts["pe"],
        counts["cycle"],
        spec.mv_tags[1],
        memories["l1bm"]["words"],
        memories["l2bm"]["words"],
        words,
    )


REGISTERS = {"m": "lm0", "n": "lm1", "r": "grf0", "s": "grf1"}
"""The PE memories by their letter in assembly."""
