"""The time of tasks that follow each other: their lines share steps, and transfers run ahead.

This is a list schedule of flows. A stage takes a part of the machine for its steps: of each issue
slot, of the port of each memory, of the ports of MVs. It begins when what it needs is there, and
goes on as fast as the parts that earlier tasks left free allow. Time is cut into bins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..machine import Target
from .moves import latency, latency_steps

#: What begins the names of units and memories that several slots share.
SHARED = "shared"
#: Cycles are equal up to this part of them.
_CLOSE = 1e-9
#: guess: the part of its time for which a task may work on what the task before it has made so far
_BESIDE = 0.15


class Words(NamedTuple):
    """Words from ``begin`` to before ``end`` of a memory, or of a value in it."""

    place: str
    begin: int
    end: int


@dataclass
class Stage:
    """Lines, or MVs from one memory to another: ``ends``, or None for lines.

    ``uses`` has the cycles for which they take each slot and port. They take ``least`` cycles or
    more. ``count`` is the number of times that MVs wait for those before them.
    """

    ends: tuple[str, str] | None
    least: int = 0
    uses: dict[str, int] = field(default_factory=dict)
    count: int = 0

    def joined(self, other: Stage) -> Stage:
        """Return this stage and one of the same kind that follows at once."""
        uses, count = dict(self.uses), self.count + max(0, other.count - 1)
        for name, used in other.uses.items():
            uses[name] = uses.get(name, 0) + used
        return Stage(self.ends, self.least + other.least, uses, count)

    def repeated(self, times: int) -> Stage:
        """Return the stage so many times, with others between."""
        uses = {name: used * times for name, used in self.uses.items()}
        return Stage(self.ends, self.least * times, uses, self.count * times)

    def packed(self) -> Stage:
        """Return the stage if its lines may share steps: the busiest slot or port decides."""
        return replace(self, least=0)


def steps_of(stages: Iterable[Stage], target: Target) -> int:
    """Count the lines of stages."""
    return sum(one.least for one in stages if one.ends is None) // target.cycles


def slots_of(stages: Iterable[Stage]) -> Counter[str]:
    """Return the cycles for which lines use each issue slot."""
    found = Counter[str]()
    for one in stages:
        if one.ends is None:
            found.update({n: used for n, used in one.uses.items() if not n.startswith(SHARED)})
    return found


def waiting_steps(stages: Iterable[Stage], target: Target) -> int:
    """Count the lines of stages one after the other, and the steps in which they wait for MVs.

    MVs go at once, if their ports allow it, unless they read what those before them brought.
    """
    found, waits, written = list(stages), 0, set[str]()
    between = dict[tuple[str, str], Counter[str]]()
    for stage in found:
        if stage.ends is not None:
            # MVs that read nothing of what those before them brought go on.
            source, goal = stage.ends
            goes_on = bool(written) and source not in written
            waits += stage.count - (goes_on and stage.count > 0)
            written = {*written, goal} if goes_on else {goal}
            between.setdefault(stage.ends, Counter()).update(stage.uses)
    held = sum(max(own.values()) for own in between.values())
    return steps_of(found, target) + waits * latency_steps(target) + held // target.cycles


@dataclass(frozen=True)
class Task:
    """What one node takes: its stages, and the words that it reads and writes."""

    stages: Sequence[Stage]
    reads: Sequence[Words]
    writes: Sequence[Words]


@dataclass
class Known:
    """Words, and when they were nearly written, written, and last read."""

    words: Words
    nearly: float
    written: float
    used: float


class Taken(NamedTuple):
    """What a stage took of the slots and ports of ``rates``, from bin ``first`` on."""

    earliest: float
    rates: Mapping[str, float]
    first: int
    room: NDArray[np.float64]


class Flow:
    """For how many cycles of each bin a slot or a port is in use."""

    #: cycles of a bin
    bin = 64

    def __init__(self) -> None:
        self.used: dict[str, NDArray[np.float64]] = {}
        self.taken: list[Taken] = []
        self._bins = 1 << 10

    def take(self, taken: Taken) -> None:
        """Take what a stage took of another flow of the same use."""
        end = taken.first + len(taken.room)
        for name, rate in taken.rates.items():
            self._until(name, end)[taken.first : end] += taken.room * rate

    def left(self, name: str, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for how many cycles a slot or a port is in use from each time of ``at`` on."""
        first = max(0, int(at[0] // self.bin))
        before = np.cumsum([0.0, *self.used.get(name, np.zeros(0))[first:]])
        edges = (first + np.arange(len(before))) * self.bin
        found: NDArray[np.float64] = before[-1] - np.interp(at, edges, before)
        return found

    def place(self, stage: Stage, earliest: float) -> tuple[float, float]:
        """Return begin and end of a stage that may begin at cycle ``earliest``."""
        left = max([stage.least, *stage.uses.values()])
        if not left:
            return earliest, earliest
        rates = {name: used / left for name, used in stage.uses.items() if used}
        first, count = int(earliest // self.bin), int(left / self.bin) + 2
        whole, moment = left, 0.0
        while True:
            room = self._room(rates, first, count)
            room[0] = min(room[0], max(0.0, (first + 1) * self.bin - earliest))
            done = np.cumsum(room)
            last = int(np.searchsorted(done, left * (1 - _CLOSE)))
            if last < count:
                room[last] -= done[last] - left
                room[last + 1 :] = 0
            self.taken.append(Taken(earliest, rates, first, room[: last + 1]))
            self.take(self.taken[-1])
            begins = np.arange(first, first + count) * float(self.bin)
            begins[0] = max(begins[0], earliest)
            moment += float(room @ (begins + room / 2))
            if last < count:
                end = begins[last] + room[last]
                # As much before the middle of the work as behind it.
                return max(earliest, 2 * moment / whole - end), end
            left -= done[-1]
            first, count = first + count, 2 * count

    def _room(self, rates: Mapping[str, float], first: int, count: int) -> NDArray[np.float64]:
        """Return for how many cycles of each bin a stage of these rates may go on."""
        room = np.full(count, float(self.bin))
        for name, rate in rates.items():
            used = self._until(name, first + count)
            np.minimum(room, (self.bin - used[first : first + count]) / rate, out=room)
        np.maximum(room, 0, out=room)
        return room

    def _until(self, name: str, end: int) -> NDArray[np.float64]:
        """Return the use of a slot or a port, with bins up to ``end``."""
        while end > self._bins:
            self._bins *= 2
        used = self.used.get(name, np.zeros(0))
        if len(used) < self._bins:
            used = self.used[name] = np.concatenate([used, np.zeros(self._bins - len(used))])
        return used


class Placed(NamedTuple):
    """When the lines of a task begin and end, what its stages took, and the words it looked at."""

    begin: float
    end: float
    taken: Sequence[Taken]
    words: Collection[Words] = ()


class Timeline:
    """When tasks begin and end, in cycles."""

    def __init__(self, target: Target):
        self.flow = Flow()
        #: by place
        self.known: dict[str, list[Known]] = {}
        self._latency = latency(target)

    def add(self, task: Task) -> Placed:
        """Place a task behind the others."""
        read, written = (
            [one for own in words for one in self._touching(own)]
            for words in (task.reads, task.writes)
        )
        there = max((one.nearly for one in read), default=0.0)
        free = max((one.used for one in written), default=0.0)
        self.flow.taken = []
        begin, end = self._stages(task, there, free)
        end = max([end, *(one.written for one in read)])
        placed = Placed(begin, end, self.flow.taken, {one.words for one in (*read, *written)})
        self._note(task, placed)
        return placed

    def repeat(self, task: Task, placed: Placed) -> None:
        """Add a task where it was placed behind the same tasks."""
        for taken in placed.taken:
            self.flow.take(taken)
        self._note(task, placed)

    def _note(self, task: Task, placed: Placed) -> None:
        """Note when a task reads and writes its words."""
        begin, end = placed.begin, placed.end
        for words in task.reads:
            for one in self._touching(words):
                one.used = max(one.used, end)
        for words in task.writes:
            inside = self.known.setdefault(words.place, [])
            inside[:] = [
                one
                for one in inside
                if not (words.begin <= one.words.begin and one.words.end <= words.end)
            ]
            inside.append(Known(words, end - _BESIDE * (end - begin), end, end))

    def _touching(self, words: Words) -> Sequence[Known]:
        inside = self.known.get(words.place, ())
        return [
            one for one in inside if one.words.begin < words.end and words.begin < one.words.end
        ]

    def _stages(self, task: Task, there: float, free: float) -> tuple[float, float]:
        """Return when the first lines of a task begin, and when its last stage ends."""
        lines = end = there
        begin: float | None = None
        slots, brought = set[str](), dict[str, float]()
        for stage in task.stages:
            if stage.ends is None:
                first, lines = self.flow.place(stage, max(lines, free, *brought.values()))
                slots |= stage.uses.keys()
                end = max(end, lines)
            else:
                source, goal = stage.ends
                # MVs wait for what brings their words: other MVs, or lines in the slot of a memory.
                # Those that begin a task bring none before the lines behind have a place for them.
                ahead = self._latency + max(stage.uses.values())
                earliest = max(there, lines - ahead, free - ahead)
                if source in brought or source in slots:
                    earliest = brought.get(source, lines)
                first, left = self.flow.place(stage, earliest)
                brought[goal] = max(brought.get(goal, 0.0), left + self._latency)
                end = max(end, brought[goal])
            if begin is None and (stage.ends is None or task.stages[-1] is stage):
                begin = first
        return (there if begin is None else begin), end
