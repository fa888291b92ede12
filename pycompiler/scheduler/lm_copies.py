"""Copies of values in LM, and the nodes that bring values there and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import error
from ..graph.graph import Location, MNGraph, MNNode, MNValue, Stage
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.forget import FORGET
from ..layers.local_copy import COPY
from ..machine import Target
from ..pfvm.names import reserved

_VERBS = {DOWNLOAD: "download", UPLOAD: "upload", COPY: "copy", FORGET: "forget"}


@dataclass
class Copies:
    """The places of one value: the names of its copies by bank, and whether it is in DRAM."""

    banks: dict[Location, str] = field(default_factory=dict)
    dram: bool = False


class InLm:
    """A graph as it gets its moves: its nodes, and its values' copies in LM by their names."""

    def __init__(self, graph: MNGraph, target: Target):
        self.graph, self.target = graph, target
        self.nodes: list[MNNode] = []
        self.copies: dict[str, MNValue] = {}
        self.called = {node.name for node in graph.nodes}
        self._names = set(graph.values)

    def copy(self, name: str, bank: Location, node: MNNode, suffix: str = "") -> str:
        """Make a copy of a value in ``bank`` for ``node``, and return its name. P0301."""
        value = self.graph.values[name]
        copied = _lm_copy(value, suffix or bank.memory, bank, node, self.target)
        copied = replace(copied, name=reserved(copied.name, self._names))
        self.copies[copied.name] = copied
        return copied.name

    def move(self, op: str, source: str, result: str | None, node: MNNode) -> None:
        """Append a node that moves a value on behalf of ``node``; one may have no result."""
        first = self._value(source)
        moved = _move(op, first, first if result is None else self._value(result), node)
        outputs = () if result is None else moved.outputs
        self.nodes.append(replace(moved, name=reserved(moved.name, self.called), outputs=outputs))

    def run(
        self, node: MNNode, local: Mapping[str, str], outs: Mapping[str, str], inplace: int | None
    ) -> None:
        """Append a node that reads and makes copies; operands without a copy stay in DRAM."""
        inputs = tuple(local.get(name, name) for name in node.inputs)
        outputs = tuple(outs.get(name, name) for name in node.outputs)
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs, inplace=inplace))

    def _value(self, name: str) -> MNValue:
        return self.copies[name] if name in self.copies else self.graph.values[name]

    def done(self) -> MNGraph:
        """Return the graph with its moves, but for copies that nothing reads."""
        nodes, graph = _without_unread(self.nodes), self.graph
        named = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        used = {*named, *graph.inputs, *graph.constants, *(name for _, name in graph.outputs)}
        on_device = graph.device_values()
        values = {
            name: replace(value, location=Location.DRAM) if name in on_device else value
            for name, value in graph.values.items()
            if name in used or name not in on_device
        }
        values |= {name: value for name, value in self.copies.items() if name in named}
        return replace(graph, values=values, nodes=tuple(nodes), stage=Stage.SCHEDULED)


def _lm_copy(value: MNValue, suffix: str, bank: Location, node: MNNode, target: Target) -> MNValue:
    """Return a copy of ``value`` in ``bank`` for ``node``; its name is the value's plus ``suffix``.

    P0301 if the bank is too small even when it is empty.
    """
    capacity = target.words(bank.memory)
    if (value.num_lw or 0) > capacity:
        raise error(
            "P0301",
            place=node.place,
            value=value.name,
            words=value.num_lw,
            memory=bank.memory,
            capacity=capacity,
            shape="(" + ", ".join(map(str, value.shape)) + ")",
            node=f"{node.op} `{node.name}`",
            nodes=((node.origin or node.name,),),
        )
    origin = None if value.origin is None else f"{value.origin}.{suffix}"
    name, copy_of = f"{value.name}.{suffix}", value.copy_of or value.name
    return replace(value, name=name, location=bank, origin=origin, copy_of=copy_of)


def _move(op: str, source: MNValue, result: MNValue, node: MNNode) -> MNNode:
    """Return a node ``op`` that moves ``source`` to ``result`` on behalf of ``node``.

    Its name consists of the name of ``node``, a verb and the name of the value that is moved.
    """
    value = result if op == UPLOAD else source
    origin = f"{node.origin or node.name}.{_VERBS[op]}.{value.origin or value.name}"
    return MNNode(
        f"{node.name}.{_VERBS[op]}.{value.name}",
        op,
        (source.name,),
        (result.name,),
        source=node.source,
        segment=node.segment,
        slice=node.slice,
        origin=None if node.slice is None else origin,
    )


def _without_unread(nodes: Sequence[MNNode]) -> list[MNNode]:
    """Return the nodes without the copies between LM0 and LM1 that no later node reads.

    To forget a copy is not to read it.
    """
    read: set[str] = set()
    out: list[MNNode] = []
    for node in reversed(nodes):
        if node.op == FORGET:
            out.append(node)
        elif node.op != COPY or node.outputs[0] in read:
            read.update(node.inputs)
            out.append(node)
    left = {name for node in out for name in node.outputs}
    return [node for node in reversed(out) if node.op != FORGET or node.inputs[0] in left]
