"""Constant propagation: values that depend only on constants are computed at compile time."""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import helper

from .declared import constant
from .held import tensor_of
from .known_shapes import Type, computed, known_types
from .names import bodies_of
from .with_nodes import with_nodes

#: Results with more elements stay operators, because a constant takes room in the app.
_MOST = 1 << 22


def fold_constants(
    model: onnx.ModelProto, most: int = _MOST, kept_ops: Collection[str] = ()
) -> onnx.ModelProto:
    """Return ``model`` with nodes that read only constants replaced by their results.

    Results of more than ``most`` elements, and those of ``kept_ops``, stay operators.
    """
    types = known_types(model.graph)
    data = {t.name: t for t in model.graph.initializer}
    given = {value.name for value in model.graph.output}
    kept: list[onnx.NodeProto] = []
    for node in model.graph.node:
        stays = node.op_type in kept_ops
        results = None if stays else _results(node, data, types, model, most)
        if results is None or given & set(node.output):
            kept += [node] if results is None else _given(node, results, given, data)
        else:
            data.update(zip(node.output, results, strict=True))
    read = {name for node in kept for name in node.input} | given
    bodies = any(map(bodies_of, kept))
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
    types: dict[str, Type],
    model: onnx.ModelProto,
    most: int,
) -> list[onnx.TensorProto] | None:
    """Return the results of a node, or None if they cannot or should not be computed."""
    if node.op_type == "Constant":
        tensor = constant(node)
        return None if tensor is None else [_copy(tensor, node.output[0])]
    found = computed(node, data, types, model, most)
    if found is None:
        return None
    return [tensor_of(array, name) for array, name in zip(found, node.output, strict=True)]
