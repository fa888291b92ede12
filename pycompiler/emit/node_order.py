"""The order in which merging places nodes: first those that the rest of the program waits for.

The order of the graph is that in which a program without merging runs. A merged program may take
any order in which conflicting accesses to LM and DRAM keep theirs. A node that is placed late fills
the steps that those before it leave. So the nodes of the longest chain come first, and nodes for
which little waits, such as the update of a weight, fill the gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from emu2._core import Access

from ..code.lines import Move
from ..cost.moves import move_cost
from ..machine import Target
from .addressed_lines import Lines

#: The memories in which nodes leave words for each other.
_KEPT = ("lm0", "lm1", "dram")
_Word = tuple[str, int]


@dataclass(frozen=True)
class Urgency:
    """What the orders of the nodes of a program depend on.

    ``after`` are the nodes that wait for each; ``rest`` is the time of the longest chain that
    begins with a node.
    """

    times: Sequence[int]
    after: Sequence[Sequence[int]]
    rest: Sequence[int]

    @classmethod
    def of(cls, nodes: Sequence[Lines], target: Target) -> Urgency | None:
        """Return it; None if a node touches words of LM or DRAM that only a register knows."""
        before = _before(nodes, target)
        if before is None:
            return None
        after: list[list[int]] = [[] for _ in nodes]
        for node, others in enumerate(before):
            for other in others:
                after[other].append(node)
        times = [_time(lines, target) for lines in nodes]
        rest = list(times)
        for node in reversed(range(len(nodes))):
            rest[node] += max((rest[other] for other in after[node]), default=0)
        return cls(times, after, rest)

    def order(self, weight: float = 1.0) -> list[int]:
        """Return the numbers of the nodes in the order of placing.

        The node comes first for which the time at which it may start, multiplied by ``weight``,
        less that of all that waits for it, is least.
        """
        starts = [0] * len(self.times)
        missing = [0] * len(self.times)
        for others in self.after:
            for other in others:
                missing[other] += 1
        ready = [(-float(self.rest[node]), node) for node, count in enumerate(missing) if not count]
        heapify(ready)
        out: list[int] = []
        while ready:
            _, node = heappop(ready)
            out.append(node)
            for other in self.after[node]:
                starts[other] = max(starts[other], starts[node] + self.times[node])
                missing[other] -= 1
                if not missing[other]:
                    heappush(ready, (weight * starts[other] - self.rest[other], other))
        return out


def _before(nodes: Sequence[Lines], target: Target) -> list[set[int]] | None:
    """Return for each node those that must be placed before it."""
    out: list[set[int]] = []
    wrote: dict[_Word, int] = {}
    read: dict[_Word, set[int]] = {}
    for number, lines in enumerate(nodes):
        reads: set[_Word] = set()
        writes: set[_Word] = set()
        for line in lines.lines:
            for accesses, words in ((line.reads, reads), (line.writes, writes)):
                for access in accesses:
                    if access.memory in _KEPT:
                        if access.anywhere:
                            return None
                        words.update(_words(access, target))
        own = {wrote[word] for word in reads | writes if word in wrote}
        own.update(*(read.get(word, ()) for word in writes))
        out.append(own - {number})
        for word in writes:
            wrote[word] = number
            read.pop(word, None)
        for word in reads:
            read.setdefault(word, set()).add(number)
    return out


def _words(access: Access, target: Target) -> Iterator[_Word]:
    """Yield the words of an access; those of DRAM in units of MVs."""
    if access.cycles:
        for word in access.cycles:
            yield access.memory, word
        return
    unit = target.mv_unit
    for block in range(access.low // unit, (access.high - 1) // unit + 1):
        yield access.memory, block


def _time(lines: Lines, target: Target) -> int:
    """Guess the cycles from the first line of a node to its last; MVs of DRAM run ahead."""
    trips: dict[tuple[str, str], int] = {}
    for ready in lines.lines:
        line = ready.line
        if isinstance(line, Move) and "dram" not in (line.source.memory, line.destination.memory):
            cost = move_cost(line, target)
            pair = line.source.memory, line.destination.memory
            trips[pair] = max(trips.get(pair, 0), cost.holds + cost.latency)
    return len(lines.lines) * target.cycles + sum(trips.values())
