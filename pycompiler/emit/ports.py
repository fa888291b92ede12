"""What an instruction needs of the steps of a program: the facts that decide where it fits.

A slot holds one instruction. Of the slots that drive one unit, only a limited number may be used,
all in one precision. A PE memory has one port for each direction. An input of the MAU serves one
instruction. The masks of a line are one mask register, with one length. The crate `placing` keeps
these rules, and the distances of the spec; the assembler checks every line again.
"""

from __future__ import annotations

from functools import cache

from emu2._core import Op, PlacingRules

from ..code.lines import BlockOperand, Forward, Instruction, MatrixOperand, PeOperand
from ..machine import WORDS_PER_LONG, Target
from .text import Addresses, base

#: Accesses of lines to L1BM and L2BM are compared in blocks of this many long words. The machine
#: has no such size.
_GRANULE = 16


@cache
def rules_of(target: Target) -> PlacingRules:
    """Return the rules of a machine that decide where instructions may stand."""
    return PlacingRules(
        target.hazards,
        [(sorted(slots), limit) for slots, limit in target.shares],
        sorted(target.banks.values()),
        list(filter(target.above_pes, target.spec.memories)),
        cycles=target.cycles,
        unit=target.mv_unit,
        granule=_GRANULE,
        l2bs=(target.groups, target.l2bs_per_group),
    )


def op_of(instruction: Instruction, addresses: Addresses, target: Target) -> Op:
    """Return the accesses and port needs of ``instruction``."""
    reads: list[tuple[object, ...]] = []
    writes: list[tuple[object, ...]] = []
    takes: list[str] = []
    anywhere: tuple[list[str], list[str]] = ([], [])

    for operand, written, length in instruction.touched():
        into = writes if written else reads
        if isinstance(operand, PeOperand):
            if operand.indirect:
                anywhere[0].append("t")
                anywhere[written].append(operand.memory)
            into.append(_pe(operand, length, addresses))
        elif isinstance(operand, BlockOperand):
            start = base(operand.value, addresses) + operand.offset
            into.append((operand.memory, start, operand.words))
        elif isinstance(operand, Forward):
            takes.append(operand.slot)
        elif isinstance(operand, MatrixOperand):
            into.append((target.banks[operand.bank],))
    rules = target.issue_rules(instruction.mnemonic)
    return Op(
        rules_of(target),
        instruction.slot,
        reads,
        writes,
        takes=takes,
        precision=rules.precision,
        inputs=sorted(rules.inputs),
        excludes=sorted(rules.excludes),
        flushes=instruction.flush is not None,
        source=instruction.source_above,
        anywhere=anywhere,
    )


def _pe(operand: PeOperand, length: int, addresses: Addresses) -> tuple[object, ...]:
    """Return an operand of a PE; ``length`` is the number of 32-bit words of one access."""
    start = base(operand.value, addresses)
    part = () if operand.word is None else operand.word
    form = (len(operand.offsets), length, *((part,) if isinstance(part, int) else (-1, *part)))
    at = [start + offset for offset in operand.offsets]
    return operand.memory, at, max(1, operand.words // WORDS_PER_LONG), form
