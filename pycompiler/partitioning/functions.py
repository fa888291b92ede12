"""The result as an ONNX model: a function for each piece, and for each composite inside of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx
from onnx import helper

from ..pfvm.names import keys, record_keys
from .pieces import Piece
from .source import Source

DEVICE, HOST, COMPOSITE = "pycompiler.device", "pycompiler.host", "pycompiler.composite"


def model_of_functions(source: Source, pieces: Sequence[Piece]) -> onnx.ModelProto:
    """Return a model that calls a function for each piece, in order; constants lie inside."""
    functions: list[onnx.FunctionProto] = []
    calls = []
    for piece in pieces:
        domain = DEVICE if piece.on_device else HOST
        nodes = list(_body(piece, source, functions))
        made = _function(domain, piece.name, piece.inputs, piece.outputs, nodes, source)
        functions.append(made)
        calls.append(_call(domain, piece.name, piece.inputs, piece.outputs))
    graph = source.model.graph
    crossing = dict.fromkeys(name for piece in pieces for name in piece.outputs)
    given = set(source.outputs)
    whole = helper.make_graph(
        calls,
        graph.name or "main",
        list(graph.input),
        list(graph.output),
        [source.constants[name] for name in source.outputs if name in source.constants],
        value_info=[source.info(name) for name in crossing if name not in given],
    )
    model = helper.make_model(whole, opset_imports=_opsets(source), functions=functions)
    model.ir_version = source.model.ir_version
    record_keys(model, *keys(source.model))
    return model


def _body(
    piece: Piece, source: Source, functions: list[onnx.FunctionProto]
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a piece; a composite becomes a function of its own."""
    plain = [n for unit in piece.units if not unit.is_composite for n in unit.numbers]
    yield from _constant_nodes(source.constants_of(plain))
    for unit in piece.units:
        if not unit.is_composite:
            yield from unit.nodes
            continue
        inputs, outputs = source.ends(unit.numbers)
        name = f"{unit.name}_{unit.numbers[-1]}"
        nodes = [*_constant_nodes(source.constants_of(unit.numbers)), *unit.nodes]
        functions.append(_function(COMPOSITE, name, inputs, outputs, nodes, source))
        yield _call(COMPOSITE, name, inputs, outputs)


def _constant_nodes(tensors: Sequence[onnx.TensorProto]) -> Iterator[onnx.NodeProto]:
    for tensor in tensors:
        yield helper.make_node("Constant", [], [tensor.name], value=tensor)


def _function(
    domain: str,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[onnx.NodeProto],
    source: Source,
) -> onnx.FunctionProto:
    return helper.make_function(domain, name, inputs, outputs, nodes, _opsets(source))


def _call(domain: str, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    return helper.make_node(name, inputs, outputs, name=name, domain=domain)


def _opsets(source: Source) -> list[onnx.OperatorSetIdProto]:
    own = [helper.make_opsetid(domain, 1) for domain in (DEVICE, HOST, COMPOSITE)]
    return [*source.model.opset_import, *own]
