"""The rules of parallel issue: which instructions a line may hold together.

A slot holds one instruction. Of the slots that drive one unit, only a limited number may be used,
all in one precision. A PE memory has one port for each direction. An input of the MAU serves one
instruction. The masks of a line are one mask register, with one length. The assembler checks every
line again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from ..layers.fragment import (
    BlockOperand,
    Forward,
    Instruction,
    MatrixOperand,
    Operand,
    PeOperand,
)
from ..machine import WORDS_PER_LONG, IssueRules, Target
from .hazards import Access
from .text import Addresses, base

#: Accesses to L1BM and L2BM are compared in blocks of this many long words. The machine has no such
#: size.
_GRANULE = 16
_PLACES = 32  # bits for a place of one memory

#: The kinds of instructions, numbered: numbers are compared faster than facts.
_KINDS: dict[tuple[object, ...], int] = {}

MemoryWord = int  # memory and long word (or granule), in one number
#: The words of each cycle. Two reads may share a port if their words are equal.
Words = tuple[object, ...]


@dataclass(frozen=True)
class Touch:
    """One access: the ``words`` of each cycle, and all places with the cycle that accesses them.

    Of a memory above the PEs, ``words`` are the first word and their number.
    """

    memory: str
    words: Words
    places: tuple[tuple[MemoryWord, int], ...]


@dataclass(frozen=True, eq=False)
class Op:
    """An instruction with its accesses and the other facts that decide where it fits."""

    instruction: Instruction
    slot: str
    rules: IssueRules
    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    #: slots whose results it reads by forwarding
    takes: frozenset[str]
    flushes: bool
    #: source memory of a transfer from L1BM or L2BM
    source: str | None
    #: memories of which it reads or writes words that only the T register knows, or all words
    anywhere_read: frozenset[str] = frozenset()
    anywhere_written: frozenset[str] = frozenset()

    @cached_property
    def kind(self) -> int:
        """A number for all facts that decide about ports, except the words."""
        facts = self.slot, self.rules, self.flushes, self.source, self.memories
        return _KINDS.setdefault(facts, len(_KINDS))

    @cached_property
    def memories(self) -> tuple[tuple[str, bool], ...]:
        """The memory of each access, and whether the access is a write."""
        reads = ((touch.memory, False) for touch in self.reads)
        return (*reads, *((touch.memory, True) for touch in self.writes))


def op_of(instruction: Instruction, addresses: Addresses, target: Target) -> Op:
    """Return the accesses and port needs of ``instruction``."""
    reads: list[Touch] = []
    writes: list[Touch] = []
    takes: set[str] = set()
    anywhere_read: set[str] = set()
    anywhere_written: set[str] = set()

    def note(operand: Operand, into: list[Touch]) -> None:
        if isinstance(operand, PeOperand):
            if operand.mask is not None:
                reads.append(_mask(operand.mask, operand.words, addresses))
            if operand.indirect:
                anywhere_read.add("t")
                (anywhere_read if into is reads else anywhere_written).add(operand.memory)
            into.append(_pe(operand, addresses))
        elif isinstance(operand, BlockOperand):
            into.append(_block(operand, addresses))
        elif isinstance(operand, Forward):
            takes.add(operand.slot)
        elif isinstance(operand, MatrixOperand):
            bank = target.banks[operand.bank]
            into.append(Touch(bank, (), ((_number(bank), 0),)))

    for operand in instruction.sources:
        note(operand, reads)
    for operand in instruction.destinations:
        note(operand, writes)
    if instruction.flush is not None:
        reads.append(_pe(instruction.flush, addresses))
    blocks = [s for s in instruction.sources if isinstance(s, BlockOperand)]
    return Op(
        instruction,
        instruction.slot,
        target.issue_rules(instruction.mnemonic),
        tuple(reads),
        tuple(writes),
        frozenset(takes),
        instruction.flush is not None,
        blocks[0].memory if blocks else None,
        frozenset(anywhere_read),
        frozenset(anywhere_written),
    )


def _pe(operand: PeOperand, addresses: Addresses) -> Touch:
    start = base(operand.value, addresses)
    wide = max(1, operand.words // WORDS_PER_LONG)
    at = tuple(start + offset for offset in operand.offsets)
    words = (at, operand.words, operand.word)
    first = _number(operand.memory)
    if wide == 1:
        return Touch(operand.memory, words, tuple((first + w, c) for c, w in enumerate(at)))
    places = tuple((first + w + extra, c) for c, w in enumerate(at) for extra in range(wide))
    return Touch(operand.memory, words, places)


def _mask(register: PeOperand, words: int, addresses: Addresses) -> Touch:
    """Return the read of a mask for accesses of ``words`` words, which decide its length."""
    touch = _pe(register, addresses)
    at, _, word = touch.words
    return replace(touch, words=(at, max(words, WORDS_PER_LONG), word))


def _block(operand: BlockOperand, addresses: Addresses) -> Touch:
    return _touch_above(
        operand.memory, base(operand.value, addresses) + operand.offset, operand.words
    )


def _touch_above(memory: str, start: int, words: int) -> Touch:
    first = _number(memory)
    granules = range(start // _GRANULE, (start + words - 1) // _GRANULE + 1)
    return Touch(memory, (start, words), tuple((first + g, 0) for g in granules))


def moved_touch(touch: Touch, more: int) -> Touch:
    """Return a touch of a memory above the PEs that lies ``more`` long words higher."""
    start, words = touch.words
    assert isinstance(start, int)
    assert isinstance(words, int)
    return _touch_above(touch.memory, start + more, words)


def places_of(access: Access, more: int) -> Iterable[MemoryWord]:
    """Return the places of an access that lies ``more`` long words higher."""
    first = _number(access.memory)
    if access.cycles:
        return [first + word + more for word in access.cycles]
    low, high = access.low + more, access.high + more
    return range(first + low // _GRANULE, first + (high - 1) // _GRANULE + 1)


@cache
def _number(memory: str) -> int:
    """Return the number of the memory's first place."""
    return zlib.crc32(memory.encode()) << _PLACES


@dataclass
class LineState:
    """The slots and ports that the instructions of a line occupy."""

    ops: list[Op] = field(default_factory=list)
    slots: dict[str, Op] = field(default_factory=dict)
    reads: dict[str, Words] = field(default_factory=dict)
    writes: dict[str, Words] = field(default_factory=dict)
    flushes: bool = False

    def add(self, op: Op) -> None:
        """Put ``op`` on the line."""
        self.ops.append(op)
        self.slots[op.slot] = op
        self.reads.update((touch.memory, touch.words) for touch in op.reads)
        self.writes.update((touch.memory, touch.words) for touch in op.writes)
        self.flushes |= op.flushes


class Ports:
    """The rules of parallel issue of one machine."""

    def __init__(self, target: Target):
        self._shares = target.shares
        self._above = frozenset(filter(target.above_pes, target.spec.memories))
        self._banks = frozenset(target.banks.values())
        #: memories in which all reads and writes of a line must touch the same words
        self._single = frozenset(
            memory for rule in target.hazards if rule.rule == "port" for memory in rule.memories
        )

    def fits(self, op: Op, line: LineState) -> bool:
        """Whether ``op`` may join the line."""
        if op.slot in line.slots:
            return False
        if op.flushes and line.flushes:
            return False
        return self._room(op, line) and self._shared(op, line)

    def shared(self, ops: Sequence[Op], line: LineState) -> bool:
        """Whether the shared units have room for all of ``ops``, of which each fits the line."""
        return all(
            sum(slot in slots for slot in line.slots) + sum(op.slot in slots for op in ops) <= limit
            for slots, limit in self._shares
        )

    def _room(self, op: Op, line: LineState) -> bool:
        for touch in op.reads:
            memory = touch.memory
            if memory in self._banks:
                if memory in line.reads or memory in line.writes:
                    return False
            elif memory not in self._above:
                words = touch.words
                if line.reads.get(memory, words) != words:
                    return False
                if memory in self._single and line.writes.get(memory, words) != words:
                    return False
        for touch in op.writes:
            memory = touch.memory
            if memory in self._banks:
                if memory in line.reads or memory in line.writes:
                    return False
            elif memory not in self._above:
                if memory in line.writes:
                    return False
                words = touch.words
                if memory in self._single and line.reads.get(memory, words) != words:
                    return False
        return True

    def _shared(self, op: Op, line: LineState) -> bool:
        others = line.slots
        for slots, limit in self._shares:
            if op.slot in slots:
                using = [others[slot] for slot in slots if slot in others]
                if len(using) >= limit or any(
                    o.rules.precision != op.rules.precision for o in using
                ):
                    return False
        return all(_together(op, o) and _together(o, op) for o in line.ops)


def _together(one: Op, other: Op) -> bool:
    """Whether ``one`` leaves the inputs and memories of ``other`` free."""
    if not one.rules.inputs.isdisjoint(other.rules.inputs):
        return False
    excludes = one.rules.excludes
    return not excludes or all(
        touch.memory not in excludes for touch in (*other.reads, *other.writes)
    )
