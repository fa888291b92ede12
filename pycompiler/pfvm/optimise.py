"""The PFVM stage: a smaller model that computes the same, of operators that the device knows.

onnxscript folds constants; onnx-ir's passes merge equal nodes and equal constants and drop what
nobody reads; :mod:`.decompose` rewrites operators. Names of inputs and outputs stay, and so do the
source lines of nodes.
"""

from __future__ import annotations

import logging

import onnx
import onnx_ir as ir
from onnx_ir.passes import Sequential
from onnx_ir.passes.common import (
    CommonSubexpressionEliminationPass,
    DeduplicateInitializersPass,
    IdentityEliminationPass,
    RemoveUnusedNodesPass,
)
from onnxscript.optimizer import fold_constants

from ..errors import PycompilerError, error
from .decompose import decompose
from .empty import settle_empty
from .prepare import prepare
from .registered import attach, detach

# Larger results of constant nodes stay nodes: a model must not grow by what it can compute.
_MOST_FOLDED = 1 << 20


def optimise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the optimised model; ``model`` is unchanged. P0103, P0108."""
    plain, registered = detach(model)
    prepared = settle_empty(prepare(plain))
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        made = ir.from_proto(prepared)
        fold_constants(made, input_size_limit=_MOST_FOLDED, output_size_limit=_MOST_FOLDED)
        decompose(made)
        Sequential(
            IdentityEliminationPass(),
            DeduplicateInitializersPass(),
            CommonSubexpressionEliminationPass(),
            RemoveUnusedNodesPass(),
        )(made)
        result: onnx.ModelProto = ir.to_proto(made)
    except PycompilerError:
        raise
    except Exception as problem:
        reason = f"the optimiser stopped: {type(problem).__name__}: {problem}"
        raise error("P0108", reason=" ".join(reason.split())[:300]) from problem
    finally:
        logging.disable(level)
    _keep_outputs(result, [value.name for value in prepared.graph.output])
    return attach(result, registered)


def _keep_outputs(model: onnx.ModelProto, names: list[str]) -> None:
    """Give outputs back their names: of two that are equal the passes keep one."""
    for value, name in zip(model.graph.output, names, strict=True):
        if value.name != name:
            made = onnx.helper.make_node("Identity", [value.name], [name], name=f"{name}.Identity")
            model.graph.node.append(made)
            value.name = name
