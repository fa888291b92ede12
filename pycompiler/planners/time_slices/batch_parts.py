"""The graph of one part of a batch, which is planned like a graph of its own."""

from __future__ import annotations

from ...graph.graph import MNGraph
from ...machine import Target
from .cuts import Cuts
from .sliced_graph import Like


def part_of_batch(graph: MNGraph, target: Target, parts: int) -> tuple[MNGraph, Like] | None:
    """Return the graph for one of ``parts``, and the cut of the whole graph.

    The batch is the class of most values that no node joins. None if it has no such parts.
    """
    cuts = Cuts(graph, target, lambda graph: graph, 1.0)
    whole = cuts.axes.rigid.keys() | cuts.axes.joined
    free = [one for one in cuts.members if one not in whole]
    batch = max(free, key=lambda one: len(cuts.members[one]), default=None)
    size = cuts.finer(batch, parts) if batch is not None else None
    if batch is None or size is None:
        return None
    return cuts.shrunk({batch: size}), Like(dict.fromkeys(cuts.members[batch], size), batch)
