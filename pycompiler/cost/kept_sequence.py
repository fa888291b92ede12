"""The time of a sequence of tasks that is kept: a change of a few costs what their window costs.

Tasks far behind a change find the machine as before, but for a shift of the time. So they are
placed again only up to where this is true. Times are then equal up to a bin of the list schedule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from copy import deepcopy
from operator import attrgetter

import numpy as np

from ..machine import Target
from .sequence import Flow, Task, Timeline

_TIMES = attrgetter("nearly", "written", "used")


class KeptSequence:
    """Tasks in their order, and when they begin and end.

    ``placed`` counts how many were placed, those of changes too.
    """

    def __init__(self, tasks: Iterable[Task], target: Target):
        self.tasks = list(tasks)
        self.placed = len(self.tasks)
        self._target, line = target, Timeline(target)
        self._rows = [line.add(task) for task in self.tasks]
        self._slots = [*line.flow.used]
        self._ends = [row.end for row in self._rows]
        #: For slots, ports and words: from which time on tasks look at them, the last task first.
        self._horizons: dict[Hashable, list[tuple[int, float]]] = {}
        for index in range(len(self.tasks) - 1, -1, -1):
            row = self._rows[index]
            first = min((one.earliest for one in row.taken), default=row.end)
            looked: list[tuple[Hashable, float]] = [(words, first) for words in row.words]
            looked += [(name, one.earliest) for one in row.taken for name in one.rates]
            for what, time in looked:
                later = self._horizons.setdefault(what, [])
                later.append((-index, min(time, later[-1][1]) if later else time))
        self._cursor, self._at = Timeline(target), 0

    @property
    def cycles(self) -> float:
        """When all tasks have ended."""
        return max(self._ends, default=0.0)

    def replaced(self, changes: Mapping[int, Task]) -> float:
        """Return when all tasks would have ended with other tasks at some places."""
        shift, at, end = 0.0, 0, 0.0
        for first in sorted(changes):
            if first < at:
                continue
            end = max([end, *(one + shift for one in self._ends[at:first])])
            old = self._before(first)
            new, latest, now = deepcopy(old), 0.0, 0.0
            for at in range(first, len(self.tasks)):
                row = new.add(changes.get(at, self.tasks[at]))
                old.repeat(self.tasks[at], self._rows[at])
                self.placed += 1
                latest, now = max(latest, self._ends[at]), max(now, row.end)
                end = max(end, row.end + shift)
                if at + 1 not in changes and self._alike(old, new, now - latest, at):
                    break
            shift, at = shift + now - latest, at + 1
        return max([end, *(one + shift for one in self._ends[at:])])

    def _before(self, index: int) -> Timeline:
        """Return the time line of the tasks before one; quick if indices go up."""
        if index < self._at:
            self._cursor, self._at = Timeline(self._target), 0
        for at in range(self._at, index):
            self._cursor.repeat(self.tasks[at], self._rows[at])
        self._at = index
        return deepcopy(self._cursor)

    def _behind(self, what: Hashable, index: int) -> float:
        """Return from which time on tasks behind one look at something."""
        later = self._horizons.get(what, ())
        at = bisect_left(later, (-index,))
        return later[at - 1][1] if at else np.inf

    def _alike(self, old: Timeline, new: Timeline, shift: float, index: int) -> bool:
        """Whether a time line is another one shifted, for the tasks behind one."""
        ours, theirs = (
            {one.words: one for own in line.known.values() for one in own} for line in (old, new)
        )
        if ours.keys() != theirs.keys():
            return False
        for words, one in ours.items():
            horizon = self._behind(words, index)
            for was, now in zip(_TIMES(one), _TIMES(theirs[words]), strict=True):
                # What ends before its horizon holds up nobody, and may be any time before it.
                late = now - shift - max(was, horizon)
                if late > Flow.bin or (was >= horizon and late < -Flow.bin):
                    return False
        for name in self._slots:
            horizon = self._behind(name, index)
            if horizon == np.inf:
                continue
            # What may go on from the begin on does not shift.
            if not horizon and abs(shift) > Flow.bin:
                return False
            end = max(len(one.flow.used.get(name, ())) for one in (old, new)) * Flow.bin
            at = np.arange(horizon, max(horizon, end + abs(shift)) + 1, Flow.bin)
            less = old.flow.left(name, at) - new.flow.left(name, at + shift)
            if np.abs(less).max() > Flow.bin:
                return False
        return True
