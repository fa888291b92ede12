"""The code that converts one tile of the matrix and writes it to a bank; for both schedules."""

from __future__ import annotations

from collections.abc import Sequence

from ...code.lines import Forward, Instruction, MatrixOperand, Operand, PeOperand, Special
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from ..scratch import Words
from .roles import Precision

#: The operand that the ALU converts, and the instructions that read the result by forwarding.
Pair = tuple[PeOperand, tuple[Instruction, ...]]

NOWHERE: Operand = Special("nowrite")


def vector_operand(
    kind: Precision, value: Words, words: tuple[int, ...], word: int = 0
) -> PeOperand:
    """Return the ALU operand that reads one vector per cycle.

    Singles are rounded to halves if a vector takes more than one long word of a PE.
    """
    memory = value.location.memory
    if value.dtype is MNDtype.HALF:
        return PeOperand(memory, words, value.name)
    if kind.words >= WORDS_PER_LONG:
        reduce = kind.words > WORDS_PER_LONG
        return PeOperand(memory, words, value.name, words=kind.words, reduce=reduce)
    return PeOperand(memory, words, value.name, word=word)


def rows_per_cycle(value: MNValue, row: int) -> int:
    """Return how many rows a cycle writes: two if the rows are halves that lie side by side."""
    return 2 if value.dtype is MNDtype.HALF and row == 1 else 1


def tile_pairs(
    kind: Precision,
    value: MNValue,
    at: int,
    row: int,
    bank: str,
    target: Target,
    word: int = 0,
    *,
    alone: bool = False,
) -> list[Pair]:
    """Return the pairs that fill ``bank`` with the tile at ``at``.

    The rows of the tile are ``row`` long words apart. Rows behind the value's long words are
    padding; the first row of the tile stands in for them. With ``alone`` a cycle writes one row.
    """
    cycles, end = target.cycles, layout_of(value).num_lw(target.cycles)
    each = 1 if alone else rows_per_cycle(value, row)
    out: list[Pair] = []
    for first in range(0, kind.rows, cycles * each):
        offsets = [at + (first + each * c) * row for c in range(cycles)]
        words = tuple(offset if offset < end else at for offset in offsets)
        if each > 1:
            wide = each * WORDS_PER_LONG
            source = PeOperand(value.location.memory, words, value.name, words=wide)
            place = MatrixOperand(bank, first, wide)
        else:
            source = vector_operand(kind, value, words, word)
            place = MatrixOperand(bank, first)
        write = Instruction("mwrite", f"{kind.letter}mwrite", (Forward("alu"),), (place,))
        out.append((source, (write,)))
    return out


def tile_steps(kind: Precision, value: MNValue, row: int, target: Target) -> int:
    """Count the pairs of :func:`tile_pairs`."""
    return -(-kind.rows // (target.cycles * rows_per_cycle(value, row)))


def uses(instructions: Sequence[Instruction]) -> list[tuple[Instruction, ...]]:
    """Return the instructions of each line that uses a vector; the ALU keeps it for the next."""
    keep = Instruction("alu", "lpassa", (Forward("alu"),), (NOWHERE,))
    return [*((one, keep) for one in instructions[:-1]), (instructions[-1],)]


def convert(kind: Precision, source: Operand) -> Instruction:
    """Return the instruction that makes block float of ``source``."""
    return Instruction("alu", kind.convert, (source,), (NOWHERE,))
