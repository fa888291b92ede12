"""Makes an ONNX file as it lies around one that the passes can rely on.

Shapes that a file declares for results and inner values are hints: what follows from the inputs
wins, as in onnxruntime. Where nothing follows, the hints count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy

import numpy as np
import onnx
import onnx.checker
import onnx.shape_inference
from onnx import helper, numpy_helper

from ..errors import PycompilerError
from .declared import constants, shown_sizes
from .held import without_data
from .known_shapes import known_types, with_known_shapes
from .names import all_names, fresh, graphs
from .opsets import STANDARD, converted, opset_of, with_some_type
from .prepare import refusal, with_axes
from .session import results_of
from .sizes import Sizes
from .well_formed import check_model

#: Operators with another form before an opset: the slope of a PRelu was not broadcast like every
#: operand, and the mask of a Dropout was left open: onnxruntime gives zeros.
_OLD = {"PRelu": 7, "Dropout": 12}
#: An operator that runtimes took before the standard had it, and one of the same shapes, facts.
_EARLY, _LIKE, _FIRST = "ThresholdedRelu", "LeakyRelu", 10
#: The most operators of other domains, one behind the other, whose types are looked for.
_ROUNDS = 64

#: Operators whose results onnx does not always infer: the operands that decide on their shapes.
_DECIDING = {"Compress": slice(1, 2), "MaxUnpool": slice(2, 3), "Range": slice(0, 3)}
_DECIDING |= dict.fromkeys(("GatherND", "GroupNormalization"), slice(0))

_Types = dict[str, onnx.TypeProto]


def settled(model: onnx.ModelProto, sizes: Sizes) -> tuple[onnx.ModelProto, list[str]]:
    """Return the model with ``sizes`` and without false hints; also say which hints were false.

    P0108, P0112, P0120, P0139, P0704.
    """
    check_model(model)
    made = _with_early(sizes.applied(model))
    _import_once(made)
    try:
        untyped = with_some_type(made)
        onnx.checker.check_model(without_data(made))
        hints = _without_hints(made, untyped)
        _write_old_forms(made)
        _find_types(made)
        known = _inferred(made)
        if _with_hints(made, hints, known):
            known = _inferred(made)
    except PycompilerError:
        raise
    except Exception as problem:  # onnx raises many kinds for models that it did not expect
        raise refusal(problem, made) from problem
    for info in made.graph.output:
        if info.name in known:
            info.type.CopyFrom(known[info.name])
    return made, list(_false_hints(hints, known))


def _import_once(model: onnx.ModelProto) -> None:
    """Keep the last import of each domain, as onnx and onnxruntime do; in place."""
    last = {"" if one.domain == "ai.onnx" else one.domain: one for one in model.opset_import}
    if len(last) < len(model.opset_import):
        kept = [helper.make_opsetid(domain, one.version) for domain, one in last.items()]
        del model.opset_import[:]
        model.opset_import.extend(kept)


def _without_hints(model: onnx.ModelProto, untyped: set[str]) -> _Types:
    """Take the declared types of inner values and the shapes of results away, and return them."""
    hints: _Types = {}
    for part in graphs(model.graph):
        kept = [info for info in part.value_info if not info.type.HasField("tensor_type")]
        if part is model.graph:
            for info in part.value_info:
                if info.type.HasField("tensor_type"):
                    hints[info.name] = deepcopy(info.type)
        del part.value_info[:]
        part.value_info.extend(kept)
    for info in model.graph.output:
        if info.name in untyped:
            info.ClearField("type")
        elif info.type.HasField("tensor_type"):
            hints[info.name] = deepcopy(info.type)
            info.type.tensor_type.ClearField("shape")
    return hints


def _inferred(model: onnx.ModelProto) -> _Types:
    """Return the type of each value, as far as it follows from the inputs and from hints."""
    graph = with_known_shapes(with_axes(converted(model))).graph
    found = {info.name: info.type for info in (*graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        found.setdefault(
            tensor.name, helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        )
    return found


def _with_hints(model: onnx.ModelProto, hints: _Types, known: _Types) -> bool:
    """Declare what the hints say of sizes that nothing tells; whether there are such."""
    infos = {info.name: info for info in model.graph.output}
    changed = False
    for name, hint in hints.items():
        merged = _merged(known.get(name), hint)
        if merged is None:
            continue
        changed = True
        if name in infos:
            infos[name].type.CopyFrom(merged)
        else:
            model.graph.value_info.append(onnx.ValueInfoProto(name=name, type=merged))
    return changed


def _merged(known: onnx.TypeProto | None, hint: onnx.TypeProto) -> onnx.TypeProto | None:
    """Return a type with the sizes of a hint where it is open; None if the hint tells nothing."""
    if not hint.tensor_type.HasField("shape"):
        return None
    if known is None or not known.HasField("tensor_type"):
        return hint if known is None else None
    made = deepcopy(known)
    shape, given = made.tensor_type.shape, hint.tensor_type.shape
    if not known.tensor_type.HasField("shape"):
        shape.CopyFrom(given)
        return made
    if len(shape.dim) != len(given.dim):
        return None
    changed = False
    for own, other in zip(shape.dim, given.dim, strict=True):
        if not own.HasField("dim_value") and other.HasField("dim_value"):
            own.dim_value = other.dim_value
            changed = True
    return made if changed else None


def _false_hints(hints: _Types, known: _Types) -> Iterator[str]:
    """Yield what a model declares otherwise than it follows."""
    for name, hint in hints.items():
        found = known.get(name)
        if found is None or not hint.tensor_type.HasField("shape"):
            continue
        own, given = (list(one.tensor_type.shape.dim) for one in (found, hint))
        pairs = zip(own, given, strict=False)
        differs = any(
            a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value != b.dim_value
            for a, b in pairs
        )
        if found.tensor_type.HasField("shape") and (differs or len(own) != len(given)):
            yield f"`{name}` is declared as ({shown_sizes(given)}), but is ({shown_sizes(own)})"


def _with_early(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with operators older than their first opset at an opset that has them."""
    found = [node for node in model.graph.node if node.op_type == _EARLY and node.output]
    early = {node.output[0]: node for node in found if opset_of(model) < _FIRST}
    for node in early.values():
        node.op_type = _LIKE
    made = converted(model) if early else model
    for node in made.graph.node:
        node.op_type = _EARLY if early.keys() & {*node.output[:1]} else node.op_type
    return made


def _write_old_forms(model: onnx.ModelProto) -> None:
    """Give slopes, which lie along the channels, the axes of pixels; masks become constants."""
    opset = opset_of(model)
    nodes = [node for node in model.graph.node if opset < _OLD.get(node.op_type, 0)]
    if not nodes:
        return
    types = known_types(onnx.shape_inference.infer_shapes(model).graph)
    taken = all_names(model.graph)
    kinds = {info.name: info.type.tensor_type.elem_type for info in model.graph.output}
    for node in nodes:
        at = list(model.graph.node).index(node)
        elem, shape = types.get(node.input[0], (0, ()))
        slope = types.get(node.input[-1], (0, ()))[1]
        if node.op_type == "Dropout" and elem and any(node.output[1:]):
            kind = helper.tensor_dtype_to_np_dtype(kinds.get(node.output[1]) or elem)
            zeros = numpy_helper.from_array(np.zeros(shape, kind))
            made = helper.make_node("Constant", [], [node.output.pop()], value=zeros)
            model.graph.node.insert(at, made)
        elif node.op_type == "PRelu" and len(slope) == 1 and slope[0] > 1 and len(shape) > 2:
            name = fresh(f"{node.output[0]}.slope", taken)
            axes = list(range(1, len(shape) - 1))
            made = helper.make_node("Unsqueeze", [node.input[1]], [name], axes=axes)
            node.input[1] = name
            model.graph.node.insert(at, made)


def _find_types(model: onnx.ModelProto) -> None:
    """Declare the types of results for which onnx has no rules; in place.

    The host runtime computes them once, of zeros. A call in which a shape is another one ends with
    P0613.
    """
    known = constants(model.graph)
    ruled = {*STANDARD, *(function.domain for function in model.functions)}
    nodes = [node for node in model.graph.node if node.domain not in ruled or _decided(node, known)]
    for _ in range(_ROUNDS):
        if not nodes:
            return
        types = known_types(onnx.shape_inference.infer_shapes(model).graph)
        left = []
        for node in nodes:
            if not all(name in types for name in node.input if name):
                left.append(node)
            elif any(name and name not in types for name in node.output):
                for info in _of_zeros(node, types, known, model):
                    given = next((one for one in model.graph.output if one.name == info.name), None)
                    (given or model.graph.value_info.add()).CopyFrom(info)
        if len(left) == len(nodes):
            return
        nodes = left


def _decided(node: onnx.NodeProto, known: Collection[str]) -> bool:
    """Whether constants decide the types of a node's results, which onnx does not read."""
    deciding = _DECIDING.get(node.op_type)
    return deciding is not None and all(name in known for name in node.input[deciding])


def _of_zeros(
    node: onnx.NodeProto,
    types: Mapping[str, tuple[int, tuple[int, ...]]],
    known: Mapping[str, onnx.TensorProto],
    model: onnx.ModelProto,
) -> Iterator[onnx.ValueInfoProto]:
    """Yield the types of the results that a node makes of zeros; none if the host cannot run it."""
    left = {name: type for name, type in types.items() if name not in node.output}
    found = results_of(node, known, left, model) or {}
    for name, array in found.items():
        if array.dtype.kind in "bifu":
            elem = helper.np_dtype_to_tensor_dtype(array.dtype)
            yield helper.make_tensor_value_info(name, elem, array.shape)
