"""The simplest scheduler: every value is in DRAM between any two nodes.

Each node downloads its operands to LM, computes, and uploads its results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..errors import error
from ..graph.graph import Location, MNGraph, MNNode, MNValue, Side, Stage
from ..layers.base import distinct, mirrored
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.operators import LAYERS
from ..layers.split_concat import CONCAT, SPLIT
from ..machine import Target
from ..pfvm.names import fresh
from ..planners.overrides import Overrides, wanted_keeping, wanted_locations

_ORIGIN = re.compile(r"\.at\d+(__\d+)?\Z")


@dataclass
class _Copies:
    """LM copies made so far, and the names in use."""

    target: Target
    names: set[str]
    values: dict[str, MNValue] = field(default_factory=dict)

    def copy(self, value: MNValue, bank: Location, number: int, node: MNNode) -> MNValue:
        capacity = self.target.words(bank.memory)
        if (value.num_lw or 0) > capacity:
            shape = "(" + ", ".join(map(str, value.shape)) + ")"
            raise error(
                "P0301",
                place=node.place,
                value=value.name,
                share=value.num_lw,
                memory=bank.memory,
                capacity=capacity,
                shape=shape,
                node=f"{node.op} `{node.name}`",
            )
        name = fresh(f"{value.name}.at{number}", self.names)
        self.names.add(name)
        self.values[name] = replace(value, name=name, location=bank)
        return self.values[name]


def schedule(graph: MNGraph, target: Target, overrides: Overrides | None = None) -> MNGraph:
    """Put downloads and uploads around every device node.

    P0301 if a value cannot fit, P0306 for one that should be kept in LM.
    """
    for name, kept in wanted_keeping(overrides or {}).items():
        if kept:
            raise error("P0306", value=name, reason="always_from_dram keeps nothing in LM")
    banks = {
        name: at
        for name, at in wanted_locations(overrides or {}).items()
        if at is not Location.DRAM
    }
    copies = _Copies(target, set(graph.values))
    nodes: list[MNNode] = []
    for number, node in enumerate(graph.nodes):
        if node.side is Side.HOST or node.op in (SPLIT, CONCAT):
            nodes.append(node)
        else:
            nodes += _surround(node, graph, copies, number, banks)
    made = {(_ORIGIN.sub("", name), value.location) for name, value in copies.values.items()}
    for name, bank in banks.items():
        if (name, bank) not in made:
            raise error("P0306", value=name, reason=f"no node has it in {bank.value}")
    dram = {
        name: replace(graph.values[name], location=Location.DRAM) for name in graph.device_values()
    }
    return graph.with_values({**dram, **copies.values}, nodes=tuple(nodes), stage=Stage.SCHEDULED)


def _surround(
    node: MNNode,
    graph: MNGraph,
    copies: _Copies,
    number: int,
    banks: Mapping[str, Location],
) -> Iterator[MNNode]:
    placement = LAYERS[node.op].place(node, graph)
    pairs = zip(node.outputs, placement.outputs, strict=True)
    if any(banks.get(name, bank) is not bank for name, bank in pairs):
        placement = mirrored(placement)
    local: dict[str, str] = {}
    for name, bank in zip(distinct(node.inputs), placement.inputs, strict=True):
        local[name] = copies.copy(graph.values[name], bank, number, node).name
        yield _transfer(DOWNLOAD, name, local[name], node)
    results: dict[str, str] = {}
    for name, bank in zip(node.outputs, placement.outputs, strict=True):
        results[name] = copies.copy(graph.values[name], bank, number, node).name
    yield replace(
        node,
        inputs=tuple(local[name] for name in node.inputs),
        outputs=tuple(results[name] for name in node.outputs),
        inplace=placement.inplace,
    )
    for name, copy in results.items():
        yield _transfer(UPLOAD, copy, name, node)


def _transfer(op: str, source: str, result: str, node: MNNode) -> MNNode:
    which = source if op == DOWNLOAD else result
    verb = "download" if op == DOWNLOAD else "upload"
    name = f"{node.name}.{verb}.{which}"
    made = MNNode(name, op, (source,), (result,))
    return replace(made, source=node.source, segment=node.segment, slice=node.slice)
