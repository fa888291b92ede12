"""The facts of a machine that decide where its instructions may stand, and how they are written.

A slot holds one instruction. Of the slots that drive one unit, only a limited number may be used,
all in one precision. A PE memory has one port for each direction. An input of the MAU serves one
instruction. The masks of a line are one mask register, with one length. The crate `placing` keeps
these rules, and the distances of the spec; the assembler checks every line again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace

from emu2._core import CodeMachine

from ..code.lines import (
    BlockOperand,
    Forward,
    Literal,
    MatrixOperand,
    Move,
    PeOperand,
    Special,
)
from ..code.move_costs import MoveCost, move_cost
from ..graph.graph import Location
from ..layers.dram_transfer_plan import RING_SHARE
from ..layers.switch.unit_masks import NUMBERS
from ..machine import LONGS_PER_WIDE, REGISTER_FILES, WORDS_PER_LONG, Target

#: Memories that MVs access.
SHARED = frozenset({"dram", "pdm", "l2bm", "dar"})
#: Accesses of lines to L1BM and L2BM are compared in blocks of this many long words. The machine
#: has no such size.
_GRANULE = 16


@cache
def machine_of(
    target: Target, cost_of: Callable[[Move, Target], MoveCost] = move_cost
) -> CodeMachine:
    """Return the machine for which code is placed and written, on which MVs have some costs."""
    masks, tags = target.masks, target.mv_tags
    syntax = {name: str(text) for name, text in target.syntax.items()}
    # What the crate knows of a machine beside its distances. Words of memories come with letter,
    # letter by table and prefixes.
    facts = SimpleNamespace(
        shares=[(sorted(slots), limit) for slots, limit in target.shares],
        banks=target.banks,
        above=list(filter(target.above_pes, target.spec.memories)),
        shared=sorted(SHARED),
        memories={n: _memory(target.words(n), one) for n, one in target.spec.memories.items()},
        syntax={
            **syntax,
            "mask_destination": masks["destination"],
            "mask_source": masks["source"],
        },
        forwards=target.forwards,
        unit=target.mv_unit,
        granule=_GRANULE,
        cycles=target.cycles,
        l2bs=(target.groups, target.l2bs_per_group),
        long=WORDS_PER_LONG,
        wide=LONGS_PER_WIDE,
        row=target.l2bm_row,
        ring=RING_SHARE,
        tags=(tags[0], tags[-1]),
        masks=(masks["memory"], masks["entries"]),
        files=REGISTER_FILES,
        local=(Location.LM0.memory, Location.LM1.memory),
        numbers=list(NUMBERS.values()),
        places=("dram", "l1bm", "l2bm", "pdm", "t", "dar"),
        slots=("alu", "mv"),
    )
    classes = [PeOperand, BlockOperand, Forward, MatrixOperand, Literal, Special, Move]

    def cost(move: Move) -> tuple[Sequence[str], int, int]:
        costs = cost_of(move, target)
        return costs.ports, costs.holds, costs.latency

    return CodeMachine(target.hazards, facts, classes, target.issue_rules, cost)


def _memory(words: int, facts: Mapping[str, object]) -> tuple[int, str, str, tuple[str, str]]:
    widths = facts["widths"] or [""]
    assert isinstance(widths, Sequence)
    plain, wide = widths[0], widths[min(1, len(widths) - 1)]
    return words, str(facts["letter"]), str(facts["by_table"]), (plain, wide)
