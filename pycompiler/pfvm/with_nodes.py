"""A model with other nodes."""

from __future__ import annotations

from collections.abc import Iterable

import onnx


def with_nodes(
    model: onnx.ModelProto,
    nodes: Iterable[onnx.NodeProto],
    constants: Iterable[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    """Return a copy of a model that has ``nodes`` in place of its own, and more constants."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    out.graph.initializer.extend(constants)
    return out
