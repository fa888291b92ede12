"""Places instructions in steps: each at the first step that hazards, slots and ports allow.

Every placed access is recorded with its step. Instructions must be placed in program order. Each
gets a step after everything that it depends on, but may come before other instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..machine import Hazard, Target
from .hazards import Access
from .ports import LineState, MemoryWord, Op, Ports, places_of

#: A group: ``(step, instruction)`` pairs, with steps counted from the first step of the group.
Group = Sequence[tuple[int, Op]]


class Placing:
    """The steps of a part while instructions are placed in them."""

    def __init__(self, target: Target):
        self.target = target
        self.ports = Ports(target)
        self.lines: list[LineState] = []
        # For every place: step, cycle and writer of the last write; the last step that reads it.
        self.written: dict[MemoryWord, tuple[int, int, Op]] = {}
        self.read: dict[MemoryWord, int] = {}
        # For every port rule and each of its memories: the steps with a write, and with a read.
        ports = (rule for rule in target.hazards if rule.rule == "port")
        self.rules = [(rule, memory) for rule in ports for memory in sorted(rule.memories)]
        self.port_writes: list[set[int]] = [set() for _ in self.rules]
        self.port_reads: list[set[int]] = [set() for _ in self.rules]
        # By slot, and by kind of instruction: maps a taken step to a later one that may be free.
        self.after: dict[object, dict[int, int]] = {}
        # A read this many steps after a write breaks no rule.
        reach = (1 + max(rule.steps or 0, rule.cycles or 0) for rule in target.hazards)
        self.most = max(reach, default=1)
        self.gaps: dict[tuple[str, str, str | None, str], tuple[int, int | None]] = {}
        self.sides: dict[tuple[str, str, str | None], tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def place(self, group: Group) -> int:
        """Place a group at the first step that it may have, and return the step."""
        at = self.free(group, 0)
        for offset, op in group:
            at = max(at, self.earliest(op, at + offset) - offset)
        at = self.free(group, at)
        while not all(self.tried(op, at + offset) for offset, op in group):
            at = self.free(group, at)
        for offset, op in group:
            self.put(op, at + offset)
        return at

    def tried(self, op: Op, at: int) -> bool:
        """Whether ``op`` fits step ``at``; if not, its kind is not tried there again.

        Lines only become fuller, so the answer rarely changes. One case is lost: an instruction of
        the same kind would fit if it reads exactly the words that the line reads already.
        """
        if self.fits(op, at):
            return True
        self.after.setdefault(op.kind, {})[at] = at + 1
        return False

    def free(self, group: Group, at: int) -> int:
        """Return the first step from ``at`` on that ``after`` does not rule out for the group."""
        settled = False
        while not settled:
            settled = True
            for offset, op in group:
                for key in (op.slot, op.kind):
                    after = self.after.get(key)
                    if after is None or at + offset not in after:
                        continue
                    step = found = at + offset
                    while found in after:
                        found = after[found]
                    while step != found:
                        after[step], step = found, after[step]
                    at, settled = found - offset, False
        return at

    def earliest(self, op: Op, at: int) -> int:
        """Return the first step from ``at`` on at which no access of ``op`` comes too soon."""
        at = self.earliest_read(op, at)
        written, read = self.written, self.read
        for touch in op.writes:
            for place, _ in touch.places:
                before = written.get(place)
                if before is not None and before[0] >= at:
                    at = before[0] + 1
                step = read.get(place, 0)
                if step > at:
                    at = step
        return at

    def earliest_read(self, op: Op, at: int) -> int:
        """Return the first step from ``at`` on at which no read of ``op`` comes too soon."""
        written = self.written
        for touch in op.reads:
            for place, cycle in touch.places:
                before = written.get(place)
                if before is None or before[0] + self.most <= at:
                    continue
                step, wrote, writer = before
                steps, cycles = self._gap(touch.memory, writer, op)
                if cycles is not None:
                    steps = max(1, -(-(cycles + 1 + wrote - cycle) // self.target.cycles))
                if step + steps > at:
                    at = step + steps
        return at

    def _gap(self, memory: str, writer: Op, reader: Op) -> tuple[int, int | None]:
        """Return the distance that the rules demand: in steps, and in cycles if a rule has them."""
        key = memory, writer.slot, writer.source, reader.slot
        if key not in self.gaps:
            rules = [
                rule
                for rule in self.target.hazards
                if rule.rule in ("data", "port") and rule.applies(*key[:2], key[3], key[2])
            ]
            steps = max((1 + (rule.steps or 0) for rule in rules), default=1)
            cycles = max((rule.cycles for rule in rules if rule.cycles is not None), default=None)
            self.gaps[key] = steps, cycles
        return self.gaps[key]

    def last(self, access: Access, more: int) -> int:
        """Return the last step that touches what ``access`` does, ``more`` long words higher."""
        written, read = self.written, self.read
        return max(
            max(written[place][0] if place in written else -1, read.get(place, -1))
            for place in places_of(access, more)
        )

    def fits(self, op: Op, at: int) -> bool:
        """Whether slots, ports and the rules of ports let ``op`` have step ``at``."""
        if at < len(self.lines) and not self.ports.fits(op, self.lines[at]):
            return False
        for memory, written in op.memories:
            as_writer, as_reader = self._side(memory, op)
            if written:
                for rule in as_writer:
                    reads = self.port_reads[rule]
                    for n in range(at + 1, at + (self.rules[rule][0].steps or 0) + 1):
                        if n in reads:
                            return False
            else:
                for rule in as_reader:
                    writes = self.port_writes[rule]
                    for n in range(at - (self.rules[rule][0].steps or 0), at):
                        if n in writes:
                            return False
        return True

    def _side(self, memory: str, op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the port rules that ``op`` can break as writer and as reader of ``memory``."""
        key = memory, op.slot, op.source
        if key not in self.sides:

            def those(writer: bool) -> tuple[int, ...]:
                return tuple(
                    number
                    for number, (rule, own) in enumerate(self.rules)
                    if memory == own and _concerns(rule, op, writer)
                )

            self.sides[key] = those(True), those(False)
        return self.sides[key]

    def put(self, op: Op, at: int) -> None:
        """Note that ``op`` has step ``at``."""
        while len(self.lines) <= at:
            self.lines.append(LineState())
        self.lines[at].add(op)
        for touch in op.reads:
            for place, _ in touch.places:
                if self.read.get(place, -1) < at:
                    self.read[place] = at
        for touch in op.writes:
            for place, cycle in touch.places:
                self.written[place] = at, cycle, op
        for memory, written in op.memories:
            as_writer, as_reader = self._side(memory, op)
            for rule in as_writer if written else as_reader:
                (self.port_writes if written else self.port_reads)[rule].add(at)
        self.after.setdefault(op.slot, {})[at] = at + 1


def _concerns(rule: Hazard, op: Op, writer: bool) -> bool:
    if writer:
        right = rule.source is None or rule.source == op.source
        return right and (not rule.writers or op.slot in rule.writers)
    return not rule.readers or op.slot in rule.readers
