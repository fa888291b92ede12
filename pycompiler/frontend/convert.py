"""Converts a captured program to an ONNX model with torch's exporter."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import onnx
import onnx.numpy_helper
import onnx.shape_inference
import onnx_ir as ir
import torch
from onnxscript import rewriter
from onnxscript.rewriter.rules.common import _no_op
from torch.utils._pytree import tree_leaves

from ..errors import PycompilerError, error
from ..graph.dtypes import uncomputed
from ..pfvm.held import tensor_of, to_proto
from ..pfvm.random import hidden as hidden_random
from .as_torch import differing, traced_place
from .host_calls import host_call, may_be_called
from .plain_operators import all_in_plain_operators, in_plain_operators, untranslated
from .plain_operators.replacements import not_expressible
from .simpler_calls import with_copied_results
from .torch_dtypes import TORCH_DTYPES, dtype_name
from .translations import translations

#: Complex numbers, which are pairs of real ones in a model.
_PAIRS = {torch.complex64, torch.complex128}


def convert(
    program: torch.export.ExportedProgram, extra: dict[str, Any], state: Mapping[str, str]
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Return the ONNX model, and ``state`` by the names in that model.

    The constants in ``state`` are hidden from torch's optimiser, which would fold them.
    """
    try:
        made = _exported(program, {**extra, "optimize": False})
        return _optimised_around(made, state, extra.get("optimize", True))
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
    extra = {**extra, "custom_translation_table": {**translations(), **own}}
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


def _optimised_around(
    converted: torch.onnx.ONNXProgram, state: Mapping[str, str], optimise: bool
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Return the optimised model; the initializers in ``state`` are inputs for the optimiser."""
    graph = converted.model.graph
    given, random_nodes = len(graph.inputs), 0
    present, hidden, data = _hide(graph, state)
    if optimise:
        with hidden_random(converted.model) as random_nodes, _kept_rules():
            converted.optimize()
    model = to_proto(converted.model)
    if random_nodes:
        model = onnx.shape_inference.infer_shapes(model)
    del model.graph.input[given:]
    names: dict[str, str] = {}
    for name, value, tensor in zip(present, hidden, data, strict=True):
        assert tensor is not None
        assert value.name is not None
        if name in state:
            names[value.name] = state[name]  # the optimiser renames values that are outputs too
        model.graph.initializer.append(tensor_of(tensor.numpy(), value.name))
    return model, names


@contextlib.contextmanager
def _kept_rules() -> Iterator[None]:
    """Leave out rewrites of torch's optimiser.

    For those of several results it looks at all pairs of nodes. Those that drop a term of 0 or a
    factor of 1 drop numbers near them too, such as the `eps` of a quotient.
    """
    known = rewriter._DEFAULT_REWRITE_RULES
    rewriter._DEFAULT_REWRITE_RULES = tuple(
        rule
        for rule in known
        if rule._target_pattern.has_single_output_node and rule not in _no_op.rules.rules
    )
    try:
        yield
    finally:
        rewriter._DEFAULT_REWRITE_RULES = known


def _hide(
    graph: ir.Graph, names: Iterable[str]
) -> tuple[list[str], list[ir.Value], list[ir.TensorProtocol | None]]:
    """Make initializers inputs; return those present, their values, and the data taken out."""
    present = [name for name in names if name in graph.initializers]
    hidden = [graph.initializers.pop(name) for name in present]
    data = [value.const_value for value in hidden]
    for value in hidden:
        value.const_value = None
    graph.inputs.extend(hidden)
    return present, hidden, data


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
