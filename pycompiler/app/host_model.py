"""The ONNX model of a segment that runs on the host."""

from __future__ import annotations

import onnx

from ..emit.segments import Segment
from ..frontend.import_onnx import ImportedModel


def host_model(segment: Segment, imported: ImportedModel) -> bytes:
    """Return the serialized model of the segment's nodes, with the constants that they read."""
    values = imported.graph.values

    def info(name: str) -> onnx.ValueInfoProto:
        type = values[name].type
        elem = onnx.TensorProto.DataType.Value(type.elem.upper())
        return onnx.helper.make_tensor_value_info(name, elem, type.shape)

    data = {**imported.parameters, **imported.constants}
    protos = [imported.forms[node.name] for node in segment.nodes]
    constants = dict.fromkeys(name for proto in protos for name in proto.input if name in data)
    # Bodies of control flow read outer values too.
    constants |= dict.fromkeys(n for node in segment.nodes for n in node.inputs if n in data)
    graph = onnx.helper.make_graph(
        protos,
        "host",
        [info(name) for name in segment.inputs],
        [info(name) for name in segment.outputs],
        [onnx.numpy_helper.from_array(data[name], name) for name in constants],
    )
    called = {proto.op_type for proto in protos}
    functions = [one for one in imported.functions if one.name in called]
    facts = {"opset_imports": imported.opsets, "ir_version": imported.ir_version}
    return bytes(onnx.helper.make_model(graph, functions=functions, **facts).SerializeToString())
