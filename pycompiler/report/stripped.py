"""``l3ir_stripped.onnx``: the final graph as an ONNX model without data, for viewers of graphs.

Every node is an operator of the domain ``mncore``: the graph's operators are not ONNX's, even
where they have its names. Constants are inputs, because an initializer must have its data. What
the graph knows beside names and types stands in ``metadata_props``.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper

from ..graph.graph import MNGraph, MNNode, MNValue
from ..version import __version__

DOMAIN = "mncore"
_IR_VERSION, _OPSET = 10, 1


def stripped(graph: MNGraph) -> bytes:
    """Return the serialized model of a graph."""
    named: dict[str, str] = {}
    for key, name in graph.outputs:
        named.setdefault(name, key)
    results = [out for node in graph.nodes for out in node.outputs if out]
    given = [*graph.inputs, *(name for name in graph.constants if name not in graph.inputs)]
    constants = set(graph.constants)
    inputs = [_port(graph.values[name], constant=name in constants) for name in given]
    outputs = [_port(graph.values[name], key=key) for name, key in named.items()]
    inner = [_port(graph.values[name]) for name in results if name not in named]
    whole = helper.make_graph(
        [_node(node) for node in graph.nodes],
        graph.name or "graph",
        inputs,
        outputs,
        value_info=inner,
    )
    model = helper.make_model(
        whole,
        opset_imports=[helper.make_opsetid(DOMAIN, _OPSET), helper.make_opsetid("", 20)],
        producer_name="pycompiler",
        producer_version=__version__,
        ir_version=_IR_VERSION,
    )
    helper.set_model_props(model, {"target": graph.target, "stage": graph.stage.name.lower()})
    return bytes(model.SerializeToString(deterministic=True))


def _node(node: MNNode) -> onnx.NodeProto:
    proto = helper.make_node(node.op, node.inputs, node.outputs, name=node.name, domain=DOMAIN)
    for name, value in node.attributes:
        if value != ():  # ONNX has no empty list without a type
            proto.attribute.append(helper.make_attribute(name, value))
    facts = {
        "side": node.side.value,
        "source": node.source,
        "reason": node.reason,
        "segment": node.segment,
        "inplace": node.inplace,
        "slice": node.slice,
        "origin": node.origin,
    }
    _note(proto, facts)
    return proto


def _port(value: MNValue, *, key: str | None = None, constant: bool = False) -> onnx.ValueInfoProto:
    elem = onnx.TensorProto.DataType.Value(value.type.elem.upper())
    info = helper.make_tensor_value_info(value.name, elem, value.shape)
    facts = {
        "key": None if key == value.name else key,
        "constant": "yes" if constant else None,
        "dtype": value.dtype.value,
        "location": value.location.value,
        "layout": value.layout,
        "num_lw": value.num_lw,
        "addr": value.addr,
        "gene": ", ".join(value.gene).strip(", ") or None,
        "origin": value.origin,
        "copy_of": value.copy_of,
    }
    _note(info, facts)
    return info


def _note(proto: onnx.NodeProto | onnx.ValueInfoProto, facts: Mapping[str, object]) -> None:
    """Keep the facts that are known, as metadata and as the text that viewers show."""
    known = {name: str(fact) for name, fact in facts.items() if fact is not None}
    for name, fact in known.items():
        proto.metadata_props.add(key=name, value=fact)
    proto.doc_string = "\n".join(f"{name}: {fact}" for name, fact in known.items())
