"""The cycles of a graph's nodes in their order, without their code."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby

from ..cost.sequence import Stage, Task, Words, cycles
from ..emit.fragment_cache import renamed
from ..graph.graph import MNGraph, MNNode
from ..layers.operators import LAYERS
from ..machine import Target
from .settings import LM


def estimated_cycles(graph: MNGraph, target: Target) -> int:
    """Estimate the cycles of a scheduled graph; the values in LM should have addresses.

    Nodes overlap as far as the slots, the ports and the words of LM that they use allow. Of nodes
    that are alike, one is counted.
    """
    known: dict[Hashable, Sequence[Stage]] = {}
    runs = groupby(graph.device_nodes(), key=lambda node: node.segment)
    return sum(cycles(_tasks(nodes, graph, known, target), target) for _, nodes in runs)


def _tasks(
    nodes: Iterator[MNNode], graph: MNGraph, known: dict[Hashable, Sequence[Stage]], target: Target
) -> Iterator[Task]:
    for node in nodes:
        alone, values, _ = renamed(node, graph)
        key = alone, tuple(values.values())
        if key not in known:
            only = MNGraph(graph.name, graph.target, nodes=(alone,), values=values)
            known[key] = LAYERS[node.op].stages(alone, only, target)
        reads, writes = (
            [_words(name, graph) for name in dict.fromkeys(names) if name]
            for names in (node.inputs, node.outputs)
        )
        yield Task(known[key], reads, writes)


def _words(name: str, graph: MNGraph) -> Words:
    """Return the words of a value in LM; other values are places of their own."""
    value = graph.values[name]
    if value.location not in LM or value.addr is None:
        return Words(name, 0, 1)
    return Words(value.location.memory, value.addr, value.addr + (value.num_lw or 0))
