"""The same lines and MVs, with other addresses in transfer memories."""

from __future__ import annotations

from emu2._core import Ready

from ..code.lines import Move, Step
from ..machine import Target
from .line_shift import Shift, shifted, shifted_instruction
from .ready import Addressed

MEMORY = "l2bm"

#: How far the words of each instruction of a line move in each memory; of an MV.
Shifts = tuple[Shift, ...]


def raised(ready: Ready, shifts: Shifts, target: Target) -> Ready:
    """Return a line with the addresses of each instruction moved by their own shift, or an MV."""
    if not any(shifts):
        return ready
    line, made = ready.line, Addressed(ready.addresses, target)
    if isinstance(line, Move):
        (moved,) = shifted([line], shifts[0])
        return made.ready(moved)
    each = zip(line.instructions, map(dict, shifts), strict=True)
    return made.ready(Step(tuple(shifted_instruction(one, words) for one, words in each)))
