"""The counts of nodes' loop nests, against their lines."""

from __future__ import annotations

from pycompiler.code.nest import Resources, resources
from pycompiler.graph import MNGraph, MNNode
from pycompiler.graph.graph import Side
from pycompiler.layers.dram_transfer import DOWNLOAD, UPLOAD
from pycompiler.layers.matmul import PRODUCTS
from pycompiler.layers.operators import LAYERS
from pycompiler.layers.split_concat import RECUT
from pycompiler.layers.switch.layer import SWITCH
from pycompiler.machine import Target

#: Layers whose code is no nest yet.
OWN_COUNTS = (SWITCH, RECUT)


def check_counts(graph: MNGraph, target: Target) -> None:
    """Each node whose code is a nest takes, and costs, what its lines take."""
    for node in graph.nodes:
        layer = LAYERS.get(node.op)
        if node.side is Side.DEVICE and layer is not None and node.op not in OWN_COUNTS:
            taken = resources(layer.code(node, graph, target))
            assert taken == resources(layer.emit(node, graph, target).lines), node
            if node.op in PRODUCTS:  # lines of others fill gaps, but not beside sums over L1Bs
                assert max(taken.slots.values()) <= layer.cost(node, graph, target) <= taken.steps
                continue
            assert layer.cost(node, graph, target) == _steps(node, graph, taken, target), node


def _steps(node: MNNode, graph: MNGraph, taken: Resources, target: Target) -> int:
    """Return the steps with hazards and waits for MVs; the MVs of transfers run ahead."""
    if node.op in (DOWNLOAD, UPLOAD):
        return taken.steps
    return taken.waiting_steps(target) + LAYERS[node.op].hazards(node, graph, target)
