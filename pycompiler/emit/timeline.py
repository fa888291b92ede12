"""The timeline of a whole program: the step of each line, and the start of each MV.

Lines and MVs are placed one after the other, in the order of the program without merging. A line
goes to the first step at which all holds that the packer asks of an instruction, and all MVs that
it depends on have ended. It may share that step with lines of other nodes. An MV begins when all
lines and MVs that it depends on are over, and its memories are free. So lines of one node fill the
steps in which another node waits, or leaves slots unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from ..cost.moves import move_cost
from ..layers.fragment import Move
from ..machine import Target
from .addressed_lines import SHARED, Ready
from .hazards import Access
from .placing import Placing
from .ports import Op
from .shifted import MEMORY
from .touch_times import Port, TouchTimes, Unit


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


@dataclass
class _Anywhere:
    """The last steps with reads and writes of a memory of which any word may be meant."""

    read: int = -1
    written: int = -1


@dataclass
class _Moves:
    """When MVs end and lines stand that touch the same memories."""

    written: TouchTimes
    read: TouchTimes
    lines_written: TouchTimes
    lines_read: TouchTimes
    ports: dict[str, Port] = field(default_factory=dict)


class Timeline:
    """Places the lines and the MVs of a program."""

    def __init__(self, target: Target, anywhere: Iterable[str]):
        self.placed: list[Placed] = []
        self._target = target
        self._placing = Placing(target)
        unit = target.mv_unit
        self._moves = _Moves(TouchTimes(unit), TouchTimes(unit), TouchTimes(unit), TouchTimes(unit))
        # Memories that some line reads or writes at addresses that only a register knows.
        self._any = {memory: _Anywhere() for memory in anywhere}
        self._unknown = {memory: _Anywhere() for memory in anywhere}
        rules = (rule for rule in target.hazards if "mv" in rule.readers)
        self._before_move = 1 + max((rule.steps or 0 for rule in rules), default=0)
        self._units: dict[tuple[int | None, int | None], tuple[Unit, ...]] = {}

    # -- lines -------------------------------------------------------------------------------

    def place_lines(self, run: Sequence[Ready], owner: int) -> None:
        """Place lines that must follow each other without a gap."""
        at = 0
        for offset, line in enumerate(run):
            step = self._earliest(line, at + offset)
            at = max(at, step - offset)
        worst = 0
        while True:
            # The line that did not fit last is asked first.
            at = self._free(run[worst], at + worst) - worst
            bad = self._unfit(run, at, worst)
            if bad is None:
                break
            if bad == worst:
                at += 1
            worst = bad
        for offset, line in enumerate(run):
            self._put(line, at + offset)
            self.placed.append(Placed(at + offset, owner, line, len(self.placed)))

    def _free(self, line: Ready, at: int) -> int:
        return self._placing.free([(0, op) for op in line.ops], at)

    def _unfit(self, run: Sequence[Ready], at: int, first: int) -> int | None:
        """Return a line that does not fit if the run begins at ``at``; None if all fit."""
        order: list[int] = [first, *range(len(run))]
        for number in order:
            if not self._fits(run[number], at + number):
                return number
        return None

    def _fits(self, line: Ready, at: int) -> bool:
        placing = self._placing
        if len(line.ops) == 1:
            return placing.tried(line.ops[0], at)
        if not all(placing.fits(op, at) for op in line.ops):
            return False
        # Each instruction fits alone, but all of them may be too many for a shared unit.
        return at >= len(placing.lines) or placing.ports.shared(line.ops, placing.lines[at])

    def _earliest(self, line: Ready, at: int) -> int:
        for op in line.ops:
            at = self._placing.earliest(op, at)
            if self._any:
                at = self._after_unknown(op, at)
        if line.shared:
            cycle = -1
            moves = self._moves
            for access in line.touched.reads:
                cycle = max(cycle, moves.written.last(access))
            for access in line.touched.writes:
                cycle = max(cycle, moves.written.last(access), moves.read.last(access))
            at = max(at, -(-cycle // self._target.cycles))
        return at

    def _after_unknown(self, op: Op, at: int) -> int:
        """Return the first step from ``at`` on behind accesses that may touch the same words."""
        reach = self._placing.most
        for memory in op.anywhere_read:
            at = max(at, self._any[memory].written + reach)
        for memory in op.anywhere_written:
            at = max(at, self._any[memory].written + 1, self._any[memory].read)
        for memory, written in op.memories:
            unknown = self._unknown.get(memory)
            if unknown is None:
                continue
            if written:
                at = max(at, unknown.written + 1, unknown.read)
            elif unknown.written >= 0:
                at = max(at, unknown.written + reach)
        return at

    def _put(self, line: Ready, at: int) -> None:
        for op in line.ops:
            self._placing.put(op, at)
            if not self._any:
                continue
            for memory, written in op.memories:
                if memory in self._any:
                    _later(self._any[memory], at, written)
            for memories, written in ((op.anywhere_read, False), (op.anywhere_written, True)):
                for memory in memories:
                    _later(self._any[memory], at, written)
                    _later(self._unknown[memory], at, written)
        if line.shared:
            for access in line.touched.reads:
                self._moves.lines_read.note(access, at)
            for access in line.touched.writes:
                self._moves.lines_written.note(access, at)

    # -- MVs ---------------------------------------------------------------------------------

    def place_move(self, ready: Ready, owner: int) -> None:
        """Place an MV."""
        assert isinstance(ready.line, Move)
        moves, touched = self._moves, ready.touched
        cost = move_cost(ready.line, self._target)
        start = self.start_of(ready)
        for name in cost.ports:
            moves.ports[name].hold(start, cost.holds)
        end = start + cost.holds + cost.latency
        for accesses, times in ((touched.reads, moves.read), (touched.writes, moves.written)):
            for access in accesses:
                times.note(access, end)
                times.note(access, end, self._units_of(access))
        step = start // self._target.cycles
        self.placed.append(Placed(step, owner, ready, len(self.placed), end))

    def start_of(self, ready: Ready, shift: int = 0) -> int:
        """Return the first cycle in which an MV may start; it is the first of a step.

        Its words in L2BM lie ``shift`` long words higher.
        """
        assert isinstance(ready.line, Move)
        moves, touched = self._moves, ready.touched
        step, cycle = -1, 0
        for access in touched.reads:
            more, units = shift if access.memory == MEMORY else 0, self._units_of(access)
            step = max(step, moves.lines_written.last(access, more=more) + self._before_move)
            cycle = max(cycle, moves.written.last(access, units, more))
        for access in touched.writes:
            more, units = shift if access.memory == MEMORY else 0, self._units_of(access)
            step = max(step, moves.lines_written.last(access, more=more) + 1)
            step = max(step, moves.lines_read.last(access, more=more) + 1)
            ends = moves.written.last(access, units, more), moves.read.last(access, units, more)
            cycle = max(cycle, *ends)
        cost = move_cost(ready.line, self._target)
        each = self._target.cycles
        ports = [moves.ports.setdefault(name, Port()) for name in cost.ports]
        start = -(-max(step * each, cycle) // each) * each
        moved = True
        while moved:
            moved = False
            for port in ports:
                free = -(-port.free(start, cost.holds) // each) * each
                if free > start:
                    start, moved = free, True
        return start

    def soonest(self, ready: Ready) -> int:
        """Return the first step at which all that a line or an MV reads is there."""
        moves, at, cycle = self._moves, 0, -1
        if isinstance(ready.line, Move):
            for access in ready.touched.reads:
                at = max(at, moves.lines_written.last(access) + self._before_move)
                cycle = max(cycle, moves.written.last(access, self._units_of(access)))
        else:
            for op in ready.ops:
                at = self._placing.earliest_read(op, at)
            if ready.shared:
                cycle = max(map(moves.written.last, ready.touched.reads), default=-1)
        return max(at, -(-cycle // self._target.cycles))

    def last_of(self, access: Access, more: int) -> int:
        """Return the last step that touches what ``access`` does, ``more`` long words higher."""
        if access.memory not in SHARED:
            return self._placing.last(access, more)
        moves, units, lines = self._moves, self._units_of(access), (None,)
        times = (moves.written, units), (moves.read, units)
        ended = max(time.last(access, own, more) for time, own in times)
        times = (moves.lines_written, lines), (moves.lines_read, lines)
        stood = max(time.last(access, own, more) for time, own in times)
        return max(stood, -(-ended // self._target.cycles) - 1)

    def _units_of(self, access: Access) -> tuple[Unit, ...]:
        """Return the units of an access, each with its group and L2B."""
        found = self._units.get(access.unit)
        if found is None:
            group, l2b = access.unit
            groups = range(self._target.groups) if group is None else (group,)
            l2bs = range(self._target.l2bs_per_group) if l2b is None else (l2b,)
            found = self._units[access.unit] = tuple(product(groups, l2bs))
        return found


def _later(seen: _Anywhere, at: int, written: bool) -> None:
    if written:
        seen.written = max(seen.written, at)
    else:
        seen.read = max(seen.read, at)
