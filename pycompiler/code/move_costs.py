"""The time that MVs take. Every number comes from the cycle model of the emulator.

An MV holds the memories that it uses for its words divided by the rate of its form, and ends a
latency later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..machine import Target
from .lines import BlockOperand, Move


@dataclass(frozen=True)
class MoveCost:
    """Cycles for which an MV holds each of ``ports``, and from then to its end."""

    ports: tuple[str, ...]
    holds: int
    latency: int


def move_cost(move: Move, target: Target) -> MoveCost:
    """Return the cost of an MV that starts at once.

    MVs that differ only in their addresses are measured once in a process.
    """
    source, goal = (
        BlockOperand(one.memory, 0, 0, None, one.l2b, one.group, entries=one.entries and (0, 0))
        for one in (move.source, move.destination)
    )
    return _measured(move._replace(source=source, destination=goal), target)


@lru_cache(maxsize=1 << 14)
def _measured(move: Move, target: Target) -> MoveCost:
    """Ask the emulator about a program that contains only the MV."""
    tag = target.mv_tags[0]
    text = f"{move_text(move, tag, target)}\nnop; wait {target.tag(tag)}\n"
    report = target.assemble(text, "mv.vsm").report()
    held = report["port_cycles"]
    holds = max(held.values(), default=0)
    return MoveCost(tuple(sorted(held)), holds, report["mv_end"] - holds)


def move_text(move: Move, tag: int, target: Target) -> str:
    """Return the text of an MV whose operands begin at the first word, or at their entries."""
    size = f"/{target.syntax['mv_size']}{move.words}{target.tag(tag)}"
    source, goal = (_text(one, target) for one in (move.source, move.destination))
    return f"{move.mnemonic}{size} {source} {goal}"


def _text(operand: BlockOperand, target: Target) -> str:
    memory, group = operand.memory, operand.group
    if operand.entries is not None:
        return f"${target.letter_by_table(memory)}{operand.entries[0]}"
    at = f"@{group}" if group is not None else ""
    if operand.l2b is not None:
        at = f"{at or '@'}.{operand.l2b}"
    return f"${target.prefix(memory, False)}{target.letter(memory)}0{at}"
