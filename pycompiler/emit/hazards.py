"""Distances between lines: how many steps a line must wait, and for which MVs.

All hazard rules come from the spec of the machine. Ranges are half open, in long words.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..code.lines import BlockOperand, Line, Move, Operand, PeOperand
from ..machine import WORDS_PER_LONG, Hazard, Target
from .text import Addresses, base

_ALL = (None, None)
_NO_END = 1 << 32  # past the end of any memory


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """The long words that one operand touches.

    For an operand in a PE, ``cycles`` has the long word of each cycle. ``unit`` is group and L2B of
    a memory above the PEs; None stands for all of them. If data from a memory above the PEs is
    written, ``source`` is that memory.
    """

    memory: str
    unit: tuple[int | None, int | None]
    low: int
    high: int
    slot: str
    cycles: tuple[int, ...] = ()
    source: str | None = None

    @property
    def anywhere(self) -> bool:
        """Whether only a register knows which words it touches."""
        return self.high == _NO_END

    def touches(self, other: Access) -> bool:
        """Whether both accesses touch a common long word."""
        if self.memory != other.memory or self.low >= other.high or other.low >= self.high:
            return False
        if self.unit == _ALL or other.unit == _ALL:
            return True
        units = zip(self.unit, other.unit, strict=True)
        return all(a is None or b is None or a == b for a, b in units)


@dataclass(frozen=True, eq=False, slots=True)
class Accesses:
    """The reads and writes of a line; objects are compared by identity."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]

    def conflicts(self, later: Accesses) -> bool:
        """Whether ``later`` must not start before this line has finished."""
        for mine in self.writes:
            for theirs in (*later.reads, *later.writes):
                if mine.memory == theirs.memory and mine.touches(theirs):
                    return True
        for mine in self.reads:
            for theirs in later.writes:
                if mine.memory == theirs.memory and mine.touches(theirs):
                    return True
        return False


_NOTHING = Accesses((), ())


def accesses(line: Line, addresses: Addresses) -> Accesses:
    """Return the accesses of ``line``."""
    reads: list[Access] = []
    writes: list[Access] = []

    def note(operand: Operand, slot: str, written: bool, source: str | None = None) -> None:
        into = writes if written else reads
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
            if operand.entries is not None:
                entry, count = operand.entries
                reads.append(Access("dar", _ALL, entry, entry + count, slot))
                # Only the entries know which blocks these are.
                low, high = 0, _NO_END
            into.append(Access(operand.memory, unit, low, high, slot, (), source))

    if isinstance(line, Move):
        note(line.source, "mv", False)
        note(line.destination, "mv", True)
    else:
        for instruction in line.instructions:
            origin = instruction.source_above
            for operand, written, _ in instruction.touched():
                note(operand, instruction.slot, written, origin if written else None)
    return Accesses(tuple(reads), tuple(writes))


class _Recent:
    """The accesses of the last steps, newest first.

    ``next`` keeps, for each line that came next, its distance and the recent steps after it.
    """

    __slots__ = ("next", "steps")

    def __init__(self, steps: tuple[Accesses, ...]):
        self.steps = steps
        self.next: dict[Accesses, tuple[int, _Recent]] = {}


class Tracker:
    """Follows a program in issue order: recent steps, and the MVs that no line has waited for.

    The recent steps are one object, and equal ones are shared. It keeps the distances that were
    found after it, so that repeated code (the next layer, the next slice) costs little.
    """

    def __init__(self, target: Target):
        self.target = target
        self.step = 0
        self.moves: dict[int, Accesses] = {}
        self._last_tag: int | None = None
        self._known: dict[tuple[str, str, str | None, str], tuple[tuple[Hazard, int], ...]] = {}
        # No rule depends on earlier steps.
        self._reach = max((self._most(rule) for rule in target.hazards), default=1) - 1
        self._recent = _Recent((_NOTHING,) * self._reach)
        self._all = {self._recent.steps: self._recent}

    def tags_before(self, touched: Accesses) -> list[int]:
        """Return the tags of the MVs that must finish before a line with these accesses."""
        return [tag for tag, move in self.moves.items() if move.conflicts(touched)]

    def waited(self, tag: int) -> None:
        """Note that the MV with ``tag`` has finished."""
        del self.moves[tag]

    def distance(self, touched: Accesses) -> int:
        """Count the steps that must still pass before a line with these accesses is legal."""
        most = 0
        for read in touched.reads:
            memory = read.memory
            for back, before in enumerate(self._recent.steps, 1):
                for write in before.writes:
                    if write.memory != memory:
                        continue
                    for rule, reach in self._rules(memory, write, read.slot):
                        if reach - back > most:
                            most = max(most, self._steps(rule, write, read) - back)
        return most

    def issue(self, touched: Accesses) -> int:
        """Note a PE line and the steps that must pass before it, and return their number."""
        found = self._recent.next.get(touched)
        if found is None:
            before, distance = self._recent, self.distance(touched)
            self.nops(distance)
            found = before.next[touched] = distance, self._after(touched)
        else:
            self.step += found[0]
        self.step += 1
        self._recent = found[1]
        return found[0]

    def nops(self, count: int) -> None:
        """Note steps that touch nothing."""
        self.step += count
        for _ in range(min(count, self._reach)):
            self._recent = self._after(_NOTHING)

    def _after(self, touched: Accesses) -> _Recent:
        steps = (touched, *self._recent.steps)[: self._reach]
        found = self._all.get(steps)
        if found is None:
            found = self._all[steps] = _Recent(steps)
        return found

    def _rules(self, memory: str, write: Access, reader: str) -> tuple[tuple[Hazard, int], ...]:
        """Return the rules that apply, each with the most steps that it can demand."""
        key = memory, write.slot, write.source, reader
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(
                (rule, self._most(rule))
                for rule in self.target.hazards
                if rule.applies(memory, write.slot, reader, write.source)
            )
        return found

    def _most(self, rule: Hazard) -> int:
        """Return the number of steps after a write from which every read is legal."""
        if rule.steps is not None:
            return rule.steps + 1
        cycles = self.target.cycles
        return -(-((rule.cycles or 0) + cycles) // cycles)

    def _steps(self, rule: Hazard, write: Access, read: Access) -> int:
        """Return the number of steps after ``write`` from which ``read`` is legal."""
        if rule.rule == "data" and not write.touches(read):
            return 0
        if rule.steps is not None:
            return rule.steps + 1
        apart = (rule.cycles or 0) + 1
        cycles = self.target.cycles
        return max(
            (
                -(-(apart - read_cycle + write_cycle) // cycles)
                for write_cycle, written in enumerate(write.cycles)
                for read_cycle, address in enumerate(read.cycles)
                if written == address
            ),
            default=0,
        )

    def next_tag(self) -> int:
        """Return the next tag; if an MV still uses it, the caller waits for that MV first."""
        tags = self.target.mv_tags
        last = self._last_tag
        return tags[0] if last is None or last == tags[-1] else last + 1

    def issue_move(self, tag: int, touched: Accesses) -> None:
        """Note an MV line."""
        self._last_tag = tag
        self.moves[tag] = touched
