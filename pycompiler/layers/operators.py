"""The table of supported operators, and the verifier rule that asks their layers."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.graph import MNGraph, MNNode, Stage
from ..graph.verify import Rule
from ..machine import Target
from . import (
    copy_operators,
    crop,
    depthwise,
    dram_transfer,
    elementwise,
    forget,
    gather,
    half_conversions,
    local_copy,
    matmul,
    picks,
    reduce,
    split_concat,
    store,
    sum_of_products,
    view,
    windows,
)
from .base import Layer
from .lookup import layer as lookup
from .recut import layer as recut
from .switch import layer as switch
from .tiling import layer as tiling
from .weight_gradient import layer as weight_gradient

#: The operator families. A new family adds its module here.
_FAMILIES = (
    elementwise,
    matmul,
    reduce,
    sum_of_products,
    view,
    copy_operators,
    crop,
    depthwise,
    gather,
    lookup,
    store,
    picks,
    local_copy,
    dram_transfer,
    forget,
    split_concat,
    recut,
    switch,
    tiling,
    half_conversions,
    windows,
    weight_gradient,
)
LAYERS: dict[str, Layer] = {layer.op: layer for family in _FAMILIES for layer in family.LAYERS}


def stays_in_dram(name: str, node: MNNode) -> bool:
    """Whether a device node reads a value in DRAM, so that the value is not downloaded for it."""
    places = LAYERS[node.op].in_dram
    return any(own == name and place in places for place, own in enumerate(node.inputs))


def _accepted(graph: MNGraph, target: Target) -> Iterator[str]:
    for node in graph.device_nodes():
        if node.op not in LAYERS:
            yield f"`{node.name}`: no layer for {node.op}"
            continue
        for refusal in LAYERS[node.op].refusals(node, graph, target):
            yield f"{node.op} `{node.name}` does not accept {refusal}"


def _planned(graph: MNGraph, target: Target) -> Iterator[str]:
    for node in graph.device_nodes():
        schedules = LAYERS[node.op].schedules if node.op in LAYERS else ()
        if not isinstance(node.plan, schedules or type(None)):
            known = ", ".join(one.__name__ for one in schedules) or "none"
            yield f"{node.op} `{node.name}` has the plan {node.plan}, its schedules are {known}"


RULES: tuple[Rule, ...] = (
    Rule("plans", Stage.LAYOUT, _planned),
    Rule("accepted", Stage.SCHEDULED, _accepted),
)
