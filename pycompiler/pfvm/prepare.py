"""The passes on every ONNX model before it becomes a graph or runs on the host."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import onnx
import onnx.checker
import onnx.helper
import onnx.shape_inference

from ..errors import PycompilerError, error, place_of
from ..graph.dtypes import HOST_ONLY, MNDtype, device_dtype, onnx_name, uncomputed
from ..graph.graph import TensorType
from .declared import shown_sizes, static_shape
from .device_functions import inlined
from .forms import check_attributes
from .held import without_data
from .known_shapes import known_types, with_known_shapes
from .names import nodes_of, separate_body_outputs
from .opsets import STANDARD, converted
from .shapes import check_shapes
from .source import source_of
from .well_formed import check_elements, check_loops, check_sizes

Step = Callable[[onnx.ModelProto], onnx.ModelProto]

_MEAN_VARIANCE = "MeanVarianceNormalization"
_LONGEST = 300  # characters shown of an error text of onnx, which appends whole nodes
#: How onnx's shape inference names the first node that it refuses.
_OF_A_NODE = re.compile(
    r"\(op_type:(?P<op>[^,)]+)(, node name: (?P<name>[^)]*))?\): "
    r"(\[\w+Error\] )?(?P<reason>.*?)( \(op_type:|$)"
)


def prepare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the checked model with functions inlined, at a known opset, with inferred types.

    P0108, P0111 to P0113.
    """
    check_sizes(model.graph)
    try:
        onnx.checker.check_model(without_data(model))
        model = inlined(model, all_of_them=False)
        check_attributes(model.graph)
        model = converted(model)
        inferred = with_known_shapes(with_axes(model))
    except PycompilerError:
        raise
    except Exception as problem:  # onnx raises many kinds for models that it did not expect
        raise refusal(problem, model) from problem
    for name, (_, shape) in known_types(inferred.graph).items():
        check_elements(name, shape)
    check_loops(inferred.graph)
    check_shapes(inferred)
    separate_body_outputs(inferred)
    return inferred


def until_settled(model: onnx.ModelProto, step: Step, most: int) -> onnx.ModelProto:
    """Return a prepared model after ``most`` steps, or after one that does not change it."""
    for _ in range(most):
        found = step(model)
        if found is model:
            break
        model = prepare(found)
    return model


def refusal(problem: Exception, model: onnx.ModelProto) -> PycompilerError:
    """Return what onnx found wrong as a diagnostic, with the operator if it names one."""
    reason = " ".join(str(problem).split()) or type(problem).__name__
    found = _OF_A_NODE.search(reason)
    if found is None:
        return error("P0108", reason=textwrap.shorten(reason, _LONGEST))
    op, name, reason = found["op"], found["name"] or "", found["reason"]
    nodes = [node for node in nodes_of(model.graph) if node.op_type == op]
    node = next((node for node in nodes if name and node.name == name), None)
    node = nodes[0] if node is None and len(nodes) == 1 else node
    result = next(iter(node.output), "") if node is not None else ""
    return error(
        "P0112",
        place=place_of(source_of(node)) if node is not None else None,
        op=op,
        node=name or result,
        name=result or "its result",
        reason=textwrap.shorten(reason, _LONGEST),
    )


def with_axes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the usual axes written down: without them, onnx infers no types."""
    if all(node.op_type != _MEAN_VARIANCE for node in model.graph.node):
        return model
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for node in out.graph.node:
        if node.op_type == _MEAN_VARIANCE and node.domain in STANDARD and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("axes", [0, 2, 3]))
    return out


def static_types(model: onnx.ModelProto, *, open_inside: bool = False) -> dict[str, TensorType]:
    """Return the static tensor type of every value of the main graph.

    P0103 if a shape is not static, P0109 or P0131 to P0136 if a value is no tensor of numbers. With
    ``open_inside`` only inputs and results must have static shapes; the others are left out.
    """
    graph = model.graph
    types = {t.name: TensorType(onnx_name(t.data_type), tuple(t.dims)) for t in graph.initializer}
    ports = {info.name for info in (*graph.input, *graph.output)}
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.name in types:
            continue
        if open_inside and info.name not in ports and static_shape(info) is None:
            _refuse_kind(info)
        else:
            types[info.name] = _static(info)
    for name, found in types.items():
        inner = found.elem in HOST_ONLY and name not in ports
        if device_dtype(found.elem) is MNDtype.UNKNOWN and not inner:
            raise uncomputed("value", name, found.elem, "numbers")
    for node in () if open_inside else graph.node:
        for name in node.output:
            if name and name not in types:
                raise error("P0103", name=name, shape=f"unknown, made by {node.op_type}")
    return types


def refuse_kinds(model: onnx.ModelProto) -> None:
    """Refuse a model that has sequences, optionals or maps. P0132 to P0134."""
    for info in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        _refuse_kind(info)


def _refuse_kind(info: onnx.ValueInfoProto) -> None:
    kind = info.type.WhichOneof("value")
    if kind not in ("tensor_type", None):
        raise uncomputed("value", info.name, kind.removesuffix("_type"), "numbers")


def _static(info: onnx.ValueInfoProto) -> TensorType:
    tensor = info.type.tensor_type
    kind = info.type.WhichOneof("value")
    _refuse_kind(info)
    elem = onnx_name(tensor.elem_type) if tensor.elem_type else ""
    if elem and device_dtype(elem) is MNDtype.UNKNOWN and elem not in HOST_ONLY:
        raise uncomputed("value", info.name, elem, "numbers")
    if kind is None or not tensor.HasField("shape"):
        raise error("P0103", name=info.name, shape="unknown")
    dims = tensor.shape.dim
    if not all(d.HasField("dim_value") for d in dims):
        raise error("P0103", name=info.name, shape=f"({shown_sizes(dims)})")
    return TensorType(onnx_name(tensor.elem_type), tuple(d.dim_value for d in dims))
