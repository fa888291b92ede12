"""Opsets: the passes and layers are written for a range of opsets; older models are converted.

From one opset to the next, axes may become an input instead of an attribute, or an operator may
change its meaning (Softmax before 13). Models that cannot be converted run on the host as they are.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx.version_converter
from onnx import helper, numpy_helper

from .declared import constants
from .held import array_of, hold, whole
from .names import nodes_of

#: The opsets that the passes and the layers are written for. In this range, operators gain element
#: types and attributes, which layers refuse, but no operator changes its result.
OLDEST, NEWEST = 18, 28
_IR_VERSION = 8  # the first version with opset 18
#: From this opset on, onnx's inference leaves out the last window of a pool if it begins behind the
#: input. onnxruntime and torch always do.
_DROPS_WINDOWS = 22
#: From this opset on, onnx's converter leaves nothing out.
_COMPLETE = 11
_POOLS = ("AveragePool", "LpPool", "MaxPool")
STANDARD = ("", "ai.onnx")
#: Operators that onnx converts without an error although their meaning changes at this opset.
_CONVERTED_WRONGLY = {"Hardmax": 13, "Scan": 9}


def opset_of(model: onnx.ModelProto) -> int:
    """Return the version of the standard opset of ``model``, by its last import; 0 without one."""
    versions = [int(opset.version) for opset in model.opset_import if opset.domain in STANDARD]
    return versions[-1] if versions else 0


def converted(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``model`` at opset ``OLDEST`` or newer; unchanged if onnx cannot convert it."""
    version = opset_of(model)
    nodes = list(nodes_of(model.graph))
    goal = _DROPS_WINDOWS if any(map(_rounds_up, nodes)) else OLDEST
    if not 0 < version < goal:
        return model
    used = {node.op_type for node in nodes}
    if any(version < first for op, first in _CONVERTED_WRONGLY.items() if op in used):
        return model
    try:
        made = onnx.version_converter.convert_version(whole(model), goal)
        made.ir_version = max(made.ir_version, _IR_VERSION)
        with_some_type(made)
        onnx.checker.check_model(made)
        made = hold(made)
    except Exception:  # the errors of the converter have no common base class
        return model
    if version < _COMPLETE and not _completed(made, version):
        return model
    for field in ("output", "value_info"):  # the converter infers shapes as the old opset did
        made.graph.ClearField(field)
        getattr(made.graph, field).extend(getattr(model.graph, field))
    known = {name: node for node in model.graph.node for name in node.output if name}
    for node in made.graph.node:
        before = next((known[name] for name in node.output if name in known), None)
        if before is not None:
            node.name = node.name or before.name
            del node.metadata_props[:]
            node.metadata_props.extend(before.metadata_props)
    return made


def with_some_type(model: onnx.ModelProto) -> set[str]:
    """Give results without a type or shape one for onnx's checker; return their names."""
    found = set()
    for info in model.graph.output:
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") in (None, "tensor_type") and not (
            tensor.elem_type and tensor.HasField("shape")
        ):
            elem = tensor.elem_type or onnx.TensorProto.FLOAT
            info.type.CopyFrom(helper.make_tensor_type_proto(elem, ()))
            found.add(info.name)
    return found


def _completed(model: onnx.ModelProto, version: int) -> bool:
    """Write down, in place, what onnx's converter leaves out of nodes before opset 11.

    An Upsample and a Resize find places as in onnxruntime. The bounds of a Clip have its type. It
    tells whether that can be written: a Resize rounds up along axes that shrink.
    """
    known = constants(model.graph)
    infos = (*model.graph.input, *model.graph.value_info)
    elems = {info.name: info.type.tensor_type.elem_type for info in infos}
    for node in nodes_of(model.graph):
        if node.op_type == "Clip" and elems.get(node.input[0]):
            dtype = helper.tensor_dtype_to_np_dtype(elems[node.input[0]])
            for tensor in (known[name] for name in node.input[1:] if name in known):
                tensor.CopyFrom(numpy_helper.from_array(array_of(tensor).astype(dtype)))
        if node.op_type != "Resize":
            continue
        nearest = all(a.name != "mode" or a.s == b"nearest" for a in node.attribute)
        scales = known.get(node.input[2])
        if scales is None and nearest and version == _COMPLETE - 1:
            return False
        numbers = np.ones(1) if scales is None else array_of(scales)
        shrinks = bool((numbers < 1).any())
        if nearest and shrinks and (numbers > 1).any():
            return False
        facts = {
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "ceil" if shrinks else "floor",
        }
        node.attribute.extend(helper.make_attribute(*fact) for fact in facts.items())
    return True


def _rounds_up(node: onnx.NodeProto) -> bool:
    """Whether a node is a pool that may have a last window past the end."""
    ceils = any(attribute.name == "ceil_mode" and attribute.i for attribute in node.attribute)
    return ceils and node.op_type in _POOLS


def understood(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ``node`` at ``opset`` has the meaning that the passes and the layers assume."""
    if node.domain not in STANDARD or OLDEST <= opset <= NEWEST:
        return True
    try:
        own = onnx.defs.get_schema(node.op_type, opset).since_version
        first = onnx.defs.get_schema(node.op_type, OLDEST).since_version
    except onnx.defs.SchemaError:
        return False
    return first <= own <= NEWEST
