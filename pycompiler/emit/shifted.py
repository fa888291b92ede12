"""The same lines and MVs, with other addresses in L2BM."""

from __future__ import annotations

from dataclasses import replace

from ..layers.fragment import BlockOperand, Instruction, Move, Operand, Step
from ..machine import Target
from .addressed_lines import Ready
from .hazards import Access, Accesses
from .ports import Op, Touch, moved_touch
from .text import operand_text

MEMORY = "l2bm"


class Shifted:
    """Makes lines with other addresses in L2BM; each is made once."""

    def __init__(self, target: Target):
        self._target = target
        # Keys are identities. The lines are kept so that no other object gets the same identity.
        self._made: dict[tuple[int, int], tuple[Ready, Ready]] = {}

    def of(self, ready: Ready, words: int) -> Ready:
        """Return the line, with its addresses in L2BM increased by ``words`` long words."""
        if not words:
            return ready
        key = id(ready), words
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = ready, self._shifted(ready, words)
        return found[1]

    def _shifted(self, ready: Ready, words: int) -> Ready:
        touched = Accesses(
            tuple(_access(access, words) for access in ready.touched.reads),
            tuple(_access(access, words) for access in ready.touched.writes),
        )
        if isinstance(ready.line, Move):
            line = replace(
                ready.line,
                source=_block(ready.line.source, words),
                destination=_block(ready.line.destination, words),
            )
            return replace(ready, line=line, touched=touched)
        instructions = tuple(_instruction(one, words) for one in ready.line.instructions)
        tokens = ready.text.split(" ")
        for before, after in zip(ready.line.instructions, instructions, strict=True):
            for old, new in zip(_operands(before), _operands(after), strict=True):
                if old is not new:
                    at = tokens.index(operand_text(old, {}, self._target))
                    tokens[at] = operand_text(new, {}, self._target)
        ops = tuple(
            _op(op, instruction, words)
            for op, instruction in zip(ready.ops, instructions, strict=True)
        )
        return replace(
            ready, line=Step(instructions), touched=touched, text=" ".join(tokens), ops=ops
        )


def _operands(instruction: Instruction) -> tuple[Operand, ...]:
    return (*instruction.sources, *instruction.destinations)


def _operand(operand: Operand, words: int) -> Operand:
    return _block(operand, words) if isinstance(operand, BlockOperand) else operand


def _block(operand: BlockOperand, words: int) -> BlockOperand:
    if operand.memory != MEMORY:
        return operand
    return replace(operand, offset=operand.offset + words)


def _instruction(instruction: Instruction, words: int) -> Instruction:
    return replace(
        instruction,
        sources=tuple(_operand(one, words) for one in instruction.sources),
        destinations=tuple(_operand(one, words) for one in instruction.destinations),
    )


def _access(access: Access, words: int) -> Access:
    if access.memory != MEMORY:
        return access
    return replace(access, low=access.low + words, high=access.high + words)


def _op(op: Op, instruction: Instruction, words: int) -> Op:
    def moved(touches: tuple[Touch, ...]) -> tuple[Touch, ...]:
        return tuple(
            moved_touch(touch, words) if touch.memory == MEMORY else touch for touch in touches
        )

    return replace(op, instruction=instruction, reads=moved(op.reads), writes=moved(op.writes))
