"""Converts a captured program to an ONNX model with torch's exporter."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import onnx
import torch
from torch.utils._pytree import tree_leaves

from ..errors import PycompilerError, error
from ..graph.dtypes import uncomputed
from ..pfvm.held import to_proto
from .as_torch import differing, traced_place
from .host_calls import host_call, may_be_called
from .plain_operators import all_in_plain_operators, in_plain_operators, untranslated
from .plain_operators.replacements import not_expressible
from .simpler_calls import with_copied_results
from .torch_dtypes import TORCH_DTYPES, dtype_name
from .translations import translations

#: Complex numbers, which are pairs of real ones in a model.
_PAIRS = {torch.complex64, torch.complex128}


def convert(program: torch.export.ExportedProgram, extra: Mapping[str, Any]) -> onnx.ModelProto:
    """Return the ONNX model."""
    try:
        return to_proto(_exported(program, extra).model)
    except PycompilerError:
        raise
    except Exception as problem:
        raise _why_not_converted(problem) from problem


def _exported(
    program: torch.export.ExportedProgram, extra: Mapping[str, Any]
) -> torch.onnx.ONNXProgram:
    """Export the program, with the results that torch's own trace has.

    Operators that torch cannot translate have forms of our own. The host calls those that have
    none, and those whose translation has another type than in torch.
    """
    own = extra.get("custom_translation_table") or {}
    extra = {**extra, "custom_translation_table": {**translations(), **own}, "optimize": False}
    program, plain, called = in_plain_operators(program), False, set[Any]()
    while True:
        program = with_copied_results(program)
        try:
            converted = torch.onnx.export(program, dynamo=True, verbose=False, **extra)
        except torch.onnx.OnnxExporterError as problem:
            if not plain:
                program, plain = all_in_plain_operators(program), True
                refused = untranslated(program)
            else:
                node = _translated(problem)
                if node is None:
                    raise
                refused = {node.target: _why_not_converted(problem)}
        else:
            if converted is None:
                raise error("P0106", reason="torch.onnx.export returned nothing")
            refused, program = differing(converted), converted.exported_program or program
            if not refused:
                return converted
        for op, refusal in refused.items():
            if op in called or not may_be_called(op):
                raise refusal
        if refused:
            squeezes = torch.ops.prims.squeeze.default, torch.ops.aten.squeeze.dims
            for again in program.graph.find_nodes(op="call_function", target=squeezes[0]):
                again.target = squeezes[1]  # torch does not trace its own form once more
            program = program.run_decompositions({op: host_call(op) for op in refused})
        called |= refused.keys()


def _why_not_converted(problem: BaseException) -> PycompilerError:
    node = _translated(problem)
    place = None if node is None else traced_place(node.meta)
    while problem.__cause__ is not None:
        problem = problem.__cause__
        if type(problem).__name__ == "DispatchError" and node is not None:
            return not_expressible(str(node.target), place)
    values = tree_leaves(node.meta.get("val") if node is not None else None)
    dtypes = {one.dtype for one in values if isinstance(one, torch.Tensor)} - _PAIRS
    for dtype in dtypes.difference(TORCH_DTYPES.values()):
        legal = ", ".join(map(dtype_name, TORCH_DTYPES.values()))
        found = uncomputed("value", str(node), dtype_name(dtype), legal)
        found.place = place
        return found
    first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    return error("P0106", place=place, reason=f"{type(problem).__name__}: {first}")


def _translated(problem: BaseException | None) -> torch.fx.Node | None:
    """Find the node that torch was translating, in the frames of ``problem``."""
    while problem is not None:
        for frame, _ in traceback.walk_tb(problem.__traceback__):
            node = frame.f_locals.get("node")
            if isinstance(node, torch.fx.Node) and node.op == "call_function":
                return node
        problem = problem.__cause__
    return None
