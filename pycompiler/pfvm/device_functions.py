"""Operators of the device in ONNX models: calls of functions in a domain of their own.

A call has the attributes that its layer reads. Its function says the same with operators of ONNX:
ONNX infers the types of the results from it, and the host computes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.inliner
from onnx import helper

from ..errors import error
from .held import with_data_inside
from .names import nodes_of

#: The domain of the calls and of their functions.
DEVICE = "pycompiler.device"
#: Runs of elements of values in DRAM.
RECUT = "MNCoreRecut"
#: Elements at known places of an axis.
PICK = "MNCorePick"
#: Rows of a table in DRAM.
LOOKUP = "MNCoreLookup"
#: Rows that are written into a value in DRAM.
STORE = "MNCoreStore"
#: Cuts axes into tiles; each attribute has one number for every axis that changes.
TILES = "MNCoreTiles"
TILE_FACTS = ("axes", "counts", "places", "before", "reach")
#: Which of these axes are rings, whose ends are neighbours; without it, none is.
TILE_RINGS = "rings"


def function_of(
    op: str,
    inputs: Sequence[str],
    nodes: Sequence[onnx.NodeProto],
    constants: Sequence[onnx.TensorProto],
    attributes: Sequence[str],
) -> onnx.FunctionProto:
    """Return the function of one call, which gives what the last of ``nodes`` gives.

    It reads ``inputs`` under their own names. Its opsets are still to come.
    """
    result = nodes[-1].output[0]
    data = map(with_data_inside, constants)
    body = [*(helper.make_node("Constant", [], [one.name], value=one) for one in data), *nodes]
    return helper.make_function(
        DEVICE, f"{op}.{result}", inputs, [result], body, [], list(attributes)
    )


def called(node: onnx.NodeProto) -> str:
    """Return the operator of the device that a node calls; empty if it calls none."""
    return str(node.op_type).partition(".")[0] if node.domain == DEVICE else ""


def check_domain(model: onnx.ModelProto) -> None:
    """Refuse, in a model without functions, a node of the domain: nothing defines it. P0108."""
    for node in nodes_of(model.graph):
        if node.domain == DEVICE:
            what = f"node `{node.name}` calls `{node.op_type}` of `{DEVICE}`"
            raise error("P0108", reason=f"{what}, which has no function")


def with_functions(
    model: onnx.ModelProto, functions: Sequence[onnx.FunctionProto]
) -> onnx.ModelProto:
    """Give a model, in place, functions with its opsets."""
    if functions and all(opset.domain != DEVICE for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DEVICE, 1))
    for function in functions:
        del function.opset_import[:]
        function.opset_import.extend(model.opset_import)
    model.functions.extend(functions)
    return model


def inlined(model: onnx.ModelProto, *, all_of_them: bool = True) -> onnx.ModelProto:
    """Return the model with functions inlined: all, or all but those of the device."""
    kept = [(f.domain, f.name) for f in model.functions if f.domain == DEVICE and not all_of_them]
    if len(kept) == len(model.functions):
        return model
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    defaults = {(f.domain, f.name, f.overload): f.attribute_proto for f in model.functions}
    for node in (node for part in (whole.graph, *whole.functions) for node in nodes_of(part)):
        # onnx's inliner takes attributes that a call leaves out for those of the operators inside.
        own = defaults.get((node.domain, node.op_type, node.overload), ())
        given = {attribute.name for attribute in node.attribute}
        node.attribute.extend(one for one in own if one.name not in given)
    made: onnx.ModelProto = onnx.inliner.inline_selected_functions(whole, kept, exclude=True)
    return made
