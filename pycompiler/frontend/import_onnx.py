"""Imports ONNX models as MNGraph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from ..graph.dtypes import onnx_name
from ..graph.graph import Attribute, MNGraph, MNNode, MNValue, Side, TensorType
from ..machine import Target
from ..pfvm.device_functions import DEVICE, called
from ..pfvm.held import array_of, digest_of
from ..pfvm.host_groups import GROUP, group_of
from ..pfvm.lower import lower
from ..pfvm.names import bodies_of, fresh, graphs, keys, outer_reads, reserved
from ..pfvm.opsets import opset_of, understood
from ..pfvm.prepare import static_types
from ..pfvm.registered import detach, registered, updates
from ..pfvm.session import Array
from ..pfvm.source import source_of
from ..pfvm.stored_rows import written_whole
from ..pfvm.torch_calls import DOMAIN
from ..pfvm.update_order import LAST, ordered
from .lookup_nodes import with_own_tables


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """A graph, with constant data, ONNX nodes and opsets, which it does not hold itself.

    ``forms`` has the ONNX node of each node; ``parameters`` are the constants that became
    attributes, which they still read. ``registered`` has the registered name and the data of each
    registered value. ``updates`` maps the key of an output to the registered value whose new value
    it is. ``written_whole`` says why a value is written as a whole where only rows of it change.
    ``parts`` is the number of parts in which the batch goes through the graph.
    """

    graph: MNGraph
    constants: dict[str, Array]
    forms: dict[str, onnx.NodeProto]
    opsets: tuple[onnx.OperatorSetIdProto, ...]
    ir_version: int
    functions: tuple[onnx.FunctionProto, ...]
    parameters: dict[str, Array]
    registered: dict[str, tuple[str, Array]]
    updates: dict[str, str]
    written_whole: dict[str, str]
    parts: int


def import_onnx(
    model: onnx.ModelProto, target: Target, update: str = LAST, parts: int = 1
) -> ImportedModel:
    """Read a model with static shapes for a machine.

    ``update`` says when a training step computes new values. The batch goes through the model in
    ``parts``.

    Identity nodes and unused nodes are left out.
    P0103 for a dynamic shape, P0108 for an invalid model.
    """
    given, changed = registered(model), updates(model)
    model, defaults = detach(ordered(lower(model, target, parts), update))
    types = static_types(model)
    data = {t.name: array_of(t) for t in model.graph.initializer}
    nodes, alias = _without_identities(model.graph.node)
    input_keys, output_keys = keys(model)
    outputs = tuple(
        (key, alias.get(value.name, value.name))
        for key, value in zip(output_keys, model.graph.output, strict=True)
    )
    kept = _needed(list(_with_own_vectors(nodes, data)), {name for _, name in outputs})
    protos, opset = _named(kept), opset_of(model)
    made = (_node(name, proto, data, opset) for name, proto in protos.items())
    mn_nodes = tuple(with_own_tables(made, types, data))
    nans = {name for name, array in data.items() if _holds_nan(np.asarray(array))}
    mn_nodes = tuple(
        replace(node, side=Side.HOST, reason="a constant with a NaN")
        if nans.intersection(node.inputs) and node.op not in _SELECT
        else node
        for node in mn_nodes
    )
    used = {n for node in mn_nodes for n in (*node.inputs, *node.outputs) if n}
    used |= {name for _, name in outputs}
    constants = {name: np.asarray(array) for name, array in data.items() if name in used}
    inputs = (*input_keys, *given)
    graph = MNGraph(
        model.graph.name or "main",
        target.name,
        inputs=inputs,
        outputs=outputs,
        constants={name: digest_of(array)[:16] for name, array in constants.items()},
        nodes=mn_nodes,
        values={name: _record(name, types, constants) for name in sorted(used | set(inputs))},
    )
    read = {name for proto in protos.values() for name in proto.input}
    rest = {n: np.asarray(a) for n, a in data.items() if n in read and n not in constants}
    state = {t.name: (given[t.name], array_of(t)) for t in defaults}
    renewed = {
        key: changed[value.name]
        for key, value in zip(output_keys, model.graph.output, strict=True)
        if value.name in changed
    }
    opsets, functions = tuple(model.opset_import), tuple(model.functions)
    known = rest, state, renewed, written_whole(model), parts
    return ImportedModel(graph, constants, protos, opsets, model.ir_version, functions, *known)


def _without_identities(
    given: Iterable[onnx.NodeProto],
) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    """Return the other nodes, and the value of which each Identity's result is a name."""
    alias: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for node in given:
        if node.op_type == "Identity" and not node.domain:
            alias[node.output[0]] = alias.get(node.input[0], node.input[0])
        else:
            nodes.append(_rename_inputs(node, alias))
    return nodes, alias


def _node(name: str, proto: onnx.NodeProto, data: Mapping[str, Array], opset: int) -> MNNode:
    outputs, source = tuple(proto.output), source_of(proto)
    if (group := group_of(proto)) is not None:
        made = MNNode(name, GROUP, _reads(proto), outputs, source=source)
        return replace(made, side=Side.HOST, reason=f"its sizes depend on values ({group})")
    facts = (*((a.name, _attribute(a)) for a in proto.attribute), *_parameters(proto, data))
    return MNNode(name, _op(proto, opset), _reads(proto, data), outputs, facts, source=source)


def _op(proto: onnx.NodeProto, opset: int) -> str:
    """Return the operator's name, with the opset if its meaning there differs from the layers'."""
    if proto.domain == DOMAIN:
        return str(proto.op_type)
    if proto.domain == DEVICE:
        return called(proto)
    if proto.domain not in ("", "ai.onnx"):
        return f"{proto.domain}.{proto.op_type}"
    return str(proto.op_type) if understood(proto, opset) else f"{proto.op_type} of opset {opset}"


def _attribute(attribute: onnx.AttributeProto) -> Attribute:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, int | float):
        return value
    kinds = onnx.AttributeProto
    if attribute.type in (kinds.INTS, kinds.FLOATS):
        return tuple(value)
    if attribute.type == kinds.STRINGS:
        return tuple(text.decode(errors="replace") for text in value)
    return f"<{kinds.AttributeType.Name(attribute.type).lower()}>"


def _record(name: str, types: dict[str, TensorType], constants: dict[str, Array]) -> MNValue:
    if name in constants:
        array = constants[name]
        elem = onnx_name(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        found = TensorType(elem, array.shape)
        return MNValue(name, types.get(name, found))
    return MNValue(name, types[name])


#: Operators that copy elements of their operands with all bits, NaNs too.
_SELECT = frozenset({"Where"})


def _holds_nan(array: Array) -> bool:
    # A minimum with a NaN is one, and needs no second array.
    return array.dtype.kind == "f" and array.size > 0 and bool(np.isnan(array.min()))


def _with_own_vectors(
    nodes: Sequence[onnx.NodeProto], data: dict[str, Array]
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes; each gets constants of its own for vectors that several of them read.

    A vector has few words, but it ties the layouts of all nodes that read it. Models of which
    biases are still zeros have one vector for all of them. ``data`` gets the new constants.
    """
    taken = {*data, *(name for node in nodes for name in (*node.input, *node.output))}
    read = set[str]()
    for node in nodes:
        own = dict[str, str]()
        for index, name in enumerate(node.input):
            array = data.get(name)
            if array is None or index in PARAMETERS.get(node.op_type, {}) or name in own:
                continue
            if array.dtype.kind == "f" and 1 < array.size == max(array.shape):
                if name in read:
                    own[name] = reserved(name, taken)
                    data[own[name]] = array
                read.add(name)
        yield _rename_inputs(node, own) if own else node


def _rename_inputs(node: onnx.NodeProto, alias: dict[str, str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for index, name in enumerate(copy.input):
        copy.input[index] = alias.get(name, name)
    for body in bodies_of(copy):
        for part in graphs(body):
            for given in part.output:
                given.name = alias.get(given.name, given.name)
            for inner in part.node:
                for index, name in enumerate(inner.input):
                    inner.input[index] = alias.get(name, name)
    return copy


#: Inputs that are parameters of an operator rather than data. If constant, they become attributes.
PARAMETERS: dict[str, dict[int, str]] = {
    "ReduceSum": {1: "axes"},
    "ReduceMax": {1: "axes"},
    "ReduceMin": {1: "axes"},
    "ReduceProd": {1: "axes"},
    "ReduceMean": {1: "axes"},
    "Reshape": {1: "shape"},
    "Squeeze": {1: "axes"},
    "Unsqueeze": {1: "axes"},
    "Expand": {1: "shape"},
    "Slice": {1: "starts", 2: "ends", 3: "axes", 4: "steps"},
    "Split": {1: "split"},
    "Pad": {1: "pads", 2: "constant_value", 3: "axes"},
}


def _parameters(
    node: onnx.NodeProto, data: Mapping[str, Array]
) -> tuple[tuple[str, Attribute], ...]:
    """Return the parameters of ``node`` if all of them are constants, otherwise nothing."""
    wanted = PARAMETERS.get(node.op_type, {}) if not node.domain else {}
    given = {k: node.input[k] for k in wanted if k < len(node.input) and node.input[k]}
    if not all(name in data for name in given.values()):
        return ()
    out: list[tuple[str, Attribute]] = []
    for index, name in given.items():
        array = data[name]
        flat = tuple(array.reshape(-1).tolist())
        out.append((wanted[index], flat if array.ndim else flat[0]))
    return tuple(out)


def _reads(node: onnx.NodeProto, data: Mapping[str, Array] | None = None) -> tuple[str, ...]:
    """Return the node's inputs, followed by the outer values that its bodies read.

    With ``data``, the inputs that became attributes are left out.
    """
    own = list(node.input)
    if data is not None and _parameters(node, data):
        wanted = PARAMETERS[node.op_type]
        own = [name for index, name in enumerate(own) if index not in wanted]
    return (*own, *(name for name in outer_reads(node) if name not in own))


def _needed(nodes: list[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    wanted, kept = set(wanted), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted.update(_reads(node))
            kept.append(node)
    return kept[::-1]


def _named(nodes: Iterable[onnx.NodeProto]) -> dict[str, onnx.NodeProto]:
    named: dict[str, onnx.NodeProto] = {}
    for node in nodes:
        name = fresh(node.name or f"{node.op_type}_{len(named)}", named)
        node.name = name
        named[name] = node
    return named
