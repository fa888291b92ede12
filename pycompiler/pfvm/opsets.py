"""Opsets: the passes and the layers are written for one range of them, older models are converted.

An operator may take its axes as an attribute in one opset and as an input in the next, or mean
another thing (Softmax before 13). What cannot be converted runs on the host as it is.
"""

from __future__ import annotations

import onnx
import onnx.version_converter

from .names import graphs

#: The opsets that the passes and the layers are written for. Between them operators get more
#: element types and new attributes, which layers refuse; no operator changes what it computes.
OLDEST, NEWEST = 18, 28
_IR_VERSION = 8  # the first that has opset 18
_STANDARD = ("", "ai.onnx")
#: Operators that onnx converts without a word, though they mean another thing from an opset on.
_CONVERTED_WRONGLY = {"Hardmax": 13}


def opset_of(model: onnx.ModelProto) -> int:
    """Return the version of the standard opset that ``model`` imports, 0 if it imports none."""
    return next((int(o.version) for o in model.opset_import if o.domain in _STANDARD), 0)


def converted(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``model`` at opset ``OLDEST`` at least; as it is if onnx cannot convert it."""
    version = opset_of(model)
    if not 0 < version < OLDEST:
        return model
    used = {node.op_type for part in graphs(model.graph) for node in part.node}
    if any(version < first for op, first in _CONVERTED_WRONGLY.items() if op in used):
        return model
    try:
        made = onnx.version_converter.convert_version(model, OLDEST)
        made.ir_version = max(made.ir_version, _IR_VERSION)
        onnx.checker.check_model(made)
    except Exception:  # the converter has no common base class for its refusals
        return model
    known = {name: node for node in model.graph.node for name in node.output if name}
    for node in made.graph.node:
        before = next((known[name] for name in node.output if name in known), None)
        if before is not None:
            node.name = node.name or before.name
            del node.metadata_props[:]
            node.metadata_props.extend(before.metadata_props)
    return made


def understood(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ``node`` means at ``opset`` what the passes and the layers take it for."""
    if node.domain not in _STANDARD or OLDEST <= opset <= NEWEST:
        return True
    try:
        own = onnx.defs.get_schema(node.op_type, opset).since_version
        first = onnx.defs.get_schema(node.op_type, OLDEST).since_version
    except onnx.defs.SchemaError:
        return False
    return first <= own <= NEWEST
