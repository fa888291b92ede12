"""Lines and MVs at their addresses, ready to get their steps.

The crate `placing` knows what such a line touches and what decides about its step.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu2._core import Op, Ready

from ..code.lines import Instruction, Line, Move, Step
from ..cost.moves import move_cost
from ..machine import Target
from .ports import rules_of
from .text import Addresses


def ready_move(move: Move, addresses: Addresses, target: Target) -> Ready:
    """Return an MV at its addresses."""
    cost = move_cost(move, target)
    held = list(cost.ports), cost.holds, cost.latency
    return Ready.of_move(rules_of(target), move, addresses, "mv", held)


class Addressed:
    """Makes lines of one node ready; an instruction that stands on many lines is made once."""

    def __init__(self, addresses: Addresses, target: Target):
        self.addresses, self.target = addresses, target
        self._rules = rules_of(target)
        # Keys are identities. The instructions are kept so that no other one gets the same.
        self._ops: dict[int, tuple[Instruction, Op]] = {}

    def op(self, instruction: Instruction) -> Op:
        """Return what decides about the step of an instruction."""
        found = self._ops.get(id(instruction))
        if found is None:
            op = Op(self._rules, instruction, self.addresses)
            found = self._ops[id(instruction)] = instruction, op
        return found[1]

    def ready(self, line: Line) -> Ready:
        """Return a line or an MV."""
        if isinstance(line, Move):
            return ready_move(line, self.addresses, self.target)
        return Ready(self._rules, line, self.addresses, tuple(map(self.op, line.instructions)))


def joined_line(lines: Sequence[Ready], target: Target) -> Ready:
    """Return one line of all instructions, whose values keep the addresses of the first line."""
    if len(lines) == 1:
        return lines[0]
    instructions = tuple(one for ready in lines for one in ready.line.instructions)
    ops = tuple(op for ready in lines for op in ready.ops)
    return Ready(rules_of(target), Step(instructions), lines[0].addresses, ops)
