"""Copies of values in LM, and the nodes that bring values there and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..errors import error
from ..graph.graph import Location, MNNode, MNValue
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.forget import FORGET
from ..layers.local_copy import COPY
from ..machine import Target

_VERBS = {DOWNLOAD: "download", UPLOAD: "upload", COPY: "copy", FORGET: "forget"}


@dataclass
class Copies:
    """The places of one value: the names of its copies by bank, and whether it is in DRAM."""

    banks: dict[Location, str] = field(default_factory=dict)
    dram: bool = False


def lm_copy(value: MNValue, suffix: str, bank: Location, node: MNNode, target: Target) -> MNValue:
    """Return a copy of ``value`` in ``bank`` for ``node``; its name is the value's plus ``suffix``.

    P0301 if the bank is too small even when it is empty.
    """
    capacity = target.words(bank.memory)
    if (value.num_lw or 0) > capacity:
        raise error(
            "P0301",
            place=node.place,
            value=value.name,
            share=value.num_lw,
            memory=bank.memory,
            capacity=capacity,
            shape="(" + ", ".join(map(str, value.shape)) + ")",
            node=f"{node.op} `{node.name}`",
            nodes=((node.origin or node.name,),),
        )
    origin = None if value.origin is None else f"{value.origin}.{suffix}"
    name, copy_of = f"{value.name}.{suffix}", value.copy_of or value.name
    return replace(value, name=name, location=bank, origin=origin, copy_of=copy_of)


def move(op: str, source: MNValue, result: MNValue, node: MNNode) -> MNNode:
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


def without_unread(nodes: Sequence[MNNode]) -> list[MNNode]:
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
