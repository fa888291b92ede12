"""Small changes of a captured program, in place, around faults of torch's exporter."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from .memory import read_owners
from .plain_operators.replacements import not_expressible
from .slice_writes import join_writes

_ATEN = torch.ops.aten
_NONE = torch._C.parse_schema("none() -> ()")
#: Second names of operators. The exporter converts operands of two dtypes only under the first.
_SAME = {
    **{"divide": "div", "true_divide": "div", "multiply": "mul", "subtract": "sub"},
    **{"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"},
    "not_equal": "ne",
}

#: Operators that the exporter writes wrongly if their result has no elements.
_NEVER_EMPTY = {
    getattr(_ATEN, name).default
    for name in ("group_norm", "im2col", "native_group_norm", "pixel_shuffle", "pixel_unshuffle")
}

#: Operators whose argument `dtype` is the type of their operand. The exporter casts afterwards.
_CAST_FIRST = {
    getattr(_ATEN, name)
    for name in (
        *("sum", "nansum", "mean", "prod", "cumsum", "cumprod", "norm", "softmax", "log_softmax"),
        *("special_softmax", "special_log_softmax", "linalg_norm", "linalg_vector_norm"),
        "linalg_matrix_norm",
    )
}
#: Operators for which the exporter has no type promotion.
_PROMOTED = {_ATEN.pow, _ATEN.rsub, _ATEN.stack}
#: Operators whose bounds torch ignores beyond the range of integers. The exporter wraps them.
_BOUNDED = {_ATEN.clamp, _ATEN.clamp_min, _ATEN.clamp_max, _ATEN.clip, _ATEN.hardtanh}


def _same_operators() -> dict[Any, Any]:
    found = {}
    for second, first in _SAME.items():
        own, other = getattr(_ATEN, second), getattr(_ATEN, first)
        for overload in set(own.overloads()) & set(other.overloads()):
            found[getattr(own, overload)] = getattr(other, overload)
    return found


#: A view of memory need not be one once operators before it are taken apart: strides then differ.
_VIEWS = (_ATEN.view.default, _ATEN._unsafe_view.default)
_FIRST_NAMES = {**_same_operators(), **dict.fromkeys(_VIEWS, _ATEN.reshape.default)}


def with_simpler_calls(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Give operators their first names, and make some results without elements constants.

    Writes in place become new values first, so that their operators have one name.
    """
    if any(map(_writes, program.graph_module.graph.nodes)):
        program = program.run_decompositions({})
    graph = program.graph_module.graph
    with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):
        join_writes(graph)
    for owner in read_owners(graph):
        values = [node.meta.get("val") for node in owner.all_input_nodes]
        if not all(x.is_contiguous() for x in values if isinstance(x, torch.Tensor)):
            # torch's fake tensors do not always have the strides of its kernels then.
            raise not_expressible("aten.as_strided.default of operands that are not in order")
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        node.target = _FIRST_NAMES.get(node.target, node.target)
        _floor(node)
        if node.target is _ATEN._conj.default and isinstance(node.args[0], complex):
            _set_to(node, node.args[0].conjugate())
            continue
        value = node.meta.get("val")
        _convert(node, value)
        if node.target in _NEVER_EMPTY and isinstance(value, torch.Tensor) and _known_empty(value):
            node.target = _ATEN.full.default
            node.args, node.kwargs = (list(value.shape), 0), {"dtype": value.dtype}
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program


def _convert(node: torch.fx.Node, value: Any) -> None:
    """Cast the operands of a call, or bound its numbers, as torch does within its operators."""
    packet = getattr(node.target, "overloadpacket", None)
    if packet in _CAST_FIRST:
        _cast(node, _given_dtype(node), 1)
    elif packet in _PROMOTED or _widens(node):
        _cast(node, value.dtype, 2)
    elif packet in _BOUNDED and not value.is_floating_point():
        least, most = torch.iinfo(value.dtype).min, torch.iinfo(value.dtype).max
        node.args = tuple(min(max(n, least), most) if type(n) is int else n for n in node.args)


def _floor(node: torch.fx.Node) -> None:
    """Take a pool's `ceil_mode` away where it gives as many windows without.

    ONNX also counts windows that begin in the padding.
    """
    names = [one.name for one in getattr(node.target, "_schema", _NONE).arguments]
    place = names.index("ceil_mode") if "ceil_mode" in names else len(node.args)
    if node.args[place:] and node.args[place]:
        args = (*node.args[:place], False, *node.args[place + 1 :])
        with contextlib.suppress(RuntimeError):  # the gradients are those of more windows
            made = node.target(*torch.fx.node.map_arg(args, lambda n: n.meta["val"]))  # type: ignore[operator]
            shapes = [tree_leaves(found)[0].shape for found in (made, node.meta["val"])]
            node.args = args if shapes[0] == shapes[1] else node.args


def _set_to(node: torch.fx.Node, number: complex) -> None:
    """Give the users of a node a number in its place."""
    for user in list(node.users):
        user.args = torch.fx.node.map_aggregate(user.args, lambda a: number if a is node else a)


def _widens(node: torch.fx.Node) -> bool:
    """Whether complex operands have another type than the result: the exporter has no cast."""
    found = [one.meta["val"] for one in node.all_input_nodes if "val" in one.meta]
    kinds = {one.dtype for one in found if isinstance(one, torch.Tensor) and one.is_complex()}
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex() and kinds - {value.dtype} != set()


def _writes(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _given_dtype(node: torch.fx.Node) -> torch.dtype | None:
    names = [one.name for one in node.target._schema.arguments]  # type: ignore[union-attr]
    return (dict(zip(names, node.args, strict=False)) | node.kwargs).get("dtype")


def _cast(node: torch.fx.Node, dtype: torch.dtype | None, count: int) -> None:
    """Cast the first operands of a call; a list of tensors is one operand."""

    def of_type(operand: Any) -> Any:
        if isinstance(operand, (list, tuple)):
            return [of_type(one) for one in operand]
        value = operand.meta["val"] if isinstance(operand, torch.fx.Node) else None
        if value is None or dtype is None or value.dtype == dtype:
            return operand
        with node.graph.inserting_before(node):
            made = node.graph.call_function(_ATEN._to_copy.default, (operand,), {"dtype": dtype})
        made.meta = {**node.meta, "val": value.to(dtype)}
        return made

    for place, operand in enumerate(node.args[:count]):
        node.update_arg(place, of_type(operand))


def with_copied_results(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Put a copy behind each result: the exporter gives results the type that it computes in.

    It casts them for the nodes behind only.
    """
    graph, signature = program.graph_module.graph, program.graph_signature
    end = graph.output_node()
    with program.graph_module._set_replace_hook(signature.get_replace_hook()):
        for node in dict.fromkeys(end.all_input_nodes):
            if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
                continue
            with graph.inserting_before(end):
                copy = graph.call_function(_ATEN.clone.default, (node,))
            copy.meta = dict(node.meta)
            node.replace_all_uses_with(copy, lambda user: user is end)
    program.graph_module.recompile()
    return program


def _known_empty(value: torch.Tensor) -> bool:
    known = all(isinstance(size, int) for size in value.shape)
    return known and value.layout == torch.strided and not value.is_complex() and not value.numel()
