"""Operators that ONNX itself defines by others: their functions are written out.

An operator of this table has no layer and no rewriting rule here, or only for some forms. ONNX's
standard has a function of simpler operators for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.defs
from onnx import numpy_helper

from ..graph.dtypes import onnx_elem_type
from ..graph.graph import TensorType
from .device_functions import inlined
from .names import nodes_of
from .opsets import STANDARD, opset_of

#: Each may be taken apart; forms that a layer or a rule accepts are not.
WRITTEN_OUT = frozenset(
    [
        *("Attention", "BlackmanWindow", "CastLike", "CausalConvWithState", "CenterCropPad"),
        *("DynamicQuantizeLinear", "GreaterOrEqual", "HammingWindow", "HannWindow"),
        *("LayerNormalization", "LessOrEqual", "LinearAttention", "MeanVarianceNormalization"),
        *("NegativeLogLikelihoodLoss", "PRelu", "ReduceL1", "ReduceL2", "ReduceLogSum"),
        *("ReduceLogSumExp", "ReduceSumSquare", "Shrink", "Softsign", "SoftmaxCrossEntropyLoss"),
        *("SwiGLU", "ThresholdedRelu"),
    ]
)
#: The same for operators of other domains of ONNX.
_OTHERS = frozenset({("ai.onnx.preview", "FlexAttention")})
_DOMAIN = "pycompiler.function"


def is_written_out(node: onnx.NodeProto) -> bool:
    """Whether the operator of a node may be taken apart."""
    if node.domain in STANDARD:
        return node.op_type in WRITTEN_OUT
    return (node.domain, node.op_type) in _OTHERS


def write_out_functions(model: onnx.ModelProto, types: dict[str, TensorType]) -> onnx.ModelProto:
    """Return the model with functions of ONNX in place of their operators.

    ``types`` are the types of its values.
    """
    versions = {opset.domain or "": int(opset.version) for opset in model.opset_import}
    versions[""] = opset_of(model)
    functions: list[onnx.FunctionProto] = []
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for number, node in enumerate(out.graph.node):
        if not is_written_out(node):
            continue
        _give_defaults(node, versions)
        function = _function(node, types, versions)
        if function is None:
            continue
        name = f"{node.op_type}_{number}"
        function.name, function.domain = name, _DOMAIN
        node.op_type, node.domain = name, _DOMAIN
        functions.append(function)
    if not functions:
        return model
    out.functions.extend(functions)
    out.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
    made = inlined(out, all_of_them=False)
    for node in made.graph.node:
        while node.input and not node.input[-1]:  # an operand that the call left out
            node.input.pop()
    left = [opset for opset in made.opset_import if opset.domain != _DOMAIN]
    del made.opset_import[:]
    made.opset_import.extend(left)
    return made


def _give_defaults(node: onnx.NodeProto, versions: dict[str, int]) -> None:
    """Write down the attributes that a node leaves to ONNX: inlining a function drops those."""
    domain = "" if node.domain in STANDARD else node.domain
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 0), domain)
    except onnx.defs.SchemaError:
        return
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type:
            node.attribute.append(attribute.default_value)


def _function(
    node: onnx.NodeProto, types: dict[str, TensorType], versions: dict[str, int]
) -> onnx.FunctionProto | None:
    """Return ONNX's function for a node at the opset of the model; None if it has none."""
    domain = "" if node.domain in STANDARD else node.domain
    version = versions.get(domain, 0)
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    infos = []
    for name in node.input:
        type = onnx.TypeProto()
        if name:
            if name not in types:
                return None
            elem, shape = onnx_elem_type(types[name].elem), types[name].shape
            type = onnx.helper.make_tensor_type_proto(elem, shape)
        infos.append(type.SerializeToString())
    found = _body(schema, node, infos, versions[""])
    if not found:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(found)
    for opset in function.opset_import:
        if not opset.domain and opset.version < versions[""]:
            opset.version = versions[""]
    kinds = {types[name].elem for name in (*node.input, *node.output) if name in types}
    if "double" in kinds and "float" not in kinds:
        _in_doubles(function)
    return function


def _body(schema: Any, node: onnx.NodeProto, infos: list[bytes], opset: int) -> bytes:
    """Return the function of a schema as bytes, for operands of the types ``infos``."""
    newest = max((v for v in schema.function_opset_versions if v <= opset), default=0)
    contexts = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if schema.has_context_dependent_function and contexts:
        data = node.SerializeToString()
        made = schema.get_context_dependent_function_with_opset_version(max(contexts), data, infos)
        return bytes(made)
    if schema.has_function and newest:
        return bytes(schema.get_function_with_opset_version(newest))
    return b""


def _in_doubles(function: onnx.FunctionProto) -> None:
    """Compute in doubles, in place, what a function of ONNX computes in singles."""
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    for attribute in (a for node in nodes_of(function) for a in node.attribute):
        if attribute.name == "to" and attribute.i == single:
            attribute.i = double
        elif attribute.t.data_type == single:
            wide = numpy_helper.to_array(attribute.t).astype(np.float64)
            attribute.t.CopyFrom(numpy_helper.from_array(wide))
