"""Lines with other addresses of what belongs to no value: of registers and of transfer memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..code.lines import BlockOperand, Instruction, Line, Move, PeOperand, Step

#: Memories and the long words by which addresses in them increase. Other memories keep theirs.
Shift = tuple[tuple[str, int], ...]


def shifted(lines: Iterable[Line], shift: Shift) -> Iterator[Line]:
    """Yield lines with their words moved; equal instructions stay one object."""
    words = dict(shift)
    made: dict[int, Instruction] = {}
    for line in lines:
        if isinstance(line, Move):
            source, destination = _operand(line.source, words), _operand(line.destination, words)
            yield line._replace(source=source, destination=destination)
            continue
        for one in line.instructions:
            if id(one) not in made:
                made[id(one)] = shifted_instruction(one, words)
        yield Step(tuple(made[id(one)] for one in line.instructions))


def shifted_instruction(one: Instruction, words: Mapping[str, int]) -> Instruction:
    """Return an instruction with its words in some memories moved."""
    made = one.with_operands(lambda operand: _operand(operand, words))
    return made if one.flush is None else made._replace(flush=_operand(one.flush, words))


def _operand(operand: Any, words: Mapping[str, int]) -> Any:
    """Return an operand of the same class, or nothing for none."""
    if not isinstance(operand, BlockOperand | PeOperand):
        return operand
    more = words.get(operand.memory, 0) if operand.value is None else 0
    if isinstance(operand, BlockOperand):
        return operand._replace(offset=operand.offset + more) if more else operand
    if operand.mask is not None:
        operand = operand._replace(mask=_operand(operand.mask, words))
    return operand._replace(offsets=tuple(at + more for at in operand.offsets)) if more else operand
