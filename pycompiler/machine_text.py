"""The assembly text of MVs, and of operands in memories above the PEs."""

from __future__ import annotations

from .machine import Target


def mv_text(mnemonic: str, words: int, tag: int, target: Target) -> str:
    """Return the mnemonic of an MV of ``words`` long words, with its parameters."""
    return f"{mnemonic}/{target.syntax['mv_size']}{words}{target.tag(tag)}"


def block_text(
    memory: str,
    start: int,
    group: int | None,
    l2b: int | None,
    target: Target,
    *,
    wide: bool = False,
) -> str:
    """Return an operand that begins at a long word: in all units, those of a group, or one."""
    at = ""
    if l2b is not None:
        at = f"@{'' if group is None else group}.{l2b}"
    elif group is not None:
        at = f"@{group}"
    return f"${target.prefix(memory, wide)}{target.letter(memory)}{start}{at}"


def literal_text(bits: int) -> str:
    """Return the text of the 32 bits of an ``imm``."""
    return f'ui"0x{bits:08X}"'
