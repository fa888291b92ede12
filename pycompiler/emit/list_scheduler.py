"""The list scheduler: instructions of a fragment share lines where ports and hazards allow it.

Instructions that a forwarding path connects keep their distance of one step and move together as a
group. Groups are placed in the order of the fragment. Each goes to the first step at which its
inputs are written, the old contents of its outputs have been read, and its slots and ports are
free. No instruction moves past an MV line or past a line that may wait for an MV.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu2._core import Ready, schedule_lines

from ..code.lines import BlockOperand, Line, Move, PeOperand, Step
from .ports import rules_of
from .ready import Addressed


def schedule(lines: Sequence[Line], addressed: Addressed) -> list[Line]:
    """Return the lines packed; the caller adds the `nop` for hazards inside a group."""
    op, rules = addressed.op, rules_of(addressed.target)
    parts = list(_parts(lines, addressed))
    out: list[Line] = []
    for index, part in enumerate(parts):
        if isinstance(part, Move):
            out.append(part)
            continue
        # If the next part reads results by forwarding, they must stay in the last line of this
        # part. Then this part is not packed.
        following = next((p for p in parts[index + 1 :] if isinstance(p, list)), None)
        taken = following is not None and any(op(i).takes for i in following[0].instructions)
        found = None
        if not taken and not _indirect(part):
            ops = [[op(i) for i in step.instructions] for step in part]
            found = schedule_lines(rules, ops)
        if found is None:
            out += part
            continue
        instructions = [i for step in part for i in step.instructions]
        out += [Step(tuple(instructions[number] for number in line)) for line in found]
    return out


def _indirect(part: Sequence[Step]) -> bool:
    return any(
        isinstance(operand, PeOperand) and operand.indirect
        for step in part
        for i in step.instructions
        for operand in (*i.sources, *i.destinations)
    )


def _parts(lines: Sequence[Line], addressed: Addressed) -> Iterator[list[Step] | Move]:
    """Cut the lines at MV lines, and before the first line that must wait for an MV."""
    part: list[Step] = []
    moves: list[Ready] = []
    for line in lines:
        if isinstance(line, Move):
            if part:
                yield part
            part = []
            yield line
            moves.append(addressed.ready(line))
            continue
        if moves and _above(line):
            ready = addressed.ready(line)
            left = [move for move in moves if not move.conflicts(ready)]
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
