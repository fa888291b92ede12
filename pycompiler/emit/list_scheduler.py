"""The list scheduler: instructions of a fragment share lines where ports and hazards allow it.

Instructions that a forwarding path connects keep their distance of one step and move together as a
group. Groups are placed in the order of the fragment. Each goes to the first step at which its
inputs are written, the old contents of its outputs have been read, and its slots and ports are
free. No instruction moves past an MV line or past a line that may wait for an MV.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from ..graph.disjoint_sets import DisjointSets
from ..layers.fragment import BlockOperand, Instruction, Line, Move, PeOperand, Step
from ..machine import Hazard, Target
from .hazards import Accesses, accesses
from .ports import LineState, Op, Place, Ports, op_of
from .text import Addresses

#: A group: ``(step, instruction)`` pairs, with steps counted from the first step of the group.
Group = list[tuple[int, Op]]


def schedule(lines: Sequence[Line], addresses: Addresses, target: Target) -> list[Line]:
    """Return the lines packed; the caller adds the `nop` for hazards inside a group."""
    known: dict[int, Op] = {}

    def op(instruction: Instruction) -> Op:
        # One instruction may stand on several lines; its needs are found once.
        found = known.get(id(instruction))
        if found is None:
            found = known[id(instruction)] = op_of(instruction, addresses, target)
        return found

    parts = list(_parts(lines, addresses))
    needs = [
        [[op(i) for i in step.instructions] for step in part]
        if isinstance(part, list) and not _indirect(part)
        else None
        for part in parts
    ]
    out: list[Line] = []
    for index, part in enumerate(parts):
        if isinstance(part, Move):
            out.append(part)
            continue
        # If the next part reads results by forwarding, they must stay in the last line of this
        # part. Then this part is not packed.
        following = next((p for p in parts[index + 1 :] if isinstance(p, list)), None)
        taken = following is not None and any(op(i).takes for i in following[0].instructions)
        ops = needs[index]
        groups = None if ops is None or taken else _groups(ops)
        out += part if groups is None else _Placing(target).place(groups)
    return out


def _indirect(part: Sequence[Step]) -> bool:
    return any(
        isinstance(operand, PeOperand) and operand.indirect
        for step in part
        for i in step.instructions
        for operand in (*i.sources, *i.destinations)
    )


def _parts(lines: Sequence[Line], addresses: Addresses) -> Iterator[list[Step] | Move]:
    """Cut the lines at MV lines, and before the first line that must wait for an MV."""
    part: list[Step] = []
    moves: list[Accesses] = []
    for line in lines:
        if isinstance(line, Move):
            if part:
                yield part
            part = []
            yield line
            moves.append(accesses(line, addresses))
            continue
        if moves and _above(line):
            touched = accesses(line, addresses)
            left = [move for move in moves if not move.conflicts(touched)]
            if len(left) < len(moves):
                moves = left
                if part:
                    yield part
                part = []
        part.append(line)
    if part:
        yield part


def _above(step: Step) -> bool:
    return any(
        isinstance(operand, BlockOperand)
        for i in step.instructions
        for operand in (*i.sources, *i.destinations)
    )


def _groups(steps: Sequence[Sequence[Op]]) -> list[Group] | None:
    """Return the groups in an order in which no group depends on a later one.

    None if there is no such order, or if an instruction reads, by forwarding, a result from
    outside these steps.
    """
    chosen: dict[str, int] = {}
    members: list[list[tuple[int, Op]]] = []
    joined = DisjointSets[int]()

    owners: list[list[int]] = []
    for number, ops in enumerate(steps):
        here: dict[str, int] = {}
        owners.append([])
        for op in ops:
            own = len(members)
            members.append([(number, op)])
            for slot in op.takes:
                if slot not in chosen:
                    return None
                one, other = sorted((joined.root(chosen[slot]), joined.root(own)))
                if one != other:
                    joined.join(other, one)
                    members[one] += members[other]
                    members[other] = []
            here[op.slot] = own
            owners[-1].append(own)
        chosen = here
    roots = [[joined.root(own) for own in row] for row in owners]
    groups = {
        number: [(at - found[0][0], op) for at, op in found]
        for number, found in enumerate(members)
        if found
    }
    if _in_order(steps, roots):
        return list(groups.values())
    return _sorted(steps, roots, groups)


def _in_order(steps: Sequence[Sequence[Op]], roots: Sequence[Sequence[int]]) -> bool:
    """Whether no group depends on a group that begins later."""
    last: dict[Place, int] = {}
    read: dict[Place, int] = {}
    for ops, owners in zip(steps, roots, strict=True):
        for op, own in zip(ops, owners, strict=True):
            for touch in op.reads:
                for place, _ in touch.places:
                    if last.get(place, own) > own:
                        return False
                    if read.get(place, -1) < own:
                        read[place] = own
        for op, own in zip(ops, owners, strict=True):
            for touch in op.writes:
                for place, _ in touch.places:
                    if last.get(place, own) > own or read.get(place, own) > own:
                        return False
                    last[place] = own
    return True


def _sorted(
    steps: Sequence[Sequence[Op]], roots: Sequence[Sequence[int]], groups: dict[int, Group]
) -> list[Group] | None:
    """Sort the groups so that each comes after those it depends on; None if there is a cycle."""
    later: dict[int, set[int]] = {group: set() for group in groups}
    written: dict[Place, int] = {}
    read: dict[Place, set[int]] = {}
    for ops, owners in zip(steps, roots, strict=True):
        for op, own in zip(ops, owners, strict=True):
            for touch in op.reads:
                for place, _ in touch.places:
                    later[written.get(place, own)].add(own)
                    read.setdefault(place, set()).add(own)
        for op, own in zip(ops, owners, strict=True):
            for touch in op.writes:
                for place, _ in touch.places:
                    for before in (written.get(place, own), *read.pop(place, ())):
                        later[before].add(own)
                    written[place] = own
    missing = dict.fromkeys(groups, 0)
    for group, found in later.items():
        found.discard(group)
        for following in found:
            missing[following] += 1
    ready = [group for group, count in missing.items() if not count]
    heapify(ready)
    out: list[Group] = []
    while ready:
        group = heappop(ready)
        out.append(groups[group])
        for following in later[group]:
            missing[following] -= 1
            if not missing[following]:
                heappush(ready, following)
    return out if len(out) == len(groups) else None


class _Placing:
    """The steps of a part while instructions are placed in them."""

    def __init__(self, target: Target):
        self.target = target
        self.ports = Ports(target)
        self.lines: list[LineState] = []
        # For every place: step, cycle and writer of the last write; the last step that reads it.
        self.written: dict[Place, tuple[int, int, Op]] = {}
        self.read: dict[Place, int] = {}
        # For every port rule: the steps with a write, and the steps with a read.
        self.rules = [rule for rule in target.hazards if rule.rule == "port"]
        self.port_writes: list[set[int]] = [set() for _ in self.rules]
        self.port_reads: list[set[int]] = [set() for _ in self.rules]
        # By slot, and by kind of instruction: maps a taken step to a later one that may be free.
        self.after: dict[object, dict[int, int]] = {}
        # A read this many steps after a write breaks no rule.
        reach = (1 + max(rule.steps or 0, rule.cycles or 0) for rule in target.hazards)
        self.most = max(reach, default=1)
        self.gaps: dict[tuple[str, str, str | None, str], tuple[int, int | None]] = {}
        self.sides: dict[tuple[str, str, str | None], tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def place(self, groups: Sequence[Group]) -> list[Line]:
        """Place all groups, and return the lines that are not empty."""
        for group in groups:
            at = self._free(group, 0)
            for offset, op in group:
                at = max(at, self._earliest(op, at + offset) - offset)
            at = self._free(group, at)
            while not all(self._tried(op, at + offset) for offset, op in group):
                at = self._free(group, at)
            for offset, op in group:
                self._put(op, at + offset)
        return [Step(tuple(op.instruction for op in s.ops)) for s in self.lines if s.ops]

    def _tried(self, op: Op, at: int) -> bool:
        """Whether ``op`` fits step ``at``; if not, its kind is not tried there again.

        Lines only become fuller, so the answer rarely changes. One case is lost: an instruction of
        the same kind would fit if it reads exactly the words that the line reads already.
        """
        if self._fits(op, at):
            return True
        self.after.setdefault(op.kind, {})[at] = at + 1
        return False

    def _free(self, group: Group, at: int) -> int:
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

    def _earliest(self, op: Op, at: int) -> int:
        """Return the first step from ``at`` on at which no access of ``op`` comes too soon."""
        written, read = self.written, self.read
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
        for touch in op.writes:
            for place, _ in touch.places:
                before = written.get(place)
                if before is not None and before[0] >= at:
                    at = before[0] + 1
                step = read.get(place, 0)
                if step > at:
                    at = step
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

    def _fits(self, op: Op, at: int) -> bool:
        if at < len(self.lines) and not self.ports.fits(op, self.lines[at]):
            return False
        for memory, written in op.memories:
            as_writer, as_reader = self._side(memory, op)
            if written:
                for rule in as_writer:
                    reads = self.port_reads[rule]
                    for n in range(at + 1, at + (self.rules[rule].steps or 0) + 1):
                        if n in reads:
                            return False
            else:
                for rule in as_reader:
                    writes = self.port_writes[rule]
                    for n in range(at - (self.rules[rule].steps or 0), at):
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
                    for number, rule in enumerate(self.rules)
                    if memory in rule.memories and _concerns(rule, op, writer)
                )

            self.sides[key] = those(True), those(False)
        return self.sides[key]

    def _put(self, op: Op, at: int) -> None:
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
