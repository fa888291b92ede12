"""What the compiler expects of each node by itself, and the peak of its product."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.graph import MNGraph, Side
from ..layers.operators import LAYERS
from ..layers.products.roles import DOUBLE, PRECISION, PRECISIONS
from ..machine import Target
from ..report.bound import peak


def estimates(graph: MNGraph, target: Target, rows: Sequence[int | None]) -> dict[int, int]:
    """Return the cycles that the planners expect, by row; ``rows`` has the row of each node.

    They are those of its code alone: lines of other nodes share its steps, and waits come on top.
    """
    found: dict[int, int] = {}
    known: dict[object, int | None] = {}
    for node, row in zip(graph.nodes, rows, strict=True):
        if row is None or node.side is not Side.DEVICE:
            continue
        values = [graph.values[name] for name in (*node.inputs, *node.outputs) if name]
        facts = [(v.shape, v.dtype, str(v.layout), v.location) for v in values]
        key = node.op, node.plan, str(node.attributes), str(facts)
        if key not in known:
            try:
                known[key] = target.cycles * LAYERS[node.op].cost(node, graph, target)
            except Exception:  # a folder of others may have any graph; the page does without it
                known[key] = None
        if known[key] is not None:
            found[row] = found.get(row, 0) + (known[key] or 0)
    return found


def peaks(graph: MNGraph, target: Target, rows: Sequence[int | None]) -> dict[int, int]:
    """Return the multiply-adds a cycle that the machine could do in a product's precision."""
    found = {}
    for node, row in zip(graph.nodes, rows, strict=True):
        name = dict(node.attributes).get(PRECISION)
        if row is not None and name in (*PRECISIONS, DOUBLE):
            found[row] = peak(target, str(name))
    return found
