"""Shorter programs with the same results: choices without masks, and products with their sums.

A choice between a value and 0 does not need a mask of ones, because the flags of a comparison clear
lanes of the value itself. A product that only a sum reads is part of it: ``a * b + c`` is one
instruction, which rounds once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from .program import ONES, ZERO, Flags, Operation, Program, Result, Source, moved, neg, reads, word

#: The smallest normal single, and the one below 0.
_SMALLEST, _SMALLEST_NEGATIVE = 0x00800000, 0x80800000
#: Comparisons with 0 as flags of the opposite comparison, which compares bits. Below the smallest
#: normal single, a number counts as 0.
_OPPOSITES = {"fmin": ("imax", word(_SMALLEST)), "fmax": ("uimax", word(_SMALLEST_NEGATIVE))}


def without_masks(program: Program) -> Program:
    """Return the program with a cleared value for each value that meets a mask, with equal bits."""
    return _rewritten(program, lambda made, _, again: _choice(made, again))


#: Returns what takes the place of an instruction, which it gets as it was and as it is in the new
#: program; None if it stays.
_Rewrite = Callable[[Program, Operation, Operation], Result | None]


def _rewritten(program: Program, rewrite: _Rewrite) -> Program:
    made = Program()
    new: list[Result] = []
    for operation in program.operations:
        again = moved(operation, new)
        new.append(rewrite(made, operation, again) or made.add_operation(again))
    assert program.result is not None
    return made.finish(new[program.result.index])


def _choice(made: Program, operation: Operation) -> Result | None:
    """Return a value that is cleared by flags, if ``operation`` joins it with a mask of them."""
    if operation.mnemonic != "land":
        return None
    for value, mask in (operation.sources, operation.sources[::-1]):
        found = _operation(made, mask)
        if found is None:
            continue
        flags = _ones_of(found)
        if flags is not None:
            return made.keep(flags, value)
        inner = _operation(made, found.sources[0]) if found.mnemonic == "lnot" else None
        flags = None if inner is None else _ones_of(inner)
        if flags is None:
            continue
        test = made.operations[flags.index]
        other = _OPPOSITES.get(test.mnemonic)
        if other is not None and test.sources[1] == Source(ZERO):
            return made.keep(made.flags(other[0], test.sources[0], other[1]), value)
        return made.alu("lxor", value, made.keep(flags, value))
    return None


def _operation(made: Program, source: Source) -> Operation | None:
    return made.operations[source.row.index] if isinstance(source.row, Result) else None


def _ones_of(operation: Operation) -> Flags | None:
    """Return the flags of which an instruction makes a mask."""
    if operation.mnemonic == "lpassa" and operation.sources == (Source(ONES),):
        return operation.flush
    return None


def with_products_in_sums(program: Program) -> Program:
    """Return the program with one instruction for a product of singles and the sum that reads it.

    The product is not rounded, so results differ in their last bits.
    """
    count = Counter(index for one in program.operations for index in reads(one))

    def joined(made: Program, before: Operation, again: Operation) -> Result | None:
        if before.mnemonic != "fvadd":
            return None
        return _joined(made, before.sources, again.sources, count)

    return _rewritten(program, joined)


def _joined(
    made: Program, before: Sequence[Source], sources: Sequence[Source], count: Counter[int]
) -> Result | None:
    """Return the sum with the product in it; ``before`` are the sources in the old program."""
    for number, (old, source) in enumerate(zip(before, sources, strict=True)):
        product = _operation(made, source)
        if product is None or product.mnemonic != "fvmul" or source.extend:
            continue
        if isinstance(old.row, Result) and count[old.row.index] > 1:
            continue
        one, other = product.sources
        factor = neg(one) if source.negate else one
        return made.op("mau", "fvfma", factor, other, sources[1 - number])
    return None
