"""Lines with other addresses of what belongs to no value: of registers and of transfer memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..code.lines import BlockOperand, Instruction, Line, Move, Operand, PeOperand, Step

#: Memories and the long words by which addresses in them increase. Other memories keep theirs.
Shift = tuple[tuple[str, int], ...]


def shifted(lines: Iterable[Line], shift: Shift) -> Iterator[Line]:
    """Yield lines with their words moved; equal instructions stay one object."""
    words = dict(shift)
    made: dict[int, Instruction] = {}
    for line in lines:
        if isinstance(line, Move):
            source, destination = _operand(line.source, words), _operand(line.destination, words)
            assert isinstance(source, BlockOperand)
            assert isinstance(destination, BlockOperand)
            yield line._replace(source=source, destination=destination)
            continue
        for one in line.instructions:
            if id(one) not in made:
                made[id(one)] = shifted_instruction(one, words)
        yield Step(tuple(made[id(one)] for one in line.instructions))


def shifted_instruction(one: Instruction, words: Mapping[str, int]) -> Instruction:
    """Return an instruction with its words in some memories moved."""
    flush = one.flush
    if flush is not None:
        found = _operand(flush, words)
        assert isinstance(found, PeOperand)
        flush = found
    return one._replace(
        sources=tuple(_operand(operand, words) for operand in one.sources),
        destinations=tuple(_operand(operand, words) for operand in one.destinations),
        flush=flush,
    )


def _operand(operand: Operand, words: Mapping[str, int]) -> Operand:
    if isinstance(operand, BlockOperand) and operand.value is None:
        more = words.get(operand.memory, 0)
        return operand._replace(offset=operand.offset + more) if more else operand
    if not isinstance(operand, PeOperand):
        return operand
    if operand.mask is not None:
        mask = _operand(operand.mask, words)
        assert isinstance(mask, PeOperand)
        operand = operand._replace(mask=mask)
    more = words.get(operand.memory, 0) if operand.value is None else 0
    if not more:
        return operand
    return operand._replace(offsets=tuple(at + more for at in operand.offsets))
