"""Recuts one behind the other become one: each element is then moved once.

A copy along several axes is written as a recut for each axis. Nobody else reads what lies between,
so it need not come to be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..graph.edit import Edit
from ..graph.graph import MNGraph, MNNode
from ..graph.runs import MOST_RUNS, RUNS, Run, followed
from ..layers.recut.pieces import runs_of
from ..pfvm.device_functions import RECUT
from .overrides import Overrides


def join_recuts(graph: MNGraph, overrides: Overrides) -> MNGraph:
    """Return the graph with one recut in place of each chain; values of overrides stay."""
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    readers.update(name for _, name in graph.outputs)
    made: dict[str, MNNode] = {}
    edit = Edit(graph)
    for node in graph.device_nodes():
        if node.op == RECUT:
            for name in node.inputs:
                before = made.get(name)
                alone = readers[name] == 1 and name not in overrides
                if before is not None and alone and before.segment == node.segment:
                    found = _joined(node, name, before)
                    if found is not None:
                        node = found
                        edit.gone.add(before.name)
            made[node.outputs[0]] = edit.instead[node.name] = node
    return edit.done()


def _joined(node: MNNode, name: str, before: MNNode) -> MNNode | None:
    """Return ``node`` as it reads what the input ``name`` is made of; None for too many runs."""
    inputs = [one for one in node.inputs if one != name]
    inputs += [one for one in before.inputs if one not in inputs]
    ours = [(inputs.index(one) if one != name else -1) for one in node.inputs]
    theirs = [inputs.index(one) for one in before.inputs]
    runs = list(followed(_through(_renumbered(node, ours), _renumbered(before, theirs))))
    if len(runs) > MOST_RUNS:
        return None
    facts = ((RUNS, tuple(number for run in runs for number in run)),)
    return replace(node, inputs=tuple(inputs), attributes=facts)


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
