"""The PFVM stage: makes an equivalent smaller model from operators that the device knows.

Constants are folded; onnxscript computes with shapes and joins Pads with convolutions. Passes of
onnx-ir merge equal nodes and equal constants and drop unused nodes. :mod:`.decompose` rewrites
operators, :mod:`.batch_norm` folds normalizations into products. The names of inputs and outputs
and the source lines of nodes stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import Sequential
from onnx_ir.passes.common import (
    CommonSubexpressionEliminationPass,
    DeduplicateInitializersPass,
    NameFixPass,
    RemoveUnusedNodesPass,
)
from onnxscript import optimizer
from onnxscript.rewriter.rules.common import fuse_pad_into_conv_rule

from ..errors import PycompilerError, error
from .batch_norm import fold_batch_norms
from .decompose import decompose
from .empty import settle_empty
from .flat_products import unflatten_products
from .fold import fold_constants
from .head_products import use_heads
from .held import from_proto, to_proto
from .host_groups import open_values, with_host_groups
from .late_expands import expand_late
from .names import separate_body_outputs
from .opsets import OLDEST, opset_of
from .pad_hidden import pad_hidden
from .prepare import prepare, refuse_kinds
from .random import hidden, write_out_bernoulli
from .registered import attach, detach
from .split_products import split_products
from .view_chains import join_views
from .well_formed import check_model

# Larger results of constant nodes are not folded, so that the model does not grow.
_MOST_FOLDED = 1 << 20

#: Operators of constants that stay: of integers the device makes products, and it fills itself.
_KEPT = frozenset({"ConstantOfShape", "DequantizeLinear", "QuantizeLinear"})


def optimise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the optimised model; ``model`` is unchanged. P0103, P0108, P0120."""
    check_model(model)
    plain, registered = detach(model)
    prepared = fold_constants(settle_empty(prepare(plain)), _MOST_FOLDED, _KEPT)
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        made = from_proto(prepared)
        write_out_bernoulli(made)
        with hidden(made), np.errstate(all="ignore"):  # what it folds may divide by 0
            for row in OPTIMISATIONS:
                if row.any_opset or opset_of(prepared) >= OLDEST:
                    row.run(made)
            Sequential(
                DeduplicateInitializersPass(),
                CommonSubexpressionEliminationPass(),
                RemoveUnusedNodesPass(),
                NameFixPass(),  # new nodes are named after what they replace
            )(made)
        result: onnx.ModelProto = to_proto(made)
    except PycompilerError:
        raise
    except Exception as problem:
        refuse_kinds(prepared)  # onnx's passes stop at some sequences
        reason = f"the optimiser stopped: {type(problem).__name__}: {problem}"
        raise error("P0108", reason=" ".join(reason.split())[:300]) from problem
    finally:
        logging.disable(level)
    _keep_outputs(result, prepared.graph.output)
    separate_body_outputs(result)
    if open_values(prepared):
        result = with_host_groups(result)
    return attach(result, registered)


def fold_shapes(model: ir.Model) -> None:
    """Compute with shapes, in place. onnx's evaluator, which it has for values, is often wrong."""
    optimizer.fold_constants(model, should_fold=lambda node: False)


def drop_identities(model: ir.Model) -> None:
    """Remove Identity nodes, except where two outputs would become one value.

    onnx-ir's own pass makes one value two outputs of a body, or an output of two bodies.
    onnxruntime computes such bodies wrongly, or onnx-ir refuses them.
    """
    for graph in model.graphs():
        for node in graph:
            if node.op_type != "Identity" or node.domain not in ("", "ai.onnx"):
                continue
            source, copy = node.inputs[0], node.outputs[0]
            if source is None:
                continue
            if copy.is_graph_output():
                maker = source.producer()
                if maker is None or maker.graph is not graph or source.is_graph_output():
                    continue
                source.name = copy.name
            source.type = source.type or copy.type
            source.shape = copy.shape if source.shape is None else source.shape
            copy.replace_all_uses_with(source, replace_graph_outputs=True)
            graph.remove(node, safe=True)


@dataclass(frozen=True)
class Optimisation:
    """A rewrite of a model, in place. ``rounding`` says how results may differ.

    Others than ``any_opset`` know the operators of the opsets from `OLDEST` on.
    """

    run: Callable[[ir.Model], object]
    rounding: str = ""
    any_opset: bool = False


def join_pads(model: ir.Model) -> None:
    """Let convolutions pad their inputs themselves, in place."""
    fuse_pad_into_conv_rule.apply_to_model(model)


#: The rewrites of a model, in the order in which they run.
OPTIMISATIONS = (
    Optimisation(fold_shapes),
    Optimisation(decompose, "powers are products"),
    Optimisation(join_pads),
    Optimisation(fold_batch_norms, "weights are rounded once more, by 2^-24"),
    Optimisation(drop_identities, any_opset=True),
    Optimisation(expand_late),
    Optimisation(split_products),
    Optimisation(use_heads, "sums over heads are added in another order"),
    Optimisation(unflatten_products, "sums are rounded before a row is added"),
    Optimisation(join_views),
    Optimisation(pad_hidden, "sums have more terms, which are zero"),
)


def _keep_outputs(model: onnx.ModelProto, before: Sequence[onnx.ValueInfoProto]) -> None:
    """Restore names and types of outputs.

    The passes keep only one of two equal outputs, and of an output and an equal inner value that
    has no type.
    """
    for value, own in zip(model.graph.output, before, strict=True):
        name = own.name
        if value.name != name:
            made = onnx.helper.make_node("Identity", [value.name], [name], name=f"{name}.Identity")
            model.graph.node.append(made)
        value.CopyFrom(own)
