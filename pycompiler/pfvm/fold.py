"""Constant propagation: values that depend only on constants are computed at compile time."""

from __future__ import annotations

from math import prod

import onnx
from onnx import helper, numpy_helper

from ..graph.graph import TensorType
from .declared import constant
from .device_functions import DEVICE
from .held import array_of, tensor_of
from .known_shapes import of_shape
from .random import is_random
from .session import results_of
from .with_nodes import with_nodes

#: Results with more elements stay operators, because a constant takes room in the app.
_MOST = 1 << 22


def fold_constants(model: onnx.ModelProto, types: dict[str, TensorType]) -> onnx.ModelProto:
    """Return ``model`` with nodes that read only constants replaced by their results."""
    data = {t.name: t for t in model.graph.initializer}
    given = {value.name for value in model.graph.output}
    kept: list[onnx.NodeProto] = []
    for node in model.graph.node:
        results = _results(node, data, types, model)
        if results is None or given & set(node.output):
            kept += [node] if results is None else _given(node, results, given, data)
        else:
            data.update(zip(node.output, results, strict=True))
    read = {name for node in kept for name in node.input} | given
    bodies = any(a.HasField("g") or a.graphs for node in kept for a in node.attribute)
    out = with_nodes(model, kept)
    del out.graph.initializer[:]
    made = {name for node in kept for name in node.output}
    out.graph.initializer.extend(
        tensor for name, tensor in data.items() if (name in read or bodies) and name not in made
    )
    return out


def _given(
    node: onnx.NodeProto,
    results: list[onnx.TensorProto],
    given: set[str],
    data: dict[str, onnx.TensorProto],
) -> list[onnx.NodeProto]:
    """Record constant results; those that the model gives become copies of a constant."""
    data.update(zip(node.output, results, strict=True))
    if node.op_type == "Identity":
        return [node]
    copies = []
    for name, tensor in zip(node.output, results, strict=True):
        if name in given:
            made = _copy(tensor, f"{name}.constant")
            data[made.name] = made
            copies.append(helper.make_node("Identity", [made.name], [name], node.name))
    return copies


def _copy(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    made = onnx.TensorProto()
    made.CopyFrom(tensor)
    made.name = name
    return made


def _results(
    node: onnx.NodeProto,
    data: dict[str, onnx.TensorProto],
    types: dict[str, TensorType],
    model: onnx.ModelProto,
) -> list[onnx.TensorProto] | None:
    """Return the results of a node, or None if they cannot or should not be computed."""
    if node.domain not in ("", "ai.onnx", DEVICE) or is_random(node, _false(node, data)):
        return None
    if any(a.HasField("g") or a.graphs for a in node.attribute):
        return None
    if node.op_type == "Constant":
        tensor = constant(node)
        return None if tensor is None else [_copy(tensor, node.output[0])]
    if node.op_type in ("Shape", "Size") and node.input[0] in types:
        return [numpy_helper.from_array(of_shape(node, types[node.input[0]].shape), node.output[0])]
    if not node.input or any(name and name not in data for name in node.input):
        return None
    if any(not name or prod(types[name].shape) > _MOST for name in node.output):
        return None
    elems = onnx.TensorProto.DataType
    kinds = {n: (elems.Value(types[n].elem.upper()), types[n].shape) for n in node.output}
    found = results_of(node, data, kinds, model)
    if found is None:
        return None  # an operator that the host runtime lacks stays a node
    return [tensor_of(found[name], name) for name in node.output]


def _false(node: onnx.NodeProto, data: dict[str, onnx.TensorProto]) -> list[str]:
    """Return the boolean inputs of ``node`` that are known to be false."""
    kind = onnx.TensorProto.BOOL
    known = [name for name in node.input if name in data and data[name].data_type == kind]
    return [name for name in known if not array_of(data[name]).any()]
