"""The cycles of a graph's nodes in their order, without their code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ..cost.kept_sequence import KeptSequence
from ..cost.sequence import Stage, Task, Words
from ..emit.fragment_cache import renamed
from ..graph.graph import MNGraph, MNNode
from ..layers.operators import LAYERS
from ..machine import Target
from .settings import LM


@dataclass(eq=False)
class Estimates:
    """Estimates of graphs of one model for one machine, which have most nodes in common.

    Where nodes of a segment are replaced, only the windows of these are looked at again.
    """

    _counted: dict[Hashable, Sequence[Stage]] = field(default_factory=dict)
    _kept: dict[tuple[int | None, int], KeptSequence] = field(default_factory=dict)

    def cycles(self, graph: MNGraph, target: Target) -> int:
        """Estimate the cycles of a scheduled graph; the values in LM should have addresses.

        Nodes overlap as far as the slots, the ports and the words of LM that they use allow. Of
        nodes that are alike, one is counted.
        """
        found = 0
        for segment, nodes in groupby(graph.device_nodes(), key=lambda node: node.segment):
            tasks = [self._task(node, graph, target) for node in nodes]
            kept = self._kept.get((segment, len(tasks)))
            if kept is None:
                kept = KeptSequence(tasks, target)
                self._kept[segment, len(tasks)] = kept
            pairs = enumerate(zip(tasks, kept.tasks, strict=True))
            changes = {number: own for number, (own, other) in pairs if own != other}
            found += round(kept.replaced(changes))
        return found

    def _task(self, node: MNNode, graph: MNGraph, target: Target) -> Task:
        alone, values, _ = renamed(node, graph)
        key = alone, tuple(values.values())
        if key not in self._counted:
            only = MNGraph(graph.name, graph.target, nodes=(alone,), values=values)
            self._counted[key] = LAYERS[node.op].stages(alone, only, target)
        reads, writes = (
            [_words(name, graph) for name in dict.fromkeys(names) if name]
            for names in (node.inputs, node.outputs)
        )
        return Task(self._counted[key], reads, writes)


def _words(name: str, graph: MNGraph) -> Words:
    """Return the words of a value in LM; other values are places of their own."""
    value = graph.values[name]
    if value.location not in LM or value.addr is None:
        return Words(name, 0, 1)
    return Words(value.location.memory, value.addr, value.addr + (value.num_lw or 0))
