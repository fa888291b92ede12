"""The nodes of a compiled function as instructions, forward and backward in one list."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..graph.graph import MNGraph, MNNode, Side
from ..layers.dram_transfer import UPLOAD

Phase = Literal["forward", "backward"]


@dataclass(frozen=True)
class Instruction:
    """One node. ``saved`` are its outputs that the backward pass reads.

    ``in_place`` names the value whose long words its first output overwrites.
    """

    number: int
    phase: Phase
    node: str
    operation: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    types: tuple[str, ...]
    saved: tuple[str, ...] = ()
    in_place: str | None = None
    host: bool = False
    source: str | None = None

    @property
    def text(self) -> str:
        """Outputs and inputs, as in ``y <- a, b``."""
        return f"{', '.join(self.outputs)} <- {', '.join(self.inputs) or '()'}"

    def json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }


def instructions(graph: MNGraph, updated: frozenset[str]) -> list[Instruction]:
    """Return the nodes of a graph in their order.

    ``updated`` are the values that a training step writes over registered ones. The forward pass
    is what leads to the other results; all the rest is the backward pass with its updates. Without
    updates there is no backward pass.
    """
    forward = _forward(graph, updated)
    made = {out: k for k, node in enumerate(graph.nodes) for out in node.outputs if out}
    first = set(forward)
    read_later = {
        name
        for k, node in enumerate(graph.nodes)
        if k not in first
        for name in node.inputs
        if name and made.get(name) in first
    }
    return [
        _instruction(k, node, graph, k in first, read_later) for k, node in enumerate(graph.nodes)
    ]


def _instruction(
    number: int, node: MNNode, graph: MNGraph, forward: bool, read_later: Collection[str]
) -> Instruction:
    outputs = tuple(name for name in node.outputs if name)
    return Instruction(
        number,
        "forward" if forward else "backward",
        node.name,
        node.op,
        outputs,
        tuple(name for name in node.inputs if name),
        tuple(str(graph.values[name].type) for name in outputs),
        tuple(name for name in outputs if name in read_later),
        None if node.inplace is None else node.inputs[node.inplace],
        node.side is Side.HOST,
        node.source,
    )


def _forward(graph: MNGraph, updated: frozenset[str]) -> list[int]:
    """Return the nodes that lead to a result, and the uploads of what they make."""
    results = {name for _, name in graph.outputs if name not in updated}
    if not updated:
        return list(range(len(graph.nodes)))
    found = []
    needed = set(results)
    for k in reversed(range(len(graph.nodes))):
        node = graph.nodes[k]
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            found.append(k)
    own = {name for k in found for name in graph.nodes[k].outputs}
    # What is saved in DRAM is moved there by the forward pass.
    found += [
        k
        for k, node in enumerate(graph.nodes)
        if node.op == UPLOAD and own.issuperset(node.inputs) and updated.isdisjoint(node.outputs)
    ]
    return sorted(set(found))
