"""Constant propagation: values that depend only on constants are computed at compile time."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import PycompilerError
from ..graph.graph import TensorType
from .known_shapes import of_shape
from .random import is_random
from .session import Array, HostSession
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
            constant = onnx.TensorProto()
            constant.CopyFrom(tensor)
            constant.name = f"{name}.constant"
            data[constant.name] = constant
            copies.append(helper.make_node("Identity", [constant.name], [name], node.name))
    return copies


def _results(
    node: onnx.NodeProto,
    data: dict[str, onnx.TensorProto],
    types: dict[str, TensorType],
    model: onnx.ModelProto,
) -> list[onnx.TensorProto] | None:
    """Return the results of a node, or None if they cannot or should not be computed."""
    if node.domain not in ("", "ai.onnx") or is_random(node, _false(node, data)):
        return None
    if any(a.HasField("g") or a.graphs for a in node.attribute):
        return None
    if node.op_type == "Constant":
        found = node.attribute[0]
        if found.name != "value":
            return None
        tensor = onnx.TensorProto()
        tensor.CopyFrom(found.t)
        tensor.name = node.output[0]
        return [tensor]
    if node.op_type in ("Shape", "Size") and node.input[0] in types:
        return [numpy_helper.from_array(of_shape(node, types[node.input[0]].shape), node.output[0])]
    if not node.input or any(name and name not in data for name in node.input):
        return None
    if any(not name or prod(types[name].shape) > _MOST for name in node.output):
        return None
    try:
        return _run(node, data, types, model)
    except PycompilerError:
        return None  # an operator that the host runtime lacks stays a node


def _false(node: onnx.NodeProto, data: dict[str, onnx.TensorProto]) -> list[str]:
    """Return the boolean inputs of ``node`` that are known to be false."""
    kind = onnx.TensorProto.BOOL
    known = [name for name in node.input if name in data and data[name].data_type == kind]
    return [name for name in known if not numpy_helper.to_array(data[name]).any()]


def _run(
    node: onnx.NodeProto,
    data: dict[str, onnx.TensorProto],
    types: dict[str, TensorType],
    model: onnx.ModelProto,
) -> list[onnx.TensorProto]:
    names = dict.fromkeys(name for name in node.input if name)
    outputs = [
        helper.make_tensor_value_info(
            name, onnx.TensorProto.DataType.Value(types[name].elem.upper()), types[name].shape
        )
        for name in node.output
    ]
    graph = helper.make_graph([node], "constant", [], outputs, [data[name] for name in names])
    small = helper.make_model(graph, opset_imports=model.opset_import)
    small.ir_version = model.ir_version
    session = HostSession(small.SerializeToString(), f"{node.op_type} of constants")
    found: dict[str, Array] = session.run({})
    return [numpy_helper.from_array(np.asarray(found[name]), name) for name in node.output]
