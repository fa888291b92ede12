"""Refuses ONNX files whose parts contradict each other, before any pass reads them.

onnx's checker looks at most parts, but not at the text of names, at numbers that no table of ONNX
has, and at how much a small file may ask for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import onnx
import onnx_ir as ir
from onnx import helper

from ..errors import error
from .declared import constants
from .held import array_of, is_held
from .names import bodies_of, graphs, keys, nodes_of
from .registered import registered, updates

#: The most elements of a value. Their places in DRAM take the host some tens of bytes each.
MOST_ELEMENTS = 1 << 30
#: The most nodes after functions are inlined.
MOST_NODES = 1 << 17
#: The most trips of a Loop whose count is known.
MOST_TRIPS = 1 << 20
#: Deeper bodies than anyone writes: passes are recursive.
_DEEPEST = 32

_Known = onnx.TensorProto.DataType

_SPARSE = "is a sparse tensor, which is not read: make it dense"


def check_model(model: onnx.ModelProto) -> None:
    """Refuse a model that is not well formed (P0108) or too large (P0120)."""
    try:
        for reason in _faults(model):
            raise error("P0108", reason=reason)
    except UnicodeError as problem:
        reason = f"a name is not UTF-8: {problem.args[1][:40]!r}"
        raise error("P0108", reason=reason) from problem
    except RecursionError as problem:
        raise error("P0108", reason="bodies are nested too deeply") from problem
    _check_functions(model)


def check_elements(name: str, shape: tuple[int, ...]) -> None:
    """Refuse a value of more elements than the host can place. P0120."""
    count = prod(size for size in shape if size)  # an array of no elements has strides too
    if count > MOST_ELEMENTS:
        what = f"`{name}` of shape {shape} has {'axes for ' * (0 in shape)}{count} elements"
        raise error("P0120", what=what, limit=f"{MOST_ELEMENTS} elements of a value")


def check_sizes(graph: onnx.GraphProto) -> None:
    """Refuse negative sizes, for which onnx's shape inference may end the process. P0113."""
    for body in graphs(graph):
        for info in (*body.input, *body.output, *body.value_info):
            shape = tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
            if any(size < 0 for size in shape):
                raise error("P0113", name=info.name, shape=shape)


def _faults(model: onnx.ModelProto) -> Iterator[str]:
    _read_text(model, 0)
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and not 1 <= opset.version <= newest:
            yield f"opset {opset.version} is unknown; opsets 1 to {newest} are known"
    if not model.opset_import:
        yield "it names no opset"
    yield from _metadata_faults(model)
    for part in (model.graph, *model.functions):
        yield from _part_faults(part)


def _metadata_faults(model: onnx.ModelProto) -> Iterator[str]:
    """Yield what is wrong with the notes that this compiler leaves in a model."""
    given = [value.name for value in model.graph.input]
    held = {tensor.name for tensor in model.graph.initializer}
    results = {value.name for value in model.graph.output}
    try:
        inputs, outputs = keys(model)
        state, renewed = registered(model), updates(model)
        known = all(isinstance(name, str) for name in (*inputs, *outputs))
        known &= all(name in given and name in held for name in state)
        known &= all(isinstance(name, str) for name in state.values())
        known &= all(a in results and b in state for a, b in renewed.items())
        free = [name for name in given if name not in held and name not in state]
        known &= len(inputs) == len(free) and len(set(inputs)) == len(inputs)
        known &= len(outputs) == len(model.graph.output) and len(set(outputs)) == len(outputs)
    except (TypeError, ValueError, AttributeError, KeyError):
        known = False
    if not known:
        yield "its notes of inputs, outputs and registered values do not fit it"


def _part_faults(part: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for node in nodes_of(part):
        for attribute in node.attribute:
            yield from _attribute_faults(node, attribute)
            if attribute.ref_attr_name and isinstance(part, onnx.GraphProto):
                where = f"attribute `{attribute.name}` of {node.op_type} `{node.output[0]}`"
                yield f"{where} refers to `{attribute.ref_attr_name}`, but is in no function"
    if isinstance(part, onnx.FunctionProto):
        return
    for body in graphs(part):
        for info in (*body.input, *body.output, *body.value_info):
            elem = info.type.tensor_type.elem_type
            if info.type.HasField("tensor_type") and elem not in _Known.values():
                yield f"`{info.name}` has data type {elem}, which ONNX does not have"
        for sparse in body.sparse_initializer:
            yield f"`{sparse.values.name}` {_SPARSE}"
        for tensor in body.initializer:
            yield from tensor_faults(tensor)
        names = Counter(tensor.name for tensor in body.initializer)
        for name, count in names.items():
            if count > 1:
                yield f"{count} initializers are named `{name}`"


def _attribute_faults(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> Iterator[str]:
    where = f"attribute `{attribute.name}` of {node.op_type} `{node.name or node.output[:1]}`"
    if attribute.ref_attr_name:
        return
    kind = attribute.type
    if kind not in onnx.AttributeProto.AttributeType.values():
        yield f"{where} has type {kind}, which ONNX does not have"
        return
    try:
        value = helper.get_attribute_value(attribute)
    except (ValueError, TypeError) as problem:
        yield f"{where}: {problem}"
        return
    if isinstance(value, onnx.SparseTensorProto):
        yield f"{where} {_SPARSE}"
    if isinstance(value, onnx.TensorProto):
        yield from tensor_faults(value)
    typed = attribute.name in ("to", "dtype") and isinstance(value, int)
    if typed and value not in _Known.values():
        yield f"{where} is data type {value}, which ONNX does not have"


#: Bits of an element in ``raw_data``; texts have none.
_BITS = {int(k): k.bitwidth for k in ir.DataType if k.name not in ("UNDEFINED", "STRING")}


def tensor_faults(tensor: onnx.TensorProto) -> Iterator[str]:
    """Yield why the data of a tensor does not fit its type."""
    name = tensor.name
    if tensor.data_type not in _Known.values() or not tensor.data_type:
        yield f"tensor `{name}` has data type {tensor.data_type}, which ONNX does not have"
        return
    if any(size < 0 for size in tensor.dims):
        yield f"tensor `{name}` has a negative dimension: {tuple(tensor.dims)}"
        return
    if is_held(tensor):
        return
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        # A runtime would look for the file in the current folder.
        yield f"the data of tensor `{name}` lies in another file, which was not loaded"
        return
    count = prod(tensor.dims)
    if tensor.HasField("raw_data") and tensor.data_type in _BITS:
        wanted = (count * _BITS[tensor.data_type] + 7) // 8
        if len(tensor.raw_data) != wanted:
            yield (
                f"tensor `{name}` of shape {tuple(tensor.dims)} has {len(tensor.raw_data)} bytes "
                f"of data instead of {wanted}"
            )
    elif not tensor.HasField("raw_data"):
        given = max(len(getattr(tensor, field)) for field in _FIELDS)
        packed = 8 // min(8, _BITS.get(tensor.data_type, 8))
        twice = 2 if "COMPLEX" in _Known.Name(tensor.data_type) else 1
        if given not in (count * twice, -(-count // packed)):
            yield f"tensor `{name}` of shape {tuple(tensor.dims)} has {given} elements"


_FIELDS = (
    *("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"),
)


def _read_text(message: Any, depth: int) -> None:
    """Read every text of a message, which raises UnicodeDecodeError for other bytes. P0108."""
    if depth > 8 * _DEEPEST:
        raise error("P0108", reason="bodies are nested too deeply")
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts = [value] if hasattr(value, "ListFields") else value
            for part in parts:
                _read_text(part, depth + 1)
        elif field.cpp_type == field.CPPTYPE_STRING:
            for text in [value] if isinstance(value, str | bytes) else value:
                if isinstance(text, str):
                    text.encode()
                elif field.type == field.TYPE_STRING:
                    text.decode()  # protobuf gives the bytes of what is no text


def _check_functions(model: onnx.ModelProto) -> None:
    """Refuse functions that call themselves, and models that grow without bound. P0108, P0120."""
    bodies = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    sizes: dict[tuple[str, str, str], int] = {}
    open_ones: set[tuple[str, str, str]] = set()

    def size_of(part: onnx.GraphProto | onnx.FunctionProto) -> int:
        total = 0
        for node in nodes_of(part):
            called = (node.domain, node.op_type, getattr(node, "overload", ""))
            total += size(called) if called in bodies else 1
        return total

    def size(called: tuple[str, str, str]) -> int:
        if called in open_ones:
            raise error("P0108", reason=f"function `{called[1]}` calls itself")
        if len(open_ones) > 8 * _DEEPEST:
            raise error("P0108", reason=f"functions call each other {len(open_ones)} deep")
        if called not in sizes:
            open_ones.add(called)
            sizes[called] = size_of(bodies[called])
            open_ones.discard(called)
        return sizes[called]

    total = size_of(model.graph)
    if total > MOST_NODES:
        what = f"the model has {total} nodes with its functions inlined"
        raise error("P0120", what=what, limit=f"{MOST_NODES} nodes")


def check_loops(
    graph: onnx.GraphProto, known: Mapping[str, int] | None = None, around: int = 1
) -> None:
    """Refuse loops whose known count is absurd, and loops without an end. P0108, P0120.

    ``known`` has whole numbers from outside. The body of a loop runs ``around`` times.
    """
    trips = dict(known or {})
    held = constants(graph)
    for name, tensor in held.items():
        if tensor.data_type == _Known.INT64 and prod(tensor.dims) == 1:
            trips[name] = int(array_of(tensor).reshape(()))
    for node in graph.node:
        count = 1
        if node.op_type == "Loop" and node.input:
            # A count that a condition cuts short is no more than a bound, often the largest one.
            stays = _condition_stays(node, held)
            count = max(trips.get(node.input[0], 1), 1) if stays else 1
            name = node.name or next(iter(node.output), "")
            if count * around > MOST_TRIPS:
                within = f"{around} times " * (around > 1)
                what = f"Loop `{name}` makes {within}{count} trips"
                raise error("P0120", what=what, limit=f"{MOST_TRIPS} trips of a Loop")
            if not node.input[0] and stays and _begins(node, held):
                raise error("P0108", reason=f"Loop `{name}` has no count, and never stops")
        for body in bodies_of(node):
            check_loops(body, trips, count * around)


def _begins(node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether the condition of a Loop is known to be true at first."""
    if len(node.input) < 2 or not node.input[1]:
        return True
    first = held.get(node.input[1])
    return first is not None and bool(array_of(first).all())


def _condition_stays(node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether no trip of a Loop makes its condition false."""
    body = next(iter(bodies_of(node)), None)
    if body is None or not body.output:
        return True
    name, within = body.output[0].name, constants(body)
    makers = {made: inner for inner in body.node for made in inner.output}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    last = within.get(name, held.get(name))
    if last is not None:
        return bool(array_of(last).all())
    return len(body.input) > 1 and name == body.input[1].name
