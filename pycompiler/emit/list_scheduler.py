"""The list scheduler: instructions of a fragment share lines where ports and hazards allow it.

Instructions that a forwarding path connects keep their distance of one step and move together as a
group. Groups are placed in the order of the fragment. Each goes to the first step at which its
inputs are written, the old contents of its outputs have been read, and its slots and ports are
free. No instruction moves past an MV line or past a line that may wait for an MV.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ..graph.disjoint_sets import DisjointSets
from ..layers.fragment import BlockOperand, Instruction, Line, Move, PeOperand, Step
from ..machine import Target
from .hazards import Accesses, accesses
from .placing import Group, Placing
from .ports import MemoryWord, Op, op_of
from .text import Addresses


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
        out += part if groups is None else _placed(groups, target)
    return out


def _placed(groups: Sequence[Group], target: Target) -> list[Line]:
    """Place all groups, and return the lines that are not empty."""
    placing = Placing(target)
    for group in groups:
        placing.place(group)
    return [Step(tuple(op.instruction for op in s.ops)) for s in placing.lines if s.ops]


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
    last: dict[MemoryWord, int] = {}
    read: dict[MemoryWord, int] = {}
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
    steps: Sequence[Sequence[Op]], roots: Sequence[Sequence[int]], groups: Mapping[int, Group]
) -> list[Group] | None:
    """Sort the groups so that each comes after those it depends on; None if there is a cycle."""
    later: dict[int, set[int]] = {group: set() for group in groups}
    written: dict[MemoryWord, int] = {}
    read: dict[MemoryWord, set[int]] = {}
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
