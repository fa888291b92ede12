"""The cost of an MV by the cycle model: the memories that it holds, for how long, and its latency.

The model is that of the emulator. It gets a program that contains only the MV.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..layers.fragment import BlockOperand, Move
from ..machine import Target
from .text import Addresses, move_text


@dataclass(frozen=True)
class MoveCost:
    """Cycles for which an MV holds each of ``ports``, and from then to its end."""

    ports: tuple[str, ...]
    holds: int
    latency: int


class MoveCosts:
    """The costs of MVs; MVs that differ only in their addresses are measured once in a process."""

    def __init__(self, addresses: Addresses, target: Target):
        self._addresses, self._target = addresses, target
        self._known = _known(target)

    def of(self, move: Move) -> MoveCost:
        """Return the cost of an MV that starts at once."""
        sides = (_place(move.source), _place(move.destination))
        key = move.mnemonic, move.words, *sides
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._measured(move)
        return found

    def _measured(self, move: Move) -> MoveCost:
        tag = self._target.mv_tags[0]
        text = move_text(move, tag, self._addresses, self._target)
        wait = f"nop; wait {self._target.tag(tag)}"
        report = self._target.assemble(f"{text}\n{wait}\n", "mv.vsm").report()
        held = report["port_cycles"]
        holds = max(held.values(), default=0)
        return MoveCost(tuple(sorted(held)), holds, report["mv_end"] - holds)


@lru_cache(maxsize=16)
def _known(target: Target) -> dict[tuple[object, ...], MoveCost]:
    """Return the costs on a machine that are known so far; whoever measures one adds it."""
    return {}


def _place(operand: BlockOperand) -> tuple[object, ...]:
    return operand.memory, operand.group, operand.l2b, operand.entries is None
