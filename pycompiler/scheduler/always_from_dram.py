"""The scheduler ``always_from_dram``: every value is in DRAM between any two nodes.

Each node downloads its operands to LM, computes, and uploads its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..errors import error
from ..graph.graph import Location, MNGraph, MNNode, MNValue, Side, Stage
from ..layers.base import distinct, mirrored
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.operators import LAYERS
from ..layers.split_concat import IN_DRAM
from ..machine import Target
from ..pfvm.names import reserved
from ..planners.overrides import Overrides, wanted_keeping, wanted_locations
from .lm_copies import lm_copy, move


@dataclass
class _Copies:
    """The copies of values in LM, by name."""

    target: Target
    names: set[str]
    values: dict[str, MNValue] = field(default_factory=dict)
    #: The values of the graph that have a copy, with the bank of the copy.
    made: set[tuple[str, Location]] = field(default_factory=set)

    def copy(self, value: MNValue, bank: Location, number: int, node: MNNode) -> MNValue:
        """Make a copy of ``value`` for ``node``; the name of the copy contains ``number``."""
        made = lm_copy(value, f"at{number}", bank, node, self.target)
        made = replace(made, name=reserved(made.name, self.names))
        self.values[made.name] = made
        self.made.add((value.name, bank))
        return made


def schedule_from_dram(
    graph: MNGraph,
    target: Target,
    share: float,
    overrides: Overrides,
    renewed: Mapping[str, str] | None = None,
) -> MNGraph:
    """Put downloads and uploads around every device node.

    ``share`` and ``renewed`` have no effect. P0301 if a value does not fit LM. P0306 for an
    override that keeps a value in LM, or that names a location in which no node has the value.
    """
    for name, kept in wanted_keeping(overrides).items():
        if kept:
            raise error("P0306", value=name, reason="always_from_dram keeps nothing in LM")
    banks = {
        name: at for name, at in wanted_locations(overrides).items() if at is not Location.DRAM
    }
    copies = _Copies(target, set(graph.values))
    nodes: list[MNNode] = []
    for number, node in enumerate(graph.nodes):
        if node.side is Side.HOST or node.op in IN_DRAM:
            nodes.append(node)
        else:
            nodes += _surround(node, graph, copies, number, banks)
    for name, bank in banks.items():
        if (name, bank) not in copies.made:
            raise error("P0306", value=name, reason=f"no node has it in {bank.value}")
    dram = {
        name: replace(graph.values[name], location=Location.DRAM) for name in graph.device_values()
    }
    return graph.with_values({**dram, **copies.values}, nodes=tuple(nodes), stage=Stage.SCHEDULED)


def _surround(
    node: MNNode, graph: MNGraph, copies: _Copies, number: int, banks: Mapping[str, Location]
) -> Iterator[MNNode]:
    placement = LAYERS[node.op].place(node, graph)
    pairs = zip(node.outputs, placement.outputs, strict=True)
    if any(banks.get(name, bank) is not bank for name, bank in pairs):
        placement = mirrored(placement)
    local: dict[str, MNValue] = {}
    for name, bank in zip(distinct(node.inputs), placement.inputs, strict=True):
        if bank is Location.DRAM:
            local[name] = graph.values[name]
            continue
        local[name] = copies.copy(graph.values[name], bank, number, node)
        yield move(DOWNLOAD, graph.values[name], local[name], node)
    results: dict[str, MNValue] = {}
    for name, bank in zip(node.outputs, placement.outputs, strict=True):
        if bank is not Location.DRAM:
            results[name] = copies.copy(graph.values[name], bank, number, node)
    yield replace(
        node,
        inputs=tuple(local[name].name for name in node.inputs),
        outputs=tuple(results[name].name if name in results else name for name in node.outputs),
        inplace=placement.inplace,
    )
    for name, copy in results.items():
        yield move(UPLOAD, copy, graph.values[name], node)
