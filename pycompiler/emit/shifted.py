"""The same lines and MVs, with other addresses in transfer memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..code.lines import BlockOperand, Instruction, Move, Operand, Step
from ..machine import Target
from .addressed_lines import Ready, needs_of
from .hazards import Access, Accesses
from .line_shift import Shift, shifted
from .ports import rules_of
from .text import operand_text
from .webs import MEMORIES

MEMORY = "l2bm"


#: How far the words of each instruction of a line move in each memory; of an MV.
Shifts = tuple[Shift, ...]


class Shifted:
    """Makes lines with other addresses; each is made once."""

    def __init__(self, target: Target):
        self._target = target
        # Keys are identities. The lines are kept so that no other object gets the same identity.
        self._made: dict[tuple[int, Shifts], tuple[Ready, Ready]] = {}

    def of(self, ready: Ready, shift: Shift) -> Ready:
        """Return the line, with all its addresses in some memories above the PEs moved."""
        line = ready.line
        count = 1 if isinstance(line, Move) else len(line.instructions)
        return self.each(ready, (shift,) * count)

    def each(self, ready: Ready, shifts: Shifts) -> Ready:
        """Return the line, with the addresses of each instruction moved by their own shift."""
        if not any(shifts):
            return ready
        key = id(ready), shifts
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = ready, self._shifted(ready, shifts)
        return found[1]

    def _shifted(self, ready: Ready, shifts: Shifts) -> Ready:
        line = ready.line
        if isinstance(line, Move):
            (shift,) = shifts
            (move,) = shifted([line], shift)
            words = dict(shift)
            reads, writes = (
                tuple(_access(access, words.get(access.memory, 0)) for access in accesses)
                for accesses in (ready.touched.reads, ready.touched.writes)
            )
            touched = Accesses(reads, writes)
            needs = needs_of(move, touched, (), self._target)
            return replace(ready, line=move, touched=touched, needs=needs)
        moved = [
            _moved(instruction, shift)
            for instruction, shift in zip(line.instructions, shifts, strict=True)
        ]
        texts = zip(ready.text.split("; "), line.instructions, moved, strict=True)
        rules = rules_of(self._target)
        ops = [
            op.moved(rules, shift) if shift else op
            for op, shift in zip(ready.known.ops, shifts, strict=True)
        ]
        step, touched = Step(tuple(moved)), _touched(ready.touched, line.instructions, shifts)
        return replace(
            ready,
            line=step,
            touched=touched,
            text="; ".join(self._text(*each) for each in texts),
            needs=needs_of(step, touched, ops, self._target),
        )

    def _text(self, text: str, before: Instruction, after: Instruction) -> str:
        """Return the text of an instruction with its new operands."""
        if before is after:
            return text
        tokens = text.split(" ")
        at = 0
        for old, new in zip(_blocks(before), _blocks(after), strict=True):
            if not old.implied:
                at = tokens.index(operand_text(old, {}, self._target), at)
                tokens[at] = operand_text(new, {}, self._target)
        return " ".join(tokens)


def _moved(instruction: Instruction, shift: Shift) -> Instruction:
    if not shift:
        return instruction
    (line,) = shifted([Step((instruction,))], shift)
    assert isinstance(line, Step)
    return line.instructions[0]


def _blocks(instruction: Instruction) -> list[BlockOperand]:
    operands = (*instruction.sources, *instruction.destinations)
    return [one for one in operands if isinstance(one, BlockOperand)]


def _touched(touched: Accesses, instructions: Sequence[Instruction], shifts: Shifts) -> Accesses:
    """Return the accesses of a line, which stand in the order of its operands."""

    def moved(
        accesses: Sequence[Access], operands: Iterator[tuple[Operand, Shift]]
    ) -> Iterator[Access]:
        blocks = ((one, shift) for one, shift in operands if isinstance(one, BlockOperand))
        for access in accesses:
            if access.memory in MEMORIES:
                block, shift = next(blocks)
                assert block.memory == access.memory
                access = _access(access, dict(shift).get(access.memory, 0))
            yield access

    pairs = list(zip(instructions, shifts, strict=True))
    return Accesses(
        tuple(moved(touched.reads, ((o, s) for i, s in pairs for o in i.sources))),
        tuple(moved(touched.writes, ((o, s) for i, s in pairs for o in i.destinations))),
    )


def _access(access: Access, more: int) -> Access:
    return replace(access, low=access.low + more, high=access.high + more) if more else access
