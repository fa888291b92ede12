"""Distances between lines: how many steps a line must wait, and for which MV.

The tracker follows a program in issue order. It knows the machine's hazard rules only from the
spec. Ranges are half open, in long words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..layers.fragment import BlockOperand, Line, Move, Operand, PeOperand, Step
from ..machine import WORDS_PER_LONG, Hazard, Target
from .text import Addresses, base

_ALL = (None, None)
_NO_END = 1 << 32  # past the end of any memory


@dataclass(frozen=True)
class Access:
    """Long words that one operand touches; ``cycles`` gives the one of each cycle on a PE.

    ``unit`` is group and L2B of a memory above the PEs, None where all are meant. ``source`` is
    the memory above the PEs that what is written comes from.
    """

    memory: str
    unit: tuple[int | None, int | None]
    low: int
    high: int
    slot: str
    cycles: tuple[int, ...] = ()
    source: str | None = None

    def touches(self, other: Access) -> bool:
        """Whether both touch a common long word."""
        if self.memory != other.memory or self.low >= other.high or other.low >= self.high:
            return False
        if self.unit == _ALL or other.unit == _ALL:
            return True
        units = zip(self.unit, other.unit, strict=True)
        return all(a is None or b is None or a == b for a, b in units)


@dataclass(frozen=True)
class Accesses:
    """What a line reads and writes."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]

    def conflicts(self, later: Accesses) -> bool:
        """Whether ``later`` must not start before this has finished."""
        pairs = ((self.writes, (*later.reads, *later.writes)), (self.reads, later.writes))
        return any(a.touches(b) for mine, theirs in pairs for a in mine for b in theirs)


def accesses(line: Line, addresses: Addresses) -> Accesses:
    """Say what ``line`` touches."""
    reads: list[Access] = []
    writes: list[Access] = []

    def note(into: list[Access], operand: Operand, slot: str, source: str | None = None) -> None:
        if isinstance(operand, PeOperand):
            start = base(operand.value, addresses)
            cycles = tuple(start + offset for offset in operand.offsets)
            for extra in range(max(1, operand.words // WORDS_PER_LONG)):
                touched = tuple(word + extra for word in cycles)
                low, high = min(touched), max(touched) + 1
                if operand.indirect:
                    low, high = 0, _NO_END
                into.append(Access(operand.memory, _ALL, low, high, slot, touched))
            if operand.indirect:
                reads.append(Access("t", _ALL, 0, _NO_END, slot))
        elif isinstance(operand, BlockOperand):
            low = base(operand.value, addresses) + operand.offset
            high = low + operand.words
            unit = operand.group, operand.l2b
            into.append(Access(operand.memory, unit, low, high, slot, (), source))

    if isinstance(line, Move):
        note(reads, line.source, "mv")
        note(writes, line.destination, "mv")
    else:
        for instruction in line.instructions:
            for source in instruction.sources:
                note(reads, source, instruction.slot)
            if instruction.flush is not None:
                note(reads, instruction.flush, instruction.slot)
            blocks = (s.memory for s in instruction.sources if isinstance(s, BlockOperand))
            origin = next(blocks, None)
            for destination in instruction.destinations:
                note(writes, destination, instruction.slot, origin)
    return Accesses(tuple(reads), tuple(writes))


@dataclass
class Tracker:
    """Recent writes by memory, and the MVs nobody has waited for."""

    target: Target
    step: int = 0
    writes: dict[str, list[tuple[int, Access]]] = field(default_factory=dict)
    moves: dict[int, Accesses] = field(default_factory=dict)
    _last_tag: int | None = None
    _known: dict[tuple[str, str, str | None, str], tuple[Hazard, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # After so many steps no rule reaches back to a write.
        rules = self.target.hazards
        self._reach = 1 + max((rule.steps or rule.cycles or 0 for rule in rules), default=0)

    def tags_before(self, touched: Accesses) -> list[int]:
        """Tags of the MVs that must have finished before a line that touches this."""
        return [tag for tag, move in self.moves.items() if move.conflicts(touched)]

    def waited(self, tag: int) -> None:
        """Note that the MV with ``tag`` has finished."""
        del self.moves[tag]

    def distance(self, touched: Accesses) -> int:
        """Count the steps that must still pass before a line that touches this may be issued."""
        earliest = self.step
        for read in touched.reads:
            for at, write in self.writes.get(read.memory, []):
                for rule in self._rules(read.memory, write, read.slot):
                    earliest = max(earliest, self._earliest(rule, at, write, read))
        return earliest - self.step

    def _rules(self, memory: str, write: Access, reader: str) -> tuple[Hazard, ...]:
        key = memory, write.slot, write.source, reader
        if key not in self._known:
            self._known[key] = tuple(
                rule
                for rule in self.target.hazards
                if rule.applies(memory, write.slot, reader, write.source)
            )
        return self._known[key]

    def _earliest(self, rule: Hazard, at: int, write: Access, read: Access) -> int:
        """Return the first step at which ``read`` is legal after ``write`` in step ``at``."""
        if rule.rule == "data" and not write.touches(read):
            return at
        if rule.steps is not None:
            return at + rule.steps + 1
        apart = (rule.cycles or 0) + 1
        cycles = self.target.cycles
        return max(
            (
                at + -(-(apart - read_cycle + write_cycle) // cycles)
                for write_cycle, written in enumerate(write.cycles)
                for read_cycle, address in enumerate(read.cycles)
                if written == address
            ),
            default=at,
        )

    def issue_step(self, step: Step | None, touched: Accesses) -> None:
        """Note a PE line; ``step`` None is a `nop`."""
        for write in touched.writes:
            recent = self.writes.setdefault(write.memory, [])
            recent[:] = [(at, w) for at, w in recent if at + self._reach >= self.step]
            recent.append((self.step, write))
        self.step += 1

    def next_tag(self) -> int:
        """Return the next tag. The caller waits for it first if it is still under way."""
        tags = self.target.mv_tags
        last = self._last_tag
        return tags[0] if last is None or last == tags[-1] else last + 1

    def issue_move(self, tag: int, touched: Accesses) -> None:
        """Note an MV line."""
        self._last_tag = tag
        self.moves[tag] = touched
