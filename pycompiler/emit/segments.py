"""Segments: runs of nodes on one side, and the programs of those that run on the device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ..garbage import without_collection
from ..graph.graph import MNGraph, MNNode, Side
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.switch.layer import SWITCH
from ..layers.tiling.layer import Tiles
from .fragment_cache import Fragments
from .program import Code, Kind, Program

#: The values of the option `emit`.
CONCAT, MERGED = "concat", "l1merge"
EMITS = (CONCAT, MERGED)

_KINDS = {DOWNLOAD: Kind.DOWNLOAD, **dict.fromkeys((UPLOAD, SWITCH, Tiles.op), Kind.TRANSFER)}


@dataclass(frozen=True, eq=False)
class Segment:
    """Nodes that run one after the other on one side.

    ``inputs`` are the values that the segment reads from outside, except constants. ``outputs`` are
    the values that other segments or the caller read. ``code`` is the program of a segment on the
    device; it is None on the host.
    """

    nodes: tuple[MNNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    code: Code | None


def emit_segments(graph: MNGraph, fragments: Fragments, emit: str = CONCAT) -> list[Segment]:
    """Return the segments of a graph with addresses, in the order in which they run.

    ``fragments`` has the code of nodes. ``emit`` says how the nodes of a segment become one
    program: one after the other, or merged.
    """
    segments: list[Segment] = []
    with without_collection():
        for (_, side), group in groupby(graph.nodes, lambda n: (n.segment, n.side)):
            nodes = tuple(group)
            code = _emit(nodes, graph, fragments, emit) if side is Side.DEVICE else None
            segments.append(Segment(nodes, *_boundary(nodes, graph), code))
    return segments


def _emit(nodes: Sequence[MNNode], graph: MNGraph, fragments: Fragments, emit: str) -> Code:
    """Return the program of the nodes of one segment."""
    program = Program(addresses_of(graph), fragments.target, merged=emit == MERGED)
    for node in nodes:
        operands = f"({', '.join(node.inputs)}) -> ({', '.join(node.outputs)})"
        comment = json.dumps(f"{node.op} {node.name}: {operands}")[1:-1]
        program.add(node.name, comment, fragments.of(node, graph), kind_of(node))
    return program.finish()


def kind_of(node: MNNode) -> Kind:
    """Return what merging makes of the lines of a node."""
    return _KINDS.get(node.op, Kind.OTHER)


def addresses_of(graph: MNGraph) -> dict[str, int]:
    """Return the addresses of all values that have one."""
    return {n: v.addr for n, v in graph.values.items() if v.addr is not None}


def _boundary(nodes: Sequence[MNNode], graph: MNGraph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inputs and the outputs of a segment of these nodes."""
    results = {out for node in nodes for out in node.outputs if out}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name)
    inputs = [name for name in read if name not in results and name not in graph.constants]
    names = {node.name for node in nodes}
    wanted = {name for _, name in graph.outputs}
    wanted |= {n for node in graph.nodes if node.name not in names for n in node.inputs}
    outputs = [out for node in nodes for out in node.outputs if out and out in wanted]
    return tuple(inputs), tuple(outputs)
