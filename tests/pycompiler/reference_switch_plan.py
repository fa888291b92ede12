"""The plan of a layout switch by Dijkstra's algorithm: the reference of the crate ``switches``."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import prod

from pycompiler.errors import GraphError, error
from pycompiler.graph.digits import (
    Part,
    PrimeDigit,
    Segment,
    all_ranges,
    copied_digits,
    make_layout,
    parts,
    primes,
    segments,
)
from pycompiler.graph.layout import UNIT_LEVELS, Layout, Level
from pycompiler.graph.verify import layout_ranges
from pycompiler.layers.switch.pass_moves import LayoutChange, NoPassError
from pycompiler.layers.switch.pass_search import Pass, pass_steps
from pycompiler.machine import Target

LEVELS = (Level.W, *reversed(UNIT_LEVELS))


def reference_plan(
    change: LayoutChange, target: Target, most: int | None = None
) -> tuple[Pass, ...]:
    """Return the cheapest passes that change a layout; P0305 if there are none."""
    return _Search(change, target, most).run()


@dataclass(frozen=True)
class _State:
    """The parts of each segment, and the digits of each level that hold copies.

    A segment in ``wanted_form`` is cut as the wanted layout cuts it. Strides in Addr do not count.
    """

    parts: tuple[tuple[Part, ...], ...]
    wanted_form: tuple[bool, ...]
    copies: tuple[tuple[Level, frozenset[PrimeDigit]], ...]


class _Search:
    def __init__(self, change: LayoutChange, target: Target, most: int | None = None):
        self.change, self.target, self.most = change, target, most
        source, result, shape = change.source, change.result, change.shape
        self.ranges = all_ranges(target.level_range, change.dtype)
        self.limits = layout_ranges(target)
        self.segments = segments(source, result, shape)
        self.goal = {lv: copied_digits(result, lv, self.ranges) for lv in LEVELS}

    def run(self) -> tuple[Pass, ...]:
        shape, dtype = self.change.shape, self.change.dtype
        start = _State(
            tuple(_placed(s.source) for s in self.segments),
            tuple(_alike(s) for s in self.segments),
            tuple((lv, copied_digits(self.change.source, lv, self.ranges)) for lv in LEVELS),
        )
        if self._done(start):
            return self._last(start)
        order = count()
        # Entries are ordered by their steps so far.
        queue: list[tuple[int, int, _State, tuple[Pass, ...]]] = []
        heapq.heappush(queue, (0, next(order), start, ()))
        best: dict[_State, int] = {}
        while queue:
            cost, _, state, done = heapq.heappop(queue)
            if self._done(state):
                return done
            if best.get(state, cost + 1) <= cost:
                continue
            best[state] = cost
            before = done[-1].layout if done else self.change.source
            for level, after in self._next(state):
                if after in best:
                    continue  # the state was reached in fewer steps
                layout = self.change.result if self._done(after) else self._layout(after)
                if layout.num_lw(self.target.cycles) > self.target.words("lm0"):
                    continue
                try:
                    layout.check(shape, dtype, self.limits, self.target.words("lm0"))
                    change = LayoutChange(before, layout, shape, dtype)
                    steps = pass_steps(change, level, self.target)
                except (GraphError, NoPassError):
                    continue  # no such pass, as words are packed wholly or not at all
                found = (*done, Pass(level, layout, steps))
                steps += cost
                if self.most is None or steps <= self.most:
                    heapq.heappush(queue, (steps, next(order), after, found))
        raise error("P0305", source=str(self.change.source), result=str(self.change.result))

    def _last(self, state: _State) -> tuple[Pass, ...]:
        """Return the passes if every digit is on its level, so that only addresses may differ."""
        if _addresses(self.change.source, self.change.shape) == _addresses(
            self.change.result, self.change.shape
        ):
            return ()
        steps = pass_steps(self.change, Level.PE, self.target)
        return (Pass(Level.PE, self.change.result, steps),)

    def _done(self, state: _State) -> bool:
        copies = dict(state.copies)
        return all(self.goal[lv] <= copies[lv] for lv in LEVELS) and all(
            form and now == _placed(segment.result)
            for now, form, segment in zip(
                state.parts, state.wanted_form, self.segments, strict=True
            )
        )

    def _next(self, state: _State) -> Iterator[tuple[Level, _State]]:
        """Yield the level of each possible next pass, and the state after it.

        A pass settles a level, or moves all digits of W to Addr. If LM has no room for all digits
        that leave a level at once, they leave one by one.
        """
        for level in LEVELS:
            settled = self._settle(state, level)
            yield level, settled
            if level is not Level.W and not self._fits(settled):
                yield from ((level, one) for one in self._one_by_one(state, level))
        apart = tuple(
            tuple(_in_addr(p) if p.level is Level.W else p for p in now) for now in state.parts
        )
        copies = {**dict(state.copies), Level.W: frozenset(primes(self.ranges[Level.W]))}
        yield Level.W, _State(apart, state.wanted_form, tuple((lv, copies[lv]) for lv in LEVELS))

    def _fits(self, state: _State) -> bool:
        addresses = (p.size for now in state.parts for p in now if p.level is Level.ADDR)
        return prod(addresses) <= self.target.words("lm0")

    def _one_by_one(self, state: _State, level: Level) -> Iterator[_State]:
        """Yield the states in which one digit of ``level`` has moved to Addr."""
        for index, (now, segment) in enumerate(zip(state.parts, self.segments, strict=True)):
            for which, part in enumerate(now):
                if part.level is not level or part in segment.result:
                    continue
                moved = (*now[:which], _in_addr(part), *now[which + 1 :])
                parts = (*state.parts[:index], moved, *state.parts[index + 1 :])
                yield _State(parts, state.wanted_form, state.copies)

    def _settle(self, state: _State, level: Level) -> _State:
        """Return the state after a pass over ``level``."""
        moved: list[tuple[Part, ...]] = []
        forms: list[bool] = []
        for segment, now, form in zip(self.segments, state.parts, state.wanted_form, strict=True):
            if not form and all(p.level in (Level.ADDR, level) for p in now):
                now, form = tuple(_in_addr(p) for p in segment.result), True
            if form:
                now = tuple(
                    self._move(p, w, level)
                    for p, w in zip(now, _placed(segment.result), strict=True)
                )
            else:
                now = tuple(_in_addr(p) if p.level is level else p for p in now)
            moved.append(now)
            forms.append(form)
        copies = dict(state.copies)
        copies[level] = self.goal[level]
        if level is Level.W:
            inside = [p for now in moved for p in now if p.level is Level.W]
            wanted = [p for s in self.segments for p in s.result if p.level is Level.W]
            if len(inside) != len(wanted):
                # Words are packed wholly or not at all.
                moved = [
                    tuple(_in_addr(p) if p.level is Level.W else p for p in now) for now in moved
                ]
                inside = []
            copies[level] = frozenset(primes(self.ranges[level]))
            if inside:
                copies[level] = frozenset()
            elif not wanted and self.change.result.on(Level.W):
                # The result packs digits that no index uses.
                copies[level] = frozenset()
        return _State(tuple(moved), tuple(forms), tuple((lv, copies[lv]) for lv in LEVELS))

    @staticmethod
    def _move(part: Part, wanted: Part, level: Level) -> Part:
        if part.level is level and part != wanted:
            part = _in_addr(part)
            if wanted.level is level:
                return wanted
        if part.level is Level.ADDR and wanted.level is level:
            return wanted
        return part

    def _layout(self, state: _State) -> Layout:
        """Return a layout for ``state`` without gaps in Addr."""
        placed: dict[int, list[Part]] = {}
        stride = 1
        for segment, now in zip(self.segments, state.parts, strict=True):
            for part in now:
                if part.level is Level.ADDR:
                    part = Part(part.lo, part.size, Level.ADDR, stride)
                    stride *= part.size
                placed.setdefault(segment.axis, []).append(part)
        return make_layout(len(self.change.shape), placed, dict(state.copies), self.ranges)


def _in_addr(part: Part) -> Part:
    return Part(part.lo, part.size, Level.ADDR, 0)


def _placed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts with stride 0 in Addr."""
    return tuple(_in_addr(p) if p.level is Level.ADDR else p for p in parts)


def _alike(segment: Segment) -> bool:
    """Whether both layouts cut the segment at the same weights."""
    ours, theirs = ([(p.lo, p.size) for p in side] for side in (segment.source, segment.result))
    return ours == theirs


def _addresses(layout: Layout, shape: tuple[int, ...]) -> list[tuple[Part, ...]]:
    return [tuple(found) for found in parts(layout, shape)]
