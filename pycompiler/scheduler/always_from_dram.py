"""The scheduler ``always_from_dram``: every value is in DRAM between any two nodes.

Each node downloads its operands to LM, computes, and uploads its results.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import error
from ..graph.graph import Location, MNGraph, MNNode, Side
from ..layers.base import distinct, mirrored
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.operators import LAYERS
from ..layers.split_concat import IN_DRAM
from ..machine import Target
from ..planners.overrides import Overrides, wanted_banks, wanted_keeping
from .lm_copies import InLm


def schedule_from_dram(
    graph: MNGraph,
    target: Target,
    fraction: float,
    overrides: Overrides,
    renewed: Mapping[str, str] | None = None,
) -> MNGraph:
    """Put downloads and uploads around every device node.

    ``fraction`` and ``renewed`` have no effect. P0301 if a value does not fit LM. P0306 for an
    override that keeps a value in LM, or that names a location in which no node has the value.
    """
    for name, stays in wanted_keeping(overrides).items():
        if stays:
            raise error("P0306", value=name, reason="always_from_dram keeps nothing in LM")
    banks = wanted_banks(overrides)
    work = InLm(graph, target)
    for number, node in enumerate(graph.nodes):
        if node.side is Side.HOST or node.op in IN_DRAM:
            work.nodes.append(node)
        else:
            _surround(node, work, f"at{number}", banks)
    there = {(value.copy_of, value.location) for value in work.copies.values()}
    for name, bank in banks.items():
        if (name, bank) not in there:
            raise error("P0306", value=name, reason=f"no node has it in {bank.value}")
    return work.done()


def _surround(node: MNNode, work: InLm, suffix: str, banks: Mapping[str, Location]) -> None:
    """Add a node with its downloads and uploads; the names of its copies have a suffix."""
    placement = LAYERS[node.op].place(node, work.graph)
    pairs = zip(node.outputs, placement.outputs, strict=True)
    if any(banks.get(name, bank) is not bank for name, bank in pairs):
        placement = mirrored(placement)
    local: dict[str, str] = {}
    for name, bank in zip(distinct(node.inputs), placement.inputs, strict=True):
        if bank is not Location.DRAM:
            local[name] = work.copy(name, bank, node, suffix)
            work.move(DOWNLOAD, name, local[name], node)
    results = {
        name: work.copy(name, bank, node, suffix)
        for name, bank in zip(node.outputs, placement.outputs, strict=True)
        if bank is not Location.DRAM
    }
    work.run(node, local, results, placement.inplace)
    for name, copy in results.items():
        work.move(UPLOAD, copy, name, node)
