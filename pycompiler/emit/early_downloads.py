"""Moves downloads to earlier steps, part by part, so that their MVs run while other nodes compute.

A download has parts: MVs that fill a buffer of L2BM, and the lines that move its words to LM. If a
download stays where it is, it waits for each of its MVs. A part may also run between two earlier
nodes, if none of the nodes that then follow it touches its words of LM, or writes its words of
DRAM. It goes where its data has arrived by an estimate, so that no line waits for it. Results do
not change, because two lines that access the same word keep their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from emu2._core import Ready

from ..code.lines import Move
from ..cost.moves import latency, move_cost
from ..graph.graph import Location
from ..machine import Target
from .words import Words

#: How many nodes a part may pass.
MOST_NODES = 256
_LM = frozenset({Location.LM0.memory, Location.LM1.memory})
#: What a part may touch: nothing else of it lives from line to line.
_OWN = _LM | {"dram", "l2bm", "l1bm"}


@dataclass(frozen=True, eq=False)
class Part:
    """Lines of node ``owner`` that are issued among those of node ``under``."""

    under: int
    owner: int
    lines: Sequence[Ready]


@dataclass(frozen=True, eq=False)
class _Lines:
    """A node, or a part of a download, and what it touches."""

    lines: Sequence[Ready]

    @cached_property
    def moves(self) -> list[Move]:
        return [ready.line for ready in self.lines if isinstance(ready.line, Move)]

    @cached_property
    def steps(self) -> int:
        return len(self.lines) - len(self.moves)

    @cached_property
    def lm(self) -> list[Words]:
        """What it touches in LM."""
        return _joined(one for one in self._all if one[0] in _LM)

    @cached_property
    def l2bm(self) -> list[Words]:
        """What it touches in L2BM."""
        return _joined(one for one in self._all if one[0] == "l2bm")

    @cached_property
    def dram_read(self) -> list[Words]:
        """What it reads from DRAM."""
        return _joined(one for one in self._all if one[0] == "dram" and not one[3])

    @cached_property
    def dram_written(self) -> list[Words]:
        """What it writes to DRAM."""
        return _joined(one for one in self._all if one[0] == "dram" and one[3])

    @cached_property
    def _all(self) -> set[tuple[str, int, int, bool]]:
        """The memories, first words and ends that it touches, and whether it writes them."""
        out: set[tuple[str, int, int, bool]] = set()
        for ready in self.lines:
            out.update((a.memory, a.low, a.high, False) for a in ready.reads)
            out.update((a.memory, a.low, a.high, True) for a in ready.writes)
        return out

    def bars(self, part: _Lines) -> bool:
        """Whether ``part``, which stands behind this node, may not pass it."""
        return _meet(self.lm, part.lm) or _meet(self.dram_written, part.dram_read)

    def parts(self) -> list[_Lines]:
        """Return the parts of a download; nothing if it must stay in one piece."""
        whole = all(memory in _OWN for memory, *_ in self._all)
        if not self.lines or not whole or not isinstance(self.lines[0].line, Move):
            return []
        starts = [
            at
            for at, ready in enumerate(self.lines)
            if isinstance(ready.line, Move)
            and not (at and isinstance(self.lines[at - 1].line, Move))
        ]
        ends = [*starts[1:], len(self.lines)]
        return [_Lines(self.lines[a:b]) for a, b in zip(starts, ends, strict=True)]


def _joined(found: Iterable[tuple[str, int, int, bool]]) -> list[Words]:
    """Join accesses of one memory that meet, or leave no gap; units and slots do not count."""
    out: list[Words] = []
    for memory, low, high, _ in sorted(found):
        last = out[-1] if out else None
        if last is not None and last.memory == memory and low <= last.high:
            low, high = last.low, max(high, last.high)
            out.pop()
        out.append(Words(memory, low, high))
    return out


def _meet(some: Sequence[Words], others: Sequence[Words]) -> bool:
    return any(a.meets(b) for a in some for b in others)


@dataclass(frozen=True, eq=False)
class _Waiting:
    """Part ``index`` of a download; it may stand before node ``earliest`` or any later one."""

    owner: int
    index: int
    earliest: int
    part: _Lines


def bring_forward(
    nodes: Sequence[Sequence[Ready]], downloads: Sequence[bool], target: Target
) -> Iterator[Part]:
    """Yield the lines of all nodes in their new order.

    ``downloads`` says for each node whether it brings a value from DRAM to LM.
    """
    # Equal nodes share their lines.
    shared: dict[int, _Lines] = {}
    whole = [shared.setdefault(id(lines), _Lines(lines)) for lines in nodes]
    opening: dict[int, list[_Waiting]] = {}
    split: set[int] = set()
    for owner in (number for number, download in enumerate(downloads) if download):
        for index, part in enumerate(whole[owner].parts()):
            split.add(owner)
            found = _Waiting(owner, index, _earliest(owner, part, whole), part)
            opening.setdefault(found.earliest, []).append(found)
    clock = _Clock(target)
    for number, node in enumerate(whole):
        clock.opens(opening.get(number, ()))
        while (early := clock.early(number)) is not None:
            yield Part(number, early.owner, early.part.lines)
        while (own := clock.due(number)) is not None:
            yield Part(number, number, own.part.lines)
        if number not in split:
            yield Part(number, number, node.lines)
            clock.passes(node)


def _earliest(owner: int, part: _Lines, nodes: Sequence[_Lines]) -> int:
    """Return the first node before which a part may stand."""
    at = owner
    while at and owner - at < MOST_NODES and not nodes[at - 1].bars(part):
        at -= 1
    return at


class _Clock:
    """Estimates when the data of parts arrives, in cycles; only the order of lines depends on it.

    MVs run one after the other. They run for the first parts that may be issued here, one for each
    free buffer of L2BM. A node that uses a buffer delays them.
    """

    def __init__(self, target: Target):
        self._target = target
        self._now = self._free = 0
        #: Parts that may stand here, in their order.
        self._open: list[_Waiting] = []
        #: Parts whose MVs run, and when these end.
        self._arrivals: dict[_Waiting, int] = {}

    def opens(self, waiting: Iterable[_Waiting]) -> None:
        """Note the parts that may stand before this node, but not before the one before it."""
        self._open += waiting
        self._open.sort(key=lambda one: (one.owner, one.index))
        self._issue()

    def early(self, number: int) -> _Waiting | None:
        """Take a part of a node behind ``number`` that has arrived."""
        for one, arrival in self._arrivals.items():
            if one.owner > number and arrival <= self._now:
                return self._take(one)
        return None

    def due(self, number: int) -> _Waiting | None:
        """Take a part of node ``number``."""
        if not self._open or self._open[0].owner != number:
            return None
        one = self._open[0]
        if one not in self._arrivals:
            self._stop(one.part)
            self._start(one)
        return self._take(one)

    def passes(self, node: _Lines) -> None:
        """Let the time of a node go by."""
        self._now += self._target.cycles * node.steps
        if node.moves:
            self._now += latency(self._target) + self._held(node.moves)
        self._stop(node)
        self._issue()

    def _take(self, one: _Waiting) -> _Waiting:
        self._open.remove(one)
        self._now = max(self._now, self._arrivals.pop(one))
        self._now += self._target.cycles * one.part.steps
        self._issue()
        return one

    def _issue(self) -> None:
        """Start the MVs of the first parts, until one finds no buffer."""
        for one in self._open:
            if one not in self._arrivals:
                if any(_meet(other.part.l2bm, one.part.l2bm) for other in self._arrivals):
                    return
                self._start(one)

    def _start(self, one: _Waiting) -> None:
        self._free = max(self._free, self._now) + self._held(one.part.moves)
        self._arrivals[one] = self._free + latency(self._target)

    def _held(self, moves: Sequence[Move]) -> int:
        """Return the cycles for which MVs hold the memory that they use most."""
        held: Counter[str] = Counter()
        for move in moves:
            cost = move_cost(move, self._target)
            held.update(dict.fromkeys(cost.ports, cost.holds))
        return max(held.values(), default=0)

    def _stop(self, lines: _Lines) -> None:
        """Let MVs begin again whose buffers other lines use."""
        held = [one for one in self._arrivals if _meet(one.part.l2bm, lines.l2bm)]
        for one in held:
            del self._arrivals[one]
        if held:
            self._free = min(self._free, self._now)
