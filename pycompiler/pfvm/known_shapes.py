"""Finds static shapes that ONNX's shape inference leaves open.

The inference knows no values but those of constants and of a few operators. Here the values that a
shape depends on are computed, as long as they depend on constants and on known shapes alone. A
shape also goes from the result of an operator back to its operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..graph.dtypes import onnx_name
from ..graph.graph import TensorType
from .declared import MOST, constants, inferred, static_shape
from .device_functions import DEVICE
from .held import Array, array_of
from .names import all_names, bodies_of, reserved
from .opsets import STANDARD
from .random import is_random
from .session import results_of

#: Each round makes more shapes known; deeper chains of shapes are not followed.
_ROUNDS = 24
#: Operators whose first operand has the shape of the result.
_SAME = frozenset((
    "Abs", "Cast", "CastLike", "Ceil", "Clip", "Elu", "Erf", "Exp", "Floor", "Identity",
    "LeakyRelu", "Log", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Softplus",
    "Sqrt", "Tanh",
))  # fmt: skip

Type = tuple[int, tuple[int, ...]]


def with_known_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with inferred types. onnx's InferenceError if they contradict."""
    found = inferred(_with_scalar_ends(model), strict=True)
    for _ in range(_ROUNDS):
        if not _settle(found):
            break
        found = inferred(_with_scalar_ends(found), strict=True)
    return found


def known_types(graph: onnx.GraphProto) -> dict[str, Type]:
    """Return element type and shape of the tensors of a graph that have a static shape."""
    found = {t.name: (int(t.data_type), tuple(t.dims)) for t in graph.initializer}
    for info in (*graph.input, *graph.output, *graph.value_info):
        shape = static_shape(info)
        if shape is not None:
            found.setdefault(info.name, (int(info.type.tensor_type.elem_type), shape))
    return found


def tensor_types(graph: onnx.GraphProto) -> dict[str, TensorType]:
    """Return the types of the same tensors, with names of element types."""
    known = known_types(graph).items()
    return {name: TensorType(onnx_name(elem), shape) for name, (elem, shape) in known}


def _settle(model: onnx.ModelProto) -> bool:
    """Compute values that shapes depend on, in place; whether there is something new."""
    graph = model.graph
    types = known_types(graph)
    open_values = [
        name for node in graph.node for name in node.output if name and name not in types
    ]
    if not open_values:
        return False
    known = constants(graph)
    changed = _go_back(graph, types)
    wanted = _ancestors(graph, set(open_values))
    kept: list[onnx.NodeProto] = []
    given = {value.name for value in graph.output}
    for node in graph.node:
        made = None
        if not given & set(node.output) and wanted & set(node.output):
            made = computed(node, known, types, model, MOST)
        if made is None:
            kept.append(node)
            continue
        changed = True
        for name, array in zip(node.output, made, strict=True):
            known[name] = numpy_helper.from_array(array, name)
            types[name] = int(known[name].data_type), tuple(known[name].dims)
            graph.initializer.append(known[name])
    if changed:
        del graph.node[:]
        graph.node.extend(kept)
        stale = [info for info in graph.value_info if static_shape(info) is None]
        for info in stale:
            graph.value_info.remove(info)
    return changed


def _with_scalar_ends(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with scalars for the known ends of each Range.

    Runtimes take lists of one number too, as the inference does until the number is known.
    """
    if all(node.op_type != "Range" or node.domain not in STANDARD for node in model.graph.node):
        return model
    out = onnx.ModelProto()
    out.CopyFrom(model)
    known, taken = constants(out.graph), all_names(out.graph)
    scalars: dict[str, str] = {}
    for node in out.graph.node:
        if node.op_type != "Range" or node.domain not in STANDARD:
            continue
        for index, name in enumerate(node.input):
            if name in known and list(known[name].dims) == [1]:
                if name not in scalars:
                    scalars[name] = reserved(f"{name}.scalar", taken)
                    number = array_of(known[name]).reshape(())
                    out.graph.initializer.append(numpy_helper.from_array(number, scalars[name]))
                node.input[index] = scalars[name]
    return out


def _go_back(graph: onnx.GraphProto, types: dict[str, Type]) -> bool:
    """Give operands the shape of their result, where an operator changes no shape.

    The inference names an unknown size, and gives sizes that are equal one name. Where an operand
    tells what a name stands for, all values with that name become known.
    """
    changed = False
    infos = {info.name: info for info in graph.value_info}
    makers = {name for node in graph.node for name in node.output}
    sizes: dict[str, int] = {}
    for node in reversed(graph.node):
        if node.op_type not in _SAME or node.domain not in STANDARD:
            continue
        source, result = node.input[0], node.output[0]
        info = infos.get(source)
        if source in types or source not in makers or result not in types or info is None:
            continue
        tensor, shape = info.type.tensor_type, types[result][1]
        if not tensor.elem_type:
            continue
        for dim, size in zip(tensor.shape.dim, shape, strict=False):
            if dim.dim_param:
                sizes.setdefault(dim.dim_param, size)
        types[source] = (tensor.elem_type, shape)
        info.CopyFrom(helper.make_tensor_value_info(source, tensor.elem_type, shape))
        changed = True
    for info in graph.value_info if sizes else ():
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    return changed


def _ancestors(graph: onnx.GraphProto, wanted: set[str]) -> set[str]:
    """Return the values from which ``wanted`` are made, with them."""
    found = set(wanted)
    for node in reversed(graph.node):
        if found & set(node.output):
            found.update(node.input)
    return found


def computed(
    node: onnx.NodeProto,
    known: Mapping[str, onnx.TensorProto],
    types: Mapping[str, Type],
    model: onnx.ModelProto,
    most: int,
) -> list[Array] | None:
    """Return the results of a node, of constants or known shapes alone; None beyond ``most``."""
    if node.domain not in (*STANDARD, DEVICE) or not node.input or bodies_of(node):
        return None
    if is_random(node, _false(node, known)):
        return None
    if node.op_type in ("Shape", "Size") and node.input[0] in types:
        return [of_shape(node, types[node.input[0]][1])]
    if any(name and name not in known for name in node.input):
        return None
    if any(name not in types or prod(types[name][1]) > most for name in node.output):
        return None
    found = results_of(node, known, {n: types[n] for n in node.output}, model)
    return None if found is None else [found[name] for name in node.output]


def _false(node: onnx.NodeProto, known: Mapping[str, onnx.TensorProto]) -> list[str]:
    """Return the boolean inputs of ``node`` that are known to be false."""
    kind = onnx.TensorProto.BOOL
    truths = [name for name in node.input if name in known and known[name].data_type == kind]
    return [name for name in truths if not array_of(known[name]).any()]


def of_shape(node: onnx.NodeProto, shape: tuple[int, ...]) -> Array:
    """Return the result of a Shape or Size of an operand of this shape."""
    if node.op_type == "Size":
        return np.array(prod(shape), np.int64)
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    start, end = int(facts.get("start", 0)), int(facts.get("end", len(shape)))
    first, last = (min(max(at + len(shape) * (at < 0), 0), len(shape)) for at in (start, end))
    return np.array(shape[first:last], np.int64)
