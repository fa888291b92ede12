"""The cycles that any order of the same lines takes at least.

Each line and each MV gets the first step that its data allow, as if every slot, port and memory
were free. Only the MVs of one node wait for each other, in their order. From any step on, a slot
must still serve all lines that cannot come earlier, one in each step, and a memory all MVs.
Conflicting accesses keep their order, and parts of downloads have the addresses in L2BM at which
they could start first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pycompiler.code.lines import Fragment
from pycompiler.emit.program import Addresses, Kind, Program
from pycompiler.machine import Target


@dataclass(frozen=True)
class Bound:
    """``cycles`` that every order takes, because of ``what``; ``path``: the longest chain."""

    cycles: int
    what: str
    path: int


def bound_of(
    nodes: Sequence[tuple[str, str, Fragment]],
    addresses: Addresses,
    target: Target,
    kinds: Sequence[Kind],
) -> Bound | None:
    """Return the bound of all orders of the nodes; None if they cannot be merged."""
    program = Program(addresses, target, merged=True, window=1 << 40)  # all nodes are one part
    for (name, comment, fragment), kind in zip(nodes, kinds, strict=True):
        program.add(name, comment, fragment, kind)
    placed = program.unlimited()
    if placed is None:
        return None
    jobs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, _, uses in placed:
        for name, cycles in uses:
            jobs[name].append((start, cycles))
    path = max((end for _, end, _ in placed), default=0)
    ends = [(_last(own), what) for what, own in jobs.items()]
    cycles, what = max([*ends, (path, "the longest chain of lines that need each other")])
    return Bound(cycles, what, path)


def _last(jobs: Sequence[tuple[int, int]]) -> int:
    """Return when jobs end at the earliest, which start not before a cycle, one at a time."""
    end = 0
    for start, cycles in sorted(jobs):
        end = max(end, start) + cycles
    return end
