"""The counts of nodes' loop nests, against their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pycompiler.code.nest import stages
from pycompiler.cost.sequence import SHARED, Stage, slots_of, steps_of, waiting_steps
from pycompiler.graph import MNGraph, MNNode
from pycompiler.graph.graph import Side
from pycompiler.layers.dram_transfer import DOWNLOAD, UPLOAD
from pycompiler.layers.matmul import PRODUCTS
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target


def check_counts(graph: MNGraph, target: Target) -> None:
    """Each node whose code is a nest takes, and costs, what its lines take."""
    for node in graph.nodes:
        layer = LAYERS.get(node.op)
        if node.side is Side.DEVICE and layer is not None:
            taken = stages(layer.code(node, graph, target), target)
            lines = stages(layer.emit(node, graph, target).lines, target)
            assert totals(taken, target) == totals(lines, target), node
            cost, steps = layer.cost(node, graph, target), steps_of(taken, target)
            if node.op in PRODUCTS:  # lines of others fill gaps, but not beside sums over L1Bs
                assert (
                    max(slots_of(taken).values()) <= cost * target.cycles <= steps * target.cycles
                )
                continue
            assert cost == _steps(node, graph, taken, target), node


def totals(taken: Sequence[Stage], target: Target) -> tuple[object, ...]:
    """Return lines and waits, and the slots and ports of lines, and of MVs between two memories.

    The turns of a loop may write other memories: the last products of a sum write LM.
    """
    uses: dict[object, Counter[str]] = {}
    for one in taken:
        own = {name: used for name, used in one.uses.items() if not name.startswith(SHARED)}
        uses.setdefault(one.ends, Counter()).update(own)
    return steps_of(taken, target), waiting_steps(taken, target), uses


def _steps(node: MNNode, graph: MNGraph, taken: Sequence[Stage], target: Target) -> int:
    """Return the steps with hazards and waits for MVs; the MVs of transfers run ahead."""
    if node.op in (DOWNLOAD, UPLOAD):
        return steps_of(taken, target)
    return waiting_steps(taken, target) + LAYERS[node.op].hazards(node, graph, target)
