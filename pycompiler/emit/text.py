"""Instructions as assembly text, once the addresses of values are known."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from ..code.lines import (
    BlockOperand,
    Forward,
    Instruction,
    Literal,
    MatrixOperand,
    Move,
    Operand,
    PeOperand,
    Special,
    Step,
)
from ..machine import WORDS_PER_LONG, Target
from ..machine_text import block_text, mv_text

Addresses = Mapping[str, int]


def base(value: str | None, addresses: Addresses) -> int:
    """Return the first long word of ``value``; 0 for absolute operands."""
    return 0 if value is None else addresses[value]


_WIDTHS = {1: "", WORDS_PER_LONG: "l", 2 * WORDS_PER_LONG: "ll"}


def _address(words: tuple[int, ...], width: int, stride: str | int) -> str:
    """Return the shortest form of one word address per cycle; ``width`` words are accessed.

    ``stride`` is the letter that stands before the distance from cycle to cycle.
    """
    steps = {b - a for a, b in pairwise(words)}
    if steps <= {0}:
        return str(words[0])
    if steps == {width}:
        return f"{words[0]}{stride}"
    if len(steps) == 1 and min(steps) > 0:
        return f"{words[0]}{stride}{min(steps)}"
    return "[" + ",".join(map(str, words)) + "]"


def literal_text(bits: int) -> str:
    """Return the text of the 32 bits of an ``imm``."""
    return f'ui"0x{bits:08X}"'


def operand_text(operand: Operand, addresses: Addresses, target: Target) -> str:
    """Return the text of one operand."""
    if isinstance(operand, Literal):
        at = base(operand.value, addresses) // operand.unit
        return literal_text(operand.bits + at)
    if isinstance(operand, BlockOperand):
        return _block(operand, base(operand.value, addresses) + operand.offset, target)
    if isinstance(operand, Special):
        return f"${operand.name}"
    if isinstance(operand, MatrixOperand):
        row = "" if operand.row is None else operand.row
        return f"${_WIDTHS[operand.words]}{operand.bank}{row}"
    sign = "-" if operand.negate else ""
    if isinstance(operand, Forward):
        return f"{sign}${target.forward(operand.slot)}"
    mask = _mask(operand.mask, target, operand.words)
    if operand.memory == target.masks["memory"]:
        return f"${target.masks['destination']}{_entry(operand, target)}{mask}"
    if operand.memory == "t":
        return f"{sign}$lt{mask}"
    start = base(operand.value, addresses)
    words = tuple((start + offset) * WORDS_PER_LONG for offset in operand.offsets)
    width = operand.words
    if operand.word is not None:
        width = 1
        chosen = operand.word
        within = (chosen,) * len(words) if isinstance(chosen, int) else chosen
        words = tuple(at + word for at, word in zip(words, within, strict=True))
    syntax = target.syntax
    letter = target.letter(operand.memory)
    indirect = syntax["indirect"] if operand.indirect else ""
    option = syntax["extend"] if operand.extend else syntax["reduce"] if operand.reduce else ""
    address = _address(words, width, syntax["stride"])
    return f"{sign}${_WIDTHS[width]}{letter}{indirect}{address}{option}{mask}"


def _entry(register: PeOperand, target: Target) -> int:
    """Return the number of a mask register."""
    return register.offsets[0] // target.cycles


def _mask(register: PeOperand | None, target: Target, words: int = WORDS_PER_LONG) -> str:
    """Return the text of a mask behind a mnemonic, or behind a destination of ``words`` words."""
    if register is None:
        return ""
    # A plain mask leaves the second long word of an access unmasked.
    width = _WIDTHS[words] if words > WORDS_PER_LONG else ""
    return f"/${width}{target.masks['source']}{_entry(register, target)}"


def _block(operand: BlockOperand, start: int, target: Target) -> str:
    if operand.entries is not None:
        return f"${target.letter_by_table(operand.memory)}{operand.entries[0]}"
    return block_text(operand.memory, start, operand.group, operand.l2b, target, wide=operand.wide)


def instruction_text(instruction: Instruction, addresses: Addresses, target: Target) -> str:
    """Return the text of one instruction of a PE line."""
    operands: tuple[Operand, ...] = (*instruction.sources, *instruction.destinations)
    shown = (
        operand_text(operand, addresses, target)
        for operand in operands
        if not (isinstance(operand, BlockOperand) and operand.implied)
    )
    mnemonic = instruction.mnemonic + _mask(instruction.flush, target)
    return " ".join((mnemonic, *shown))


def step_text(step: Step, addresses: Addresses, target: Target) -> str:
    """Return the text of one PE line."""
    return "; ".join(instruction_text(one, addresses, target) for one in step.instructions)


def move_text(move: Move, tag: int, addresses: Addresses, target: Target) -> str:
    """Return the text of one MV line."""
    source = operand_text(move.source, addresses, target)
    destination = operand_text(move.destination, addresses, target)
    return f"{mv_text(move.mnemonic, move.words, tag, target)} {source} {destination}"


def dram_operand(move: Move) -> BlockOperand | None:
    """Return the operand of ``move`` in DRAM, if it has one."""
    for operand in (move.source, move.destination):
        if operand.memory == "dram":
            return operand
    return None
