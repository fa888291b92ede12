"""Operators that are made of others: Softmax, LayerNormalization and their kin.

A table of operator names and how each is written with operators that the device has layers for.
Bodies of control flow and functions are left alone.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import numpy_helper

from ...graph.graph import TensorType
from ..names import all_names
from . import losses, norms, picking
from .writer import FLOATS, Writer

COMPOSITES: dict[str, Callable[[Writer], bool]] = {
    "Softmax": norms.softmax,
    "LogSoftmax": norms.log_softmax,
    "LayerNormalization": norms.layer_norm,
    "RMSNormalization": norms.rms_norm,
    "BatchNormalization": norms.batch_norm,
    "ReduceMean": norms.mean,
    "Gemm": norms.gemm,
    "Gather": picking.gather,
    "GatherElements": picking.gather_elements,
    "GatherND": picking.gather_nd,
    "OneHot": picking.one_hot,
    "ArgMax": picking.extreme_index,
    "ArgMin": picking.extreme_index,
    "SoftmaxCrossEntropyLoss": losses.cross_entropy,
    "NegativeLogLikelihoodLoss": losses.nll,
}

#: Rules for which the first input need be no float.
_ANY = frozenset({"Gather", "GatherND", "OneHot"})


def decompose(model: onnx.ModelProto, types: dict[str, TensorType], rows: int) -> onnx.ModelProto:
    """Return ``model`` with what the table names written out; ``types`` are those of its values.

    ``rows`` is the length of the longest table that is picked from by address.
    """
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if opset < 18:  # before, axes of reductions were attributes
        return model
    data = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                data[node.output[0]] = attribute.t
    taken = all_names(model.graph)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for node in model.graph.node:
        written = _write(node, types, taken, data, rows)
        if written is None:
            nodes.append(node)
        else:
            nodes += written.nodes
            constants += written.constants
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    out.graph.initializer.extend(constants)
    return out


def _write(
    node: onnx.NodeProto,
    types: dict[str, TensorType],
    taken: set[str],
    data: dict[str, onnx.TensorProto],
    rows: int,
) -> Writer | None:
    rule = COMPOSITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if rule is None or (types[node.input[0]].elem not in FLOATS and node.op_type not in _ANY):
        return None
    read = {name: numpy_helper.to_array(data[name]) for name in node.input if name in data}
    write = Writer(node, types, taken, read, rows)
    if node.op_type == "ReduceMean" and len(node.input) > 1 and node.input[1]:
        if node.input[1] not in data:
            return None
        rank = len(types[node.input[0]].shape)
        axes = [int(a) % rank for a in numpy_helper.to_array(data[node.input[1]]).reshape(-1)]
        if not axes:
            axes = [] if write.attribute("noop_with_empty_axes", 0) else list(range(rank))
        return write if norms.mean_over(write, axes, int(write.attribute("keepdims", 1))) else None
    return write if rule(write) else None
