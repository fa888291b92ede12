"""Lines in which the ALU converts a vector while the MAU multiplies those before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ...code.lines import Forward, Instruction, Line, Operand, PeOperand, Step
from ...machine import Target
from .roles import Precision
from .tiles import NOWHERE, Pair, convert, uses

#: Long words at the end of the second register file that makers of masks may use.
_MASK_WORDS = 4
_FORWARD = Forward("alu")


def product_of(
    kind: Precision, sources: tuple[Operand, ...], goal: Operand, ending: str
) -> tuple[Instruction, ...]:
    """Return the instructions of a product; a second one adds its part to that of the first."""
    out: list[Instruction] = []
    for number, suffix in enumerate(kind.suffixes):
        terms = sources if not number else (*sources[:2], Forward("mau"))
        name = kind.letter + ("mfma" if len(terms) > 2 else "mmul") + suffix + ending
        last = number == len(kind.suffixes) - 1
        out.append(Instruction("mau", name, terms, (goal if last else NOWHERE,)))
    return tuple(out)


def pipelined(
    lines: Sequence[Pair], kind: Precision, registers: Sequence[PeOperand] = ()
) -> Iterator[Line]:
    """Yield lines that convert the operand of the next instructions while these run.

    ``registers`` hold converted vectors that later pairs use again: then the ALU is free, and so is
    the memory of the vector.
    """
    # Rows of a matrix take both long words of a result; a register holds the first one.
    times = Counter(source for source, use in lines if use[0].slot == "mau")
    again = [source for source, count in times.items() if count > 1]
    held = dict(zip(again, registers, strict=False))
    there: set[PeOperand] = set()
    before: tuple[Instruction, ...] = ()
    for source, instructions in lines:
        multiplies = instructions[0].slot == "mau"
        if multiplies and source in there:
            if before:
                yield Step(before)
            # The MAU reads what the ALU made some steps ago.
            (one,) = instructions
            sources = tuple(held[source] if part == _FORWARD else part for part in one.sources)
            before = (one._replace(sources=sources),)
            continue
        made = convert(kind, source)
        if multiplies and source in held:
            there.add(source)
            made = made._replace(destinations=(held[source],))
        yield Step((*before, made))
        *others, before = uses(instructions)
        yield from map(Step, others)
    if before:
        yield Step(before)


@lru_cache(maxsize=64)
def vector_registers(kind: Precision, target: Target) -> Sequence[PeOperand]:
    """Return the places of converted vectors in the second register file.

    Masks use its last words, and clearing of padding its first ones.
    """
    words, each = target.words("grf1"), target.cycles
    if len(kind.suffixes) > 1:
        return ()  # the ALU keeps a vector for the second instruction of a product
    starts = range(words // 2, words - _MASK_WORDS - each + 1, each)
    return tuple(PeOperand("grf1", tuple(range(start, start + each))) for start in starts)
