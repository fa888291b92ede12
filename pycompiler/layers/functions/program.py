"""Straight-line programs over rows: the instructions that an operator runs on one vector.

A row is the long word of each cycle of a step, in every PE: two singles, two 32-bit integers or one
64-bit integer. A program only lists the computations. :mod:`.modulo_schedule` finds a register and
a step for each instruction. Equal instructions appear once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

_WORD = (1 << 32) - 1


@dataclass(frozen=True)
class Input:
    """Operand ``number`` of the operator."""

    number: int


@dataclass(frozen=True)
class Constant:
    """The same 64 bits in every cycle."""

    bits: int

    @property
    def words(self) -> tuple[int, int]:
        """The two 32-bit words, the upper one first."""
        return self.bits >> 32, self.bits & _WORD


@dataclass(frozen=True)
class Result:
    """The result of instruction ``index`` of the program."""

    index: int

    @property
    def flags(self) -> Flags:
        """The flags that the instruction leaves."""
        return Flags(self.index)


@dataclass(frozen=True)
class Flags:
    """The flags of instruction ``index``: a mask that clears rows (see :meth:`Program.keep`)."""

    index: int


Row = Input | Constant | Result


@dataclass(frozen=True)
class Source:
    """A row as an operand of the MAU: ``negate`` flips its sign.

    ``extend`` reads it as the next lower format: its first ``word`` as a double, or all its halves.
    """

    row: Row
    negate: bool = False
    extend: bool = False
    word: int | None = None


@dataclass(frozen=True)
class Operation:
    """One instruction. With ``first_word`` only the first word of its result is meant."""

    unit: str
    mnemonic: str
    sources: tuple[Source, ...]
    flush: Flags | None = None
    first_word: bool = False


#: The forms of a row that the methods below accept. A float stands for a single in both words, an
#: int for 32 bits in both words.
Operand = Row | Source | float | int


@dataclass(eq=False)
class Program:
    """Instructions, each behind the instructions that it reads; ``result`` is the outcome."""

    operations: list[Operation] = field(default_factory=list)
    result: Result | None = None
    _known: dict[Operation, Result] = field(default_factory=dict)

    # -- rows ----------------------------------------------------------------------------------

    @staticmethod
    def row(operand: Operand) -> Source:
        """Return the operand as a source."""
        if isinstance(operand, Source):
            return operand
        if isinstance(operand, float):
            return Source(single(operand))
        if isinstance(operand, int):
            return Source(Constant((operand & _WORD) << 32 | (operand & _WORD)))
        return Source(operand)

    def op(
        self,
        unit: str,
        mnemonic: str,
        *operands: Operand,
        flush: Flags | None = None,
        first_word: bool = False,
    ) -> Result:
        """Append an instruction, or find the one that computes the same."""
        sources = tuple(self.row(operand) for operand in operands)
        return self.add_operation(Operation(unit, mnemonic, sources, flush, first_word))

    def add_operation(self, made: Operation) -> Result:
        """Append an instruction, or find the one that computes the same."""
        if made not in self._known:
            self.operations.append(made)
            self._known[made] = Result(len(self.operations) - 1)
        return self._known[made]

    # -- ALU -----------------------------------------------------------------------------------

    def alu(self, mnemonic: str, *operands: Operand) -> Result:
        """Return the result of an ALU instruction."""
        return self.op("alu", mnemonic, *operands)

    def flags(self, mnemonic: str, *operands: Operand) -> Flags:
        """Return the flags of an ALU instruction."""
        return self.alu(mnemonic, *operands).flags

    def keep(self, flags: Flags, a: Operand) -> Result:
        """Return ``a`` in lanes whose flag is set, 0 in others."""
        return self.op("alu", "lpassa", a, flush=flags)

    def mask(self, flags: Flags) -> Result:
        """Return all ones in lanes whose flag is set, 0 in others."""
        return self.keep(flags, ONES)

    def select(self, mask: Operand, a: Operand, b: Operand) -> Result:
        """Return ``a`` where the mask is all ones, ``b`` where it is 0."""
        if self.row(b) == Source(ZERO):
            return self.alu("land", a, mask)
        both = self.alu("lxor", a, b)
        return self.alu("lxor", self.alu("land", both, mask), b)

    # -- the end -------------------------------------------------------------------------------

    def finish(self, result: Row) -> Program:
        """Set the outcome and drop the instructions that it does not need."""
        if not isinstance(result, Result):
            result = self.alu("lpassa", result)
        needed = {result.index}
        for index in reversed(range(len(self.operations))):
            if index in needed:
                needed |= set(reads(self.operations[index]))
        kept = sorted(needed)
        new = {old: Result(number) for number, old in enumerate(kept)}
        self.operations = [moved(self.operations[index], new) for index in kept]
        self._known = {}
        self.result = new[result.index]
        return self


def reads(operation: Operation) -> tuple[int, ...]:
    """Return the instructions whose results or flags an instruction reads."""
    rows = [s.row.index for s in operation.sources if isinstance(s.row, Result)]
    return (*rows, *(() if operation.flush is None else (operation.flush.index,)))


def moved(operation: Operation, new: Mapping[int, Result] | Sequence[Result]) -> Operation:
    """Return the instruction in a program whose instructions have the numbers ``new``."""
    sources = tuple(
        replace(s, row=new[s.row.index]) if isinstance(s.row, Result) else s
        for s in operation.sources
    )
    flush = None if operation.flush is None else Flags(new[operation.flush.index].index)
    return replace(operation, sources=sources, flush=flush)


def neg(operand: Operand) -> Source:
    """Return the operand with its sign flipped (MAU only)."""
    source = Program.row(operand)
    return replace(source, negate=not source.negate)


def first_word(operand: Operand) -> Source:
    """Return the single in the first word of each long word as a double (MAU `d` only)."""
    return replace(Program.row(operand), extend=True, word=0)


def halves(operand: Operand) -> Source:
    """Return the four halves of each long word as singles (addend of an MAU `h` only)."""
    return replace(Program.row(operand), extend=True)


def single(value: float) -> Constant:
    """Return the nearest single in both words."""
    bits = int(np.float32(value).view(np.uint32))
    return Constant(bits << 32 | bits)


def double(value: float) -> Constant:
    """Return a double."""
    return Constant(int(np.float64(value).view(np.uint64)))


def long(value: int) -> Constant:
    """Return a 64-bit integer."""
    return Constant(value & ((1 << 64) - 1))


def word(value: int) -> Constant:
    """Return a 32-bit integer in both words."""
    return Constant((value & _WORD) << 32 | (value & _WORD))


ONES = long(-1)
ZERO = long(0)
