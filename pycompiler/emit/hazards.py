"""Distances between lines: how many steps a line must wait, and for which MVs.

All hazard rules come from the spec of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu2._core import Ready, distance

from ..machine import Target
from .ports import rules_of


class _Recent:
    """The lines of the last steps, newest first; None is an idle step.

    ``next`` keeps, for each line that came next, its distance and the recent steps after it.
    """

    __slots__ = ("next", "steps")

    def __init__(self, steps: tuple[Ready | None, ...]):
        self.steps = steps
        self.next: dict[Ready, tuple[int, _Recent]] = {}


class Tracker:
    """Follows a program in issue order: recent steps, and the MVs that no line has waited for.

    The recent steps are one object, and equal ones are shared. It keeps the distances that were
    found after it, so that repeated code (the next layer, the next slice) costs little.
    """

    def __init__(self, target: Target, last: Sequence[Ready | None] = ()):
        self.target = target
        self.step = 0
        self.moves: dict[int, Ready] = {}
        self._last_tag: int | None = None
        self._rules = rules_of(target)
        # No rule depends on earlier steps.
        self._reach = self._rules.reach
        self._recent = _Recent((*last, *(None,) * self._reach)[: self._reach])
        self._all = {self._recent.steps: self._recent}

    @property
    def last(self) -> Sequence[Ready | None]:
        """The lines of the last steps, newest first, from which a next line may need distance."""
        return self._recent.steps

    def tags_before(self, ready: Ready) -> list[int]:
        """Return the tags of the MVs that must finish before a line."""
        return [tag for tag, move in self.moves.items() if move.conflicts(ready)]

    def waited(self, tag: int) -> None:
        """Note that the MV with ``tag`` has finished."""
        del self.moves[tag]

    def distance(self, ready: Ready) -> int:
        """Count the steps that must still pass before a line is legal."""
        return distance(self._rules, self._recent.steps, ready)

    def issue(self, ready: Ready) -> int:
        """Note a PE line and the steps that must pass before it, and return their number."""
        found = self._recent.next.get(ready)
        if found is None:
            before, steps = self._recent, self.distance(ready)
            self.nops(steps)
            found = before.next[ready] = steps, self._after(ready)
        else:
            self.step += found[0]
        self.step += 1
        self._recent = found[1]
        return found[0]

    def nops(self, count: int) -> None:
        """Note steps that touch nothing."""
        self.step += count
        for _ in range(min(count, self._reach)):
            self._recent = self._after(None)

    def _after(self, ready: Ready | None) -> _Recent:
        steps = (ready, *self._recent.steps)[: self._reach]
        found = self._all.get(steps)
        if found is None:
            found = self._all[steps] = _Recent(steps)
        return found

    def next_tag(self) -> int:
        """Return the next tag; if an MV still uses it, the caller waits for that MV first."""
        tags = self.target.mv_tags
        last = self._last_tag
        return tags[0] if last is None or last == tags[-1] else last + 1

    def issue_move(self, tag: int, ready: Ready) -> None:
        """Note an MV line."""
        self._last_tag = tag
        self.moves[tag] = ready
