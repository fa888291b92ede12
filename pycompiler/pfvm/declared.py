"""What a model declares: the types of its values, and its constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

#: Values with more elements decide no shape: shapes are short.
MOST = 1 << 12


def inferred(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """Return the model with inferred types; onnx's InferenceError if ``strict`` finds a fault."""
    # onnx would copy the data of long tensors four times.
    long = {at: t.raw_data for at, t in enumerate(model.graph.initializer) if prod(t.dims) > MOST}
    for at in long:
        model.graph.initializer[at].ClearField("raw_data")
    # onnx could follow data too (`data_prop`), but then it makes the numbers of a Range or a Cast
    # of any length, and refuses some broadcasts of data with two axes.
    try:
        found = onnx.shape_inference.infer_shapes(model, strict_mode=strict)
    finally:
        _give_data(model, long)
    _give_data(found, long)
    return found


def _give_data(model: onnx.ModelProto, data: Mapping[int, bytes]) -> None:
    for at, one in data.items():
        if one:
            model.graph.initializer[at].raw_data = one


def static_shape(info: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if it is not static."""
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    dims = tensor.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(int(dim.dim_value) for dim in dims)


def constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the tensors of the graph's initializers and Constant nodes."""
    given = {value.name for value in graph.input}
    found = {t.name: t for t in graph.initializer if t.name not in given}
    for node in graph.node:
        tensor = constant(node)
        if tensor is not None:
            found[node.output[0]] = tensor
    return found


def constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the tensor of a Constant node; None for other nodes, and for texts."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    attribute = node.attribute[0]
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return value if isinstance(value, onnx.TensorProto) else None
    kinds = {"value_float": "f4", "value_floats": "f4", "value_int": "i8", "value_ints": "i8"}
    if attribute.name not in kinds:
        return None
    return numpy_helper.from_array(np.array(value, kinds[attribute.name]), node.output[0])


def shown_sizes(dims: Iterable[onnx.TensorShapeProto.Dimension]) -> str:
    """Return the sizes of a shape for a diagnostic, `?` for those without a name."""
    sizes = (str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in dims)
    return ", ".join(sizes)
