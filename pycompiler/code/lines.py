"""Relocatable code: instructions whose addresses are relative to values, in issue order.

All addresses and sizes are in long words. :mod:`pycompiler.emit` turns the code into assembly text
and adds the steps that hazards demand and the waits for MV instructions. A compile makes millions
of lines, so they are tuples, which are made faster than other classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..machine import Target


class PeOperand(NamedTuple):
    """Long words of a PE memory, one per cycle, at ``offsets`` from the base of ``value``.

    ``value`` None means absolute addresses (registers). ``negate`` flips the sign (MAU sources).
    ``words`` are the 32-bit words of one access; ``word`` accesses only that word of each long
    word. ``extend`` reads it as the next lower format (MAU sources), ``reduce`` as the next higher
    one. ``mask`` is the mask register of a destination. ``indirect`` adds the T register to every
    address (LM0 only).
    """

    memory: str
    offsets: tuple[int, ...]
    value: str | None = None
    negate: bool = False
    word: int | tuple[int, ...] | None = None
    extend: bool = False
    words: int = 2
    mask: PeOperand | None = None
    reduce: bool = False
    indirect: bool = False


class Special(NamedTuple):
    """An operand that has a name and no address: ``nowrite``, ``mabid``."""

    name: str


class MatrixOperand(NamedTuple):
    """The matrix register ``bank`` from ``row`` on; None is the whole register.

    ``words`` are the 32-bit words of one access.
    """

    bank: str
    row: int | None = None
    words: int = 2


class Forward(NamedTuple):
    """The last result of issue slot ``slot``, by its forwarding path. ``negate`` flips the sign."""

    slot: str
    negate: bool = False


class Literal(NamedTuple):
    """The 32 bits of an ``imm``: ``bits``, plus the address of ``value`` in blocks of ``unit``."""

    bits: int
    value: str | None = None
    unit: int = 1


class BlockOperand(NamedTuple):
    """``words`` long words of a memory above the PEs from ``offset`` of ``value`` on.

    ``l2b`` selects one L2B of every group, ``group`` one group (MV only); None means all. ``wide``:
    the instruction moves two long words per PE and cycle. ``entries`` are the first entry and the
    number of entries of the address registers (DAR) that an MV follows to any blocks of ``value``.
    An ``implied`` operand does not stand in the text.
    """

    memory: str
    offset: int
    words: int
    value: str | None = None
    l2b: int | None = None
    group: int | None = None
    wide: bool = False
    entries: tuple[int, int] | None = None
    implied: bool = False


Operand = PeOperand | Special | MatrixOperand | Forward | BlockOperand | Literal


def mask_register(entry: int, target: Target) -> PeOperand:
    """Return entry ``entry`` of the mask registers, as a destination or as a mask."""
    first = entry * target.cycles
    return PeOperand(target.masks["memory"], tuple(range(first, first + target.cycles)))


class Instruction(NamedTuple):
    """One instruction of a PE line. ``slot`` is its issue slot (``alu``, ``mau``, ``l1bm``...).

    ``flush`` is the mask register whose zeros clear the result.
    """

    slot: str
    mnemonic: str
    sources: tuple[Operand, ...]
    destinations: tuple[Operand, ...]
    flush: PeOperand | None = None

    def with_operands(self, change: Callable[[Operand], Operand]) -> Instruction:
        """Return the instruction with what ``change`` makes of its operands."""
        sources, destinations = tuple(map(change, self.sources)), map(change, self.destinations)
        return self._replace(sources=sources, destinations=tuple(destinations))


class Step(NamedTuple):
    """One PE line."""

    instructions: tuple[Instruction, ...]

    def with_operands(self, change: Callable[[Operand], Operand]) -> Step:
        """Return the line with what ``change`` makes of its operands."""
        return Step(tuple(one.with_operands(change) for one in self.instructions))


def single_step(
    slot: str, mnemonic: str, sources: tuple[Operand, ...], destination: Operand
) -> Step:
    """Return a PE line with one instruction that has one destination."""
    return Step((Instruction(slot, mnemonic, sources, (destination,)),))


def alu_step(mnemonic: str, sources: tuple[Operand, ...], destination: Operand) -> Step:
    """Return a PE line with one ALU instruction."""
    return single_step("alu", mnemonic, sources, destination)


class Move(NamedTuple):
    """One MV line of ``words`` long words, in each group if the operands name no group."""

    mnemonic: str
    words: int
    source: BlockOperand
    destination: BlockOperand


Line = Step | Move


@dataclass(frozen=True)
class Fragment:
    """The code of one node. ``packed`` says that its lines cannot be packed further.

    ``loose``: lines that share no forwarding path may drift apart when nodes are merged. So lines
    of other nodes find room between them, and each goes as soon as its own words are there.
    ``names`` maps the operands' values to values of the graph. If it is empty, the operands already
    name values of the graph.
    """

    lines: tuple[Line, ...]
    packed: bool = False
    loose: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """PE lines, before any `nop`."""
        return sum(isinstance(line, Step) for line in self.lines)
