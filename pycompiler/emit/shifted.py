"""The same lines and MVs, with other addresses in transfer memories."""

from __future__ import annotations

from emu2._core import Ready

from ..code.lines import Instruction, Move, Step
from .line_shift import Shift, shifted

MEMORY = "l2bm"


#: How far the words of each instruction of a line move in each memory; of an MV.
Shifts = tuple[Shift, ...]


class Shifted:
    """Makes lines with other addresses; each is made once."""

    def __init__(self) -> None:
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
            (move,) = shifted([line], shifts[0])
            return ready.raised(move, shifts)
        moved = map(_moved, line.instructions, shifts)
        return ready.raised(Step(tuple(moved)), shifts)


def _moved(instruction: Instruction, shift: Shift) -> Instruction:
    if not shift:
        return instruction
    (line,) = shifted([Step((instruction,))], shift)
    assert isinstance(line, Step)
    return line.instructions[0]
