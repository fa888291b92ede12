"""The location planner: the location of each value before a scheduler decides.

Inputs, outputs, constants and values that cross between device and host are in DRAM, where the
host reaches them. Values that only device nodes touch are in LM. All others stay on the host.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..errors import error
from ..graph.graph import Location, MNGraph, Side, Stage
from ..layers.split_concat import IN_DRAM
from ..machine import Target
from .overrides import Overrides, wanted_locations


def plan_locations(graph: MNGraph, overrides: Overrides | None = None) -> MNGraph:
    """Set the location of every value.

    The pass runs again after the layout planner, because that planner adds values.
    """
    on_device = graph.device_values()
    outside = {*graph.inputs, *graph.constants, *(name for _, name in graph.outputs)}
    for node in graph.nodes:
        if node.side is Side.HOST or node.op in IN_DRAM:
            outside.update((*node.inputs, *node.outputs))
    segments: dict[str, set[int | None]] = {}
    for node in graph.device_nodes():
        for name in (*node.inputs, *node.outputs):
            segments.setdefault(name, set()).add(node.segment)

    kept = {n for n, at in wanted_locations(overrides or {}).items() if at is Location.DRAM}

    def home(name: str) -> Location:
        if name not in on_device:
            return Location.HOST
        crosses = name in outside or len(segments[name]) > 1 or name in kept
        return Location.DRAM if crosses else Location.LM

    values = {n: replace(value, location=home(n)) for n, value in graph.values.items()}
    stage = max(graph.stage, Stage.LOCATION, key=lambda stage: stage.value)
    return graph.with_values(values, stage=stage)


def check_room(graph: MNGraph, target: Target) -> MNGraph:
    """Return the graph unless DRAM cannot hold its inputs and constants, or its results. P0302.

    Any layout takes at least these long words. Planning layouts for such values takes minutes.
    """
    capacity = target.words("dram")
    kept, results = set(graph.constants), {name for _, name in graph.outputs}
    for names in (kept.union(graph.inputs), kept | results):
        values = [graph.values[name] for name in names if name in graph.values]
        sizes = [
            -(-prod(value.shape) // (value.dtype.words_per_long * target.groups))
            for value in values
            if value.location is Location.DRAM
        ]
        if sum(sizes) > capacity:
            raise error("P0302", words=sum(sizes), memory="dram", capacity=capacity)
    return graph
