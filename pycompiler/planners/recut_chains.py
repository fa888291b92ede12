"""Recuts one behind the other become one: each element is then moved once.

A copy along several axes is written as a recut for each axis. Nobody else reads what lies between,
so it need not come to be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..graph.draft import Edit
from ..graph.graph import MNNode
from ..graph.rewrite import Part, Pattern, Rewrite
from ..graph.runs import MOST_RUNS, RUNS, Run, followed
from ..layers.recut.pieces import runs_of
from ..pfvm.device_functions import RECUT


def _joined(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Take elements where an earlier recut takes them: cut(cut(x)) is one cut of x."""
    node, before = nodes
    name = before.outputs[0]
    inputs = [one for one in node.inputs if one != name]
    inputs += [one for one in before.inputs if one not in inputs]
    ours = [(inputs.index(one) if one != name else -1) for one in node.inputs]
    theirs = [inputs.index(one) for one in before.inputs]
    runs = list(followed(_through(_renumbered(node, ours), _renumbered(before, theirs))))
    if len(runs) > MOST_RUNS:
        return None
    facts = ((RUNS, tuple(number for run in runs for number in run)),)
    made = replace(node, inputs=tuple(inputs), attributes=facts)
    return Edit(gone={before.name}, instead={node.name: made})


def _renumbered(node: MNNode, numbers: Sequence[int]) -> list[Run]:
    """Return the runs in the order of the result, with other numbers of the inputs."""
    found = sorted(runs_of(node), key=lambda run: run[2])
    return [(numbers[source], at, to, count) for source, at, to, count in found]


def _through(runs: Sequence[Run], before: Sequence[Run]) -> Iterator[Run]:
    """Yield ``runs``; those of input -1 read where the runs ``before`` take its elements from."""
    begins = [run[2] for run in before]
    for run in runs:
        if run[0] >= 0:
            yield run
            continue
        _, at, to, count = run
        number = bisect_right(begins, at) - 1
        while count:
            source, first, begin, length = before[number]
            skipped = at - begin
            size = min(count, length - skipped)
            yield source, first + skipped, to, size
            at, to, count, number = at + size, to + size, count - size, number + 1


_RECUT = frozenset({RECUT})
JOIN_RECUTS = Rewrite("join_recuts", "", Pattern(_RECUT, operand=Pattern(_RECUT)), _joined)
