"""Writes recurrent layers as steps of plain operators, which all have rules."""

from __future__ import annotations

from collections.abc import Collection

import onnx

from ..graph.graph import TensorType
from ..pfvm.composites.recurrent import RECURRENT, Recurrent
from ..pfvm.names import all_names
from ..pfvm.with_nodes import with_nodes

__all__ = ["RECURRENT", "written_as_steps"]


def written_as_steps(
    model: onnx.ModelProto, types: dict[str, TensorType], chosen: Collection[str]
) -> onnx.ModelProto:
    """Write out those recurrent layers whose first result is in ``chosen``."""
    taken = all_names(model.graph)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for node in model.graph.node:
        own = next(filter(None, node.output), "") in chosen and node.op_type in RECURRENT
        writer = Recurrent(node, types, taken, {})
        if own:
            writer.write()
            nodes += writer.nodes
            constants += writer.constants
        else:
            nodes.append(node)
    if len(nodes) == len(model.graph.node):
        return model
    return with_nodes(model, nodes, constants)
