"""Instructions as assembly text, once the addresses of values are known."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from ..layers.fragment import BlockOperand, Instruction, Move, Operand, PeOperand, Special
from ..machine import WORDS_PER_LONG, Target

Addresses = Mapping[str, int]


def base(value: str | None, addresses: Addresses) -> int:
    """Return the first long word of ``value``; 0 for absolute operands."""
    return 0 if value is None else addresses[value]


def _address(words: tuple[int, ...], width: int) -> str:
    """Return the shortest form of one word address per cycle; ``width`` words are accessed."""
    steps = {b - a for a, b in pairwise(words)}
    if steps <= {0}:
        return str(words[0])
    if steps == {width}:
        return f"{words[0]}v"
    if len(steps) == 1 and min(steps) > 0:
        return f"{words[0]}v{min(steps)}"
    return "[" + ",".join(map(str, words)) + "]"


def operand_text(operand: Operand, addresses: Addresses, target: Target) -> str:
    """One operand."""
    sign = "-" if isinstance(operand, Special | PeOperand) and operand.negate else ""
    if isinstance(operand, Special):
        return f"{sign}${operand.name}"
    start = base(operand.value, addresses)
    if isinstance(operand, PeOperand):
        if operand.memory == "omr":
            return f"$omr{operand.offsets[0] // target.cycles}"
        if operand.memory == "t":
            return f"{sign}$lt"
        letter = target.letter(operand.memory)
        first = operand.word or 0
        words = tuple((start + offset) * WORDS_PER_LONG + first for offset in operand.offsets)
        if operand.word is None:
            return f"{sign}$l{letter}{_address(words, WORDS_PER_LONG)}"
        return f"{sign}${letter}{_address(words, 1)}{'e' if operand.extend else ''}"
    prefix = "" if operand.memory == "dram" else "l"
    at = "" if operand.l2b is None else f"@.{operand.l2b}"
    return f"${prefix}{target.letter(operand.memory)}{start + operand.offset}{at}"


def instruction_text(instruction: Instruction, addresses: Addresses, target: Target) -> str:
    """One instruction of a PE line."""
    operands: tuple[Operand, ...] = (*instruction.sources, *instruction.destinations)
    shown = (operand_text(operand, addresses, target) for operand in operands)
    mnemonic = instruction.mnemonic
    if instruction.flush is not None:
        mnemonic += f"/$imr{instruction.flush.offsets[0] // target.cycles}"
    return " ".join((mnemonic, *shown))


def move_text(move: Move, tag: int, addresses: Addresses, target: Target) -> str:
    """One MV line."""
    source = operand_text(move.source, addresses, target)
    destination = operand_text(move.destination, addresses, target)
    return f"{move.mnemonic}/n{move.words}i{tag:02x} {source} {destination}"


def dram_operand(move: Move) -> BlockOperand | None:
    """Return the operand of ``move`` in DRAM."""
    for operand in (move.source, move.destination):
        if operand.memory == "dram":
            return operand
    return None
