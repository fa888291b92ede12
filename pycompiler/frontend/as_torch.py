"""Compares what the way to ONNX makes with torch's own trace: dtypes and shapes.

A result that has another dtype is converted where that gives the same numbers. Every other
difference is refused, or the operator becomes a call of the host (see :mod:`.host_calls`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import onnx
import onnx_ir as ir
import torch
from torch.fx.traceback import get_current_meta
from torch.utils._pytree import tree_leaves

from ..errors import PycompilerError, SourceLocation, error, place_of
from ..graph.dtypes import onnx_elem_type, onnx_name
from ..pfvm.declared import static_shape
from ..pfvm.source import own_line
from .host_calls import host_call, in_words, may_be_called, torchs_own
from .torch_dtypes import TORCH_DTYPES, dtype_name

#: Constants with more elements say nothing about shapes.
_MOST = 64
_CONVERTED = torch.ops.prims.convert_element_type.default
_UNKNOWN_SIZES = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


def mendable(made: torch.dtype, wanted: torch.dtype) -> bool:
    """Whether numbers of the dtype ``made`` become those of ``wanted`` by a conversion.

    They were computed in a wider dtype of the same kind, or are truth values.
    """
    if made is torch.bool:
        return wanted is torch.uint8
    if made.is_complex or wanted.is_complex or wanted is torch.bool:
        return False
    return made.is_floating_point == wanted.is_floating_point and made.itemsize > wanted.itemsize


def like_torch(
    table: Mapping[Any, Callable[..., Any]], *, leave: bool = False
) -> dict[Any, Callable[..., Any]]:
    """Return decompositions whose results have the dtypes and shapes of torch's own operators.

    With ``leave``, they have its strides too, and an operator that has other results is left as it
    is. Otherwise the host calls it, or it is refused (P0140).
    """
    return {op: _checked(op, made_of, leave) for op, made_of in table.items()}


def _checked(op: Any, made_of: Callable[..., Any], leave: bool) -> Callable[..., Any]:
    if not isinstance(op, torch._ops.OpOverload) or set(_UNKNOWN_SIZES) & set(op.tags):
        return made_of

    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            found = made_of(*args, **kwargs)
        except PycompilerError as problem:  # it has no form for these operands
            problem.place = problem.place or traced_place(get_current_meta())
            return _instead(op, args, kwargs, leave, problem)
        if found is NotImplemented or found is None:
            return found
        try:
            wanted = torchs_own(op, args, kwargs)
        except Exception:  # torch has no shapes for these operands
            return found
        pairs = list(zip(_leaves(found), _leaves(wanted), strict=False))
        for made, like in pairs:
            if isinstance(made, torch.Tensor) and isinstance(like, torch.Tensor):
                same = made.dtype == like.dtype or mendable(made.dtype, like.dtype)
                if made.shape != like.shape or not same:
                    refused = _refused(op, in_words(made), in_words(like))
                    return _instead(op, args, kwargs, leave, refused)
        mended = [_mended(made, like, strides=leave) for made, like in pairs]
        return mended[0] if isinstance(found, torch.Tensor) else tuple(mended)

    return checked


def _mended(made: Any, like: Any, *, strides: bool) -> Any:
    """Return ``made`` with the dtype of ``like``; with ``strides``, also with its order of axes."""
    if not (isinstance(made, torch.Tensor) and isinstance(like, torch.Tensor)):
        return made
    found = made if made.dtype == like.dtype else made.to(like.dtype)
    steps = like.stride()
    known = all(isinstance(step, int) for step in (*like.shape, *steps, *found.stride()))
    if not strides or not known or found.stride() == steps:
        return found
    order = sorted(range(like.ndim), key=lambda axis: (-steps[axis], axis))
    back = sorted(range(like.ndim), key=lambda place: order[place])
    return found.permute(order).contiguous().permute(back)


def _leaves(value: Any) -> list[Any]:
    return tree_leaves(value, is_leaf=lambda one: one is None)


def _instead(op: Any, args: Any, kwargs: Any, leave: bool, problem: PycompilerError) -> Any:
    if leave:
        return NotImplemented
    found = host_call(op)(*args, **kwargs) if may_be_called(op) else NotImplemented
    if found is NotImplemented:
        raise problem
    return found


def _refused(op: Any, made: str, wanted: str, node: torch.fx.Node | None = None) -> PycompilerError:
    place = traced_place(get_current_meta() if node is None else node.meta)
    return error("P0140", place=place, op=op, made=made, wanted=wanted)


def traced_place(meta: Mapping[str, Any]) -> SourceLocation | None:
    """Find the line of a traced operator, or of the one that torch is decomposing."""
    return place_of(own_line(meta.get("stack_trace") or ""))


def differing(converted: torch.onnx.ONNXProgram) -> dict[Any, PycompilerError]:
    """Convert results of the model that have another dtype than torch's, in place.

    Return the operators whose results cannot be mended, with the refusal of each.
    """
    graph = converted.model.graph
    found: dict[Any, PycompilerError] = {}
    program = converted.exported_program
    assert program is not None
    wanted = _wanted(program)
    versions = dict(converted.model.opset_imports)
    given = (*graph.inputs, *graph.initializers.values())
    types = {value.name or "": _declared(value) for value in given}
    for node in list(graph):
        inferred = _inferred(node, types, versions)
        for value in node.outputs:
            name = value.name or ""
            types[name] = made = inferred.get(name)
            if name not in wanted:
                continue
            dtype, shape, source = wanted[name]
            elem = onnx_elem_type(_ELEMS[dtype])
            types[name] = onnx.helper.make_tensor_type_proto(elem, shape)
            if made is None or not made.tensor_type.elem_type:
                continue
            own = TORCH_DTYPES.get(onnx_name(made.tensor_type.elem_type))
            sizes = static_shape(onnx.ValueInfoProto(type=made))
            same = sizes is None or sizes == shape
            if same and own == dtype:
                continue
            if same and own is not None and mendable(own, dtype):
                _cast(graph, node, value, elem)
                continue
            if source.target is operator.getitem:
                source = source.all_input_nodes[0]
            has = f"{dtype_name(own or dtype)} {shape if sizes is None else sizes}"
            wants = f"{dtype_name(dtype)} {shape}"
            found.setdefault(source.target, _refused(source.target, has, wants, source))
    _convert_results(graph, program, types)
    return found


def _convert_results(
    graph: ir.Graph,
    program: torch.export.ExportedProgram,
    types: Mapping[str, onnx.TypeProto | None],
) -> None:
    """Convert results as torch's exporter means to: it drops a conversion of the last operator."""
    results: Any = program.graph.output_node().args[0]
    for place, source in enumerate(results):
        if not isinstance(source, torch.fx.Node) or source.target is not _CONVERTED:
            continue
        value, operand = graph.outputs[place], source.all_input_nodes[0].name
        type, maker = types.get(value.name or ""), value.producer()
        if type is None or maker is None or operand != value.name:
            continue
        elem = onnx_elem_type(_ELEMS[source.meta["val"].dtype])
        if elem != type.tensor_type.elem_type:
            _cast(graph, maker, value, elem)


def _wanted(
    program: torch.export.ExportedProgram,
) -> dict[str, tuple[torch.dtype, tuple[int, ...], torch.fx.Node]]:
    """Return what torch's trace has, by the names that the exporter gives its values."""
    found = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        several = isinstance(value, list | tuple)
        for place, one in enumerate(value if several else [value]):
            if not isinstance(one, torch.Tensor) or not all(isinstance(n, int) for n in one.shape):
                continue
            pairs = one.is_complex()
            dtype = one.dtype.to_real() if pairs else one.dtype
            if dtype in _ELEMS:
                name = f"{node.name}__{place}" if several else node.name
                found[name] = dtype, (*one.shape, 2) if pairs else tuple(one.shape), node
    return found


_ELEMS = {dtype: elem for elem, dtype in TORCH_DTYPES.items()}


def _declared(value: ir.Value) -> onnx.TypeProto | None:
    if value.dtype is None or value.shape is None or not value.shape.is_static():
        return None
    return onnx.helper.make_tensor_type_proto(int(value.dtype), list(value.shape.numpy()))


def _inferred(
    node: ir.Node, types: Mapping[str, onnx.TypeProto | None], versions: Mapping[str, int]
) -> Mapping[str, onnx.TypeProto]:
    """Return what ONNX says of the results of a node; nothing where it does not say it."""
    operands = [value for value in node.inputs if value is not None]
    given = {value.name or "": types.get(value.name or "") for value in operands}
    known = {name: type for name, type in given.items() if type is not None}
    bodies = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    if node.domain not in ("", "ai.onnx") or len(known) < len(given):
        return {}
    if any(attribute.type in bodies for attribute in node.attributes.values()):
        return {}
    data = {}
    for value in operands:
        held = ir.convenience.get_const_tensor(value)
        if held is not None and held.size <= _MOST:
            tensor = ir.serde.serialize_tensor(held)
            tensor.name = value.name or ""
            data[tensor.name] = tensor
    version = versions.get("", 0)
    opsets = [onnx.helper.make_opsetid("", version)]
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
        proto = ir.serde.serialize_node(node)
        return onnx.shape_inference.infer_node_outputs(
            schema, proto, known, data, opset_imports=opsets
        )
    except Exception:  # onnx raises many kinds
        return {}


def _cast(graph: ir.Graph, node: ir.Node, value: ir.Value, elem: int) -> None:
    """Convert a result; the new value takes its place and name."""
    copy = ir.Value(name=value.name, shape=value.shape, type=ir.TensorType(ir.DataType(elem)))
    cast = ir.Node(
        "", "Cast", [value], [ir.AttrInt64("to", elem)], outputs=[copy], name=f"{value.name}.Cast"
    )
    cast.metadata_props.update(node.metadata_props)
    value.replace_all_uses_with(copy, replace_graph_outputs=True)
    cast.replace_input_with(0, value)
    value.name, value.type = f"{value.name}.made", None
    graph.insert_after(node, cast)
