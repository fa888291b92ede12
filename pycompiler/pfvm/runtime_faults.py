"""Nodes that onnxruntime computes otherwise than ONNX says. onnx's own evaluator runs them."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from .declared import inferred
from .names import bodies_of, graphs, nodes_of

#: Operators that onnxruntime computes for integers as for reals; an Einsum may sum them.
_AS_REALS = ("Pow", "ReduceProd", "Einsum")
_POOLS = ("AveragePool", "LpPool", "MaxPool")


def faulty(model: onnx.ModelProto) -> list[bool]:
    """Return for each node of the graph whether onnxruntime would compute it otherwise."""
    used = {node.op_type for node in nodes_of(model.graph)}
    if not used.intersection([*_AS_REALS, *_POOLS, "MaxUnpool", "DFT", "Shrink"]):
        return [False] * len(model.graph.node)
    kinds = kinds_of(inferred(model).graph)
    return [_is_faulty(node, kinds) for node in model.graph.node]


def kinds_of(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the element types of all values of a graph with inferred types, and of its bodies."""
    parts = list(graphs(graph))
    kinds = {tensor.name: tensor.data_type for part in parts for tensor in part.initializer}
    infos = (info for part in parts for info in (*part.input, *part.value_info, *part.output))
    return kinds | {info.name: info.type.tensor_type.elem_type for info in infos}


def _is_faulty(node: onnx.NodeProto, kinds: Mapping[str, int]) -> bool:
    """Whether a node is, or a node of its bodies.

    onnxruntime places the elements of a MaxUnpool with a given shape as if it had none, pads a pool
    with gaps as if it had none, divides an inverse DFT of doubles by a length that it rounds to a
    single, as it rounds doubles in a Shrink, and computes powers and products of integers as
    doubles.
    """
    facts = {a.name: a for a in node.attribute}
    if node.op_type in _AS_REALS:
        return kinds.get(node.output[0]) in (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
    if node.op_type in _POOLS:
        return "auto_pad" in facts and b"SAME" in facts["auto_pad"].s and "dilations" in facts
    if node.op_type in ("DFT", "Shrink"):
        rounds = node.op_type == "Shrink" or ("inverse" in facts and bool(facts["inverse"].i))
        return rounds and kinds.get(node.input[0]) == onnx.TensorProto.DOUBLE
    if node.op_type == "MaxUnpool" and len(node.input) > 2:
        return True
    return any(_is_faulty(inner, kinds) for body in bodies_of(node) for inner in body.node)
