"""Distances between lines: how many steps a line must wait, and for which MVs.

All hazard rules come from the spec of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu2._core import Ready, distance

from ..machine import Target
from .ports import rules_of


class Tracker:
    """Follows a program in issue order: recent steps, and the MVs that no line has waited for.

    The program stands behind the lines ``last``, newest first; None is an idle step.
    """

    def __init__(self, target: Target, last: Sequence[Ready | None] = ()):
        self.target = target
        self.step = 0
        self.moves: dict[int, Ready] = {}
        self._last_tag: int | None = None
        self._rules = rules_of(target)
        # No rule depends on earlier steps.
        self._reach = self._rules.reach
        #: The lines of the last steps, from which a next line may need distance.
        self.last = (*last, *(None,) * self._reach)[: self._reach]

    def tags_before(self, ready: Ready) -> list[int]:
        """Return the tags of the MVs that must finish before a line."""
        return [tag for tag, move in self.moves.items() if move.conflicts(ready)]

    def waited(self, tag: int) -> None:
        """Note that the MV with ``tag`` has finished."""
        del self.moves[tag]

    def distance(self, ready: Ready) -> int:
        """Count the steps that must still pass before a line is legal."""
        return distance(self._rules, self.last, ready)

    def issue(self, ready: Ready) -> int:
        """Note a PE line and the steps that must pass before it, and return their number."""
        steps = self.distance(ready)
        self.nops(steps)
        self.step += 1
        self.last = (ready, *self.last)[: self._reach]
        return steps

    def nops(self, count: int) -> None:
        """Note steps that touch nothing."""
        self.step += count
        self.last = (*(None,) * min(count, self._reach), *self.last)[: self._reach]

    def next_tag(self) -> int:
        """Return the next tag; if an MV still uses it, the caller waits for that MV first."""
        tags = self.target.mv_tags
        last = self._last_tag
        return tags[0] if last is None or last == tags[-1] else last + 1

    def issue_move(self, tag: int, ready: Ready) -> None:
        """Note an MV line."""
        self._last_tag = tag
        self.moves[tag] = ready
