"""The timeline of a whole program: the step of each line, and the start of each MV.

Lines and MVs are placed one after the other, in the order of the program without merging. The crate
`placing` finds their steps. A line may share its step with lines of other nodes. So lines of one
node fill the steps in which another node waits, or leaves slots unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emu2 import _core
from emu2._core import Ready

from ..machine import Target
from .ports import rules_of
from .shifted import MEMORY


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """A line or an MV of node ``owner`` at ``step``; an MV begins before the lines of its step.

    ``end`` is the cycle in which an MV ends; ``number`` counts the placed ones.
    """

    step: int
    owner: int
    ready: Ready
    number: int
    end: int = 0


class Timeline:
    """Places the lines and the MVs of a program.

    ``steps`` has what was placed. With ``unlimited``, all lines fit everywhere, and MVs wait only
    for those of their node.
    """

    def __init__(self, target: Target, unlimited: bool = False):
        self.placed: list[Placed] = []
        rules = rules_of(target)
        self.steps = _core.Timeline(rules, "mv", MEMORY, unlimited)

    def place_lines(self, run: Sequence[Ready], owner: int) -> None:
        """Place lines that must follow each other without a gap."""
        at = self.steps.place_lines(run)
        for offset, line in enumerate(run):
            self.placed.append(Placed(at + offset, owner, line, len(self.placed)))

    def place_move(self, ready: Ready, owner: int) -> None:
        """Place an MV."""
        step, end = self.steps.place_move(ready, owner)
        self.placed.append(Placed(step, owner, ready, len(self.placed), end))
