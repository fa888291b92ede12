"""Which nodes of a trace share memory, as torch's fake tensors say it."""

from __future__ import annotations

import operator
from typing import Any

import torch

_STRIDED = torch.ops.aten.as_strided.default


def storage_of(value: Any) -> int | None:
    """Return a number for the memory of a tensor; None if it has none of its own."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return int(value.untyped_storage()._cdata)


def owner_of(node: torch.fx.Node) -> torch.fx.Node:
    """Return the node whose memory ``node`` is a view of; the node itself if it is none."""
    own = storage_of(node.meta.get("val"))
    while own is not None:
        makers = node.all_input_nodes if node.target is operator.getitem else [node]
        read = (operand for maker in makers for operand in maker.all_input_nodes)
        operands = [n for n in read if storage_of(n.meta.get("val")) == own]
        if not operands:
            break
        node = operands[0]
    return node


def read_owners(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Let each as_strided read the memory itself, not a view of it; return what they read."""
    read = []
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not _STRIDED:
            continue
        source: Any = node.args[0]
        owner = owner_of(source)
        read.append(owner)
        if owner is source:
            continue
        names = ("size", "stride", "storage_offset")
        given = dict(zip(names, node.args[1:], strict=False)) | node.kwargs
        if given.get("storage_offset") is None:
            given["storage_offset"] = source.meta["val"].storage_offset()
        node.args, node.kwargs = (owner, *(given[name] for name in names)), {}
    return read
