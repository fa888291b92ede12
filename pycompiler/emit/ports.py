"""What an instruction needs of the steps of a program: the facts that decide where it fits.

A slot holds one instruction. Of the slots that drive one unit, only a limited number may be used,
all in one precision. A PE memory has one port for each direction. An input of the MAU serves one
instruction. The masks of a line are one mask register, with one length. The crate `placing` keeps
these rules, and the distances of the spec; the assembler checks every line again.
"""

from __future__ import annotations

from functools import cache

from emu2._core import PlacingRules

from ..code.lines import BlockOperand, Forward, MatrixOperand, PeOperand
from ..machine import WORDS_PER_LONG, Target

#: Memories that MVs access.
SHARED = frozenset({"dram", "pdm", "l2bm", "dar"})
#: Accesses of lines to L1BM and L2BM are compared in blocks of this many long words. The machine
#: has no such size.
_GRANULE = 16


@cache
def rules_of(target: Target) -> PlacingRules:
    """Return the rules of a machine that decide where instructions may stand."""
    return PlacingRules(
        target.hazards,
        [(sorted(slots), limit) for slots, limit in target.shares],
        target.banks,
        list(filter(target.above_pes, target.spec.memories)),
        sorted(SHARED),
        [PeOperand, BlockOperand, Forward, MatrixOperand],
        target.issue_rules,
        cycles=target.cycles,
        unit=target.mv_unit,
        granule=_GRANULE,
        l2bs=(target.groups, target.l2bs_per_group),
        long=WORDS_PER_LONG,
        added="t",
        entries="dar",
        blocks="l1bm",
    )
