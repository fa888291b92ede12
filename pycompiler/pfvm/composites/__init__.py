"""Composite operators such as Softmax and LayerNormalization.

The table says how each is written with operators that the device has layers for. Bodies of control
flow and functions stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import onnx

from ...graph.graph import TensorType
from ...machine import Target
from ...tolerance import ELEMENTWISE, FUNCTION, MOVE, PRODUCT, SUM
from ..opsets import OLDEST, opset_of
from . import (
    activations,
    convolution,
    determinants,
    einsum,
    fills,
    gemm,
    grid_sample,
    image_norms,
    integers,
    long_axes,
    moves,
    norms,
    picking,
    pool_indices,
    pooling,
    powers,
    quantization,
    recurrent,
    recut,
    resizing,
    roi_align,
    rotary,
    scaling,
    scans,
    scattering,
    sequences,
    shuffles,
    sorting,
    spectra,
    transposed_convolution,
)
from .tile_choice import passes_beside_convolutions
from .writer import FLOATS, INTEGERS, MOVED, NUMBERS, REALS, Rule, rewritten


@dataclass(frozen=True)
class Composite:
    """An operator that is written as other operators.

    ``write`` appends those, or returns False for a form of the operator that it does not rewrite.
    ``error`` is a row of the tolerance table. ``elems`` are the accepted element types of the first
    input. ``note`` names the forms that are rewritten. ``first`` says that the rule writes other
    operators of this table.
    """

    write: Rule
    error: str
    elems: frozenset[str] = FLOATS
    note: str = ""
    first: bool = False


_INDICES = frozenset({"int32", "int64"})
_SPACED = frozenset({"float", "double", "int16", "int32", "int64"})
#: The element types whose products only an operator on pairs has.
_FACTORS = frozenset({"double", "int32", "int64", "uint64"})
_SORTED = (
    f"up to {sorting.MOST_RESULTS} results one by one, more by rank: as many comparisons as "
    f"elements times the length of the line, up to {sorting.MOST_COMPARED:,}"
)
_LONG = "from more long words than half of LM numbers only, or rows of parameters"

_LONG_AXIS = "along axes that do not fit LM"
_SLICES = f"a step that divides its axis; {_LONG_AXIS}"
_PADS = f"{_LONG_AXIS}; modes other than `constant` along axes up to half of LM"
_RECUT = "shapes that cut the index differently, over more than half of LM"
_FITS = "along axes up to half of LM"
_MASKED = NUMBERS | {"bool"}
#: The element types of sums and products of neighbours.
_ADDED = REALS | {"int32", "int64", "uint64"}
_STEPS = f"up to {recurrent.MOST_STEPS} steps"
_UPDATES = (
    f"up to {scattering.MOST_UPDATES} updates of a place, in their order; more are summed, or the"
    " last row counts, where places times updates fit LM"
)
_POOLED = "windows that hold an element, along axes up to half of LM"

COMPOSITES: dict[str, Composite] = {
    "Softmax": Composite(norms.softmax, SUM, REALS),
    "LogSoftmax": Composite(norms.log_softmax, SUM, REALS),
    "LayerNormalization": Composite(norms.layer_norm, SUM, REALS, note="one output"),
    "RMSNormalization": Composite(norms.rms_norm, SUM, REALS),
    "Conv": Composite(convolution.conv, SUM, REALS),
    "ConvTranspose": Composite(transposed_convolution.conv_transpose, SUM, REALS),
    "BatchNormalization": Composite(norms.batch_norm, SUM, REALS),
    "InstanceNormalization": Composite(norms.instance_norm, SUM, REALS),
    "MaxPool": Composite(pooling.max_pool, MOVE, REALS, note=_POOLED),
    "AveragePool": Composite(pooling.average_pool, SUM, REALS, note=_POOLED),
    "LpPool": Composite(pooling.lp_pool, SUM, REALS, note=_POOLED),
    "MaxUnpool": Composite(
        pool_indices.unpool, MOVE, REALS, note="each index in its own picture; 0 for no element"
    ),
    "GlobalAveragePool": Composite(pooling.global_average_pool, SUM, REALS),
    "GlobalMaxPool": Composite(pooling.global_max_pool, MOVE, REALS),
    "GlobalLpPool": Composite(pooling.global_lp_pool, SUM, REALS),
    "GroupNormalization": Composite(image_norms.group_norm, SUM, REALS),
    "LRN": Composite(image_norms.local_response_norm, SUM, REALS),
    "MeanVarianceNormalization": Composite(image_norms.mean_variance_norm, SUM, REALS),
    "Mish": Composite(activations.mish, FUNCTION, REALS),
    "Concat": Composite(long_axes.concat, MOVE, MOVED, note=_LONG_AXIS),
    "Split": Composite(long_axes.split, MOVE, MOVED, note=_LONG_AXIS),
    "Expand": Composite(long_axes.expand, MOVE, MOVED, note=_LONG_AXIS),
    "Reshape": Composite(recut.reshape, MOVE, MOVED, note=_RECUT),
    "Flatten": Composite(recut.reshape, MOVE, MOVED, note=_RECUT),
    "Swish": Composite(
        activations.swish,
        FUNCTION,
        REALS,
        note="`alpha`; the bound is one for exact products with it",
    ),
    "Mod": Composite(
        activations.floored_remainder, MOVE, REALS, "`fmod` 0; a sum with the divisor is rounded"
    ),
    "DepthToSpace": Composite(shuffles.depth_to_space, MOVE, MOVED),
    "SpaceToDepth": Composite(shuffles.space_to_depth, MOVE, MOVED),
    "Resize": Composite(resizing.resize, SUM, REALS, note=_FITS),
    "GridSample": Composite(grid_sample.grid_sample, SUM, REALS),
    "AffineGrid": Composite(grid_sample.affine_grid, SUM, REALS, note="a constant size"),
    "RoiAlign": Composite(
        roi_align.roi_align,
        SUM,
        REALS,
        note="constant regions, or `sampling_ratio` above 0",
        first=True,
    ),
    "Pad": Composite(moves.pad, MOVE, MOVED, note=_PADS),
    "Tile": Composite(moves.tile, MOVE, MOVED),
    "Slice": Composite(moves.strided_slice, MOVE, MOVED, note=_SLICES),
    "Trilu": Composite(moves.triangle, MOVE, _MASKED),
    "Col2Im": Composite(moves.fold, SUM, REALS, note=_FITS),
    "CumSum": Composite(scans.cumulative_sum, SUM, _ADDED, _FITS, first=True),
    "CumProd": Composite(scans.cumulative_product, PRODUCT, _ADDED, _FITS, first=True),
    "ScatterElements": Composite(
        scattering.scatter_elements, SUM, scattering.SCATTERED, note=_UPDATES
    ),
    "ScatterND": Composite(scattering.scatter_nd, SUM, scattering.SCATTERED, note=_UPDATES),
    "ReverseSequence": Composite(sequences.reverse, MOVE, MOVED, note=_LONG),
    "TensorScatter": Composite(
        sequences.tensor_scatter,
        MOVE,
        scattering.SCATTERED,
        f"places that are no constant: up to {scattering.MOST_UPDATES} rows",
    ),
    "QuantizeLinear": Composite(
        quantization.quantize, MOVE, FLOATS, "to integers of 8 and 16 bits"
    ),
    "DequantizeLinear": Composite(quantization.dequantize, ELEMENTWISE, quantization.QUANTIZED),
    "DynamicQuantizeLinear": Composite(
        quantization.dynamic_quantize, MOVE, frozenset({"float"}), "the scale: 2^-22"
    ),
    "MatMulInteger": Composite(quantization.matmul, MOVE, quantization.BYTES),
    "QLinearMatMul": Composite(quantization.linear_matmul, MOVE, quantization.BYTES),
    "ConvInteger": Composite(quantization.convolution, MOVE, quantization.BYTES, first=True),
    "QLinearConv": Composite(
        quantization.linear_convolution, MOVE, quantization.BYTES, "the usual scales", first=True
    ),
    "TopK": Composite(sorting.top_k, MOVE, NUMBERS, note=_SORTED),
    "DFT": Composite(spectra.dft, SUM, REALS, note="constant length and axis"),
    "STFT": Composite(spectra.stft, SUM, REALS, note="constant step and length"),
    "Det": Composite(
        determinants.determinant, SUM, REALS, f"up to {determinants.MOST_ROWS} rows", first=True
    ),
    "Einsum": Composite(einsum.einsum, SUM, REALS),
    "EyeLike": Composite(fills.eye, MOVE, MOVED),
    "Range": Composite(fills.evenly_spaced, SUM, _SPACED, "a declared length"),
    "Mean": Composite(norms.mean_of_several, ELEMENTWISE, REALS),
    "Pow": Composite(powers.power, FUNCTION, _INDICES, "results within the range of the type"),
    "ReduceProd": Composite(scans.product, PRODUCT, _FACTORS),
    "ReduceMean": Composite(norms.mean, SUM, REALS, "of integers: in Double, cut to integers"),
    "Hardmax": Composite(scaling.hardmax, MOVE, REALS),
    "LpNormalization": Composite(scaling.lp_normalization, SUM, REALS),
    "ReduceLogSumExp": Composite(norms.log_sum_exp, SUM, REALS),
    "MatMul": Composite(integers.matmul, SUM, REALS | INTEGERS, "of a vector without parameters"),
    "Gemm": Composite(
        gemm.gemm,
        SUM,
        REALS | INTEGERS,
        note="`alpha`, `beta` other than 1, C that is no row, long sums",
    ),
    "Gather": Composite(picking.gather, MOVE, MOVED, note=_LONG),
    "GatherElements": Composite(picking.gather_elements, MOVE, NUMBERS),
    "GatherND": Composite(picking.gather_nd, MOVE, MOVED, note=_LONG),
    "OneHot": Composite(picking.one_hot, MOVE, NUMBERS, note="constant depth"),
    "ArgMax": Composite(picking.extreme_index, MOVE, NUMBERS),
    "ArgMin": Composite(picking.extreme_index, MOVE, NUMBERS),
    "RotaryEmbedding": Composite(rotary.rotary_embedding, SUM, REALS, first=True),
    "LSTM": Composite(recurrent.recurrent, SUM, REALS, note=_STEPS),
    "GRU": Composite(recurrent.recurrent, SUM, REALS, note=_STEPS),
    "RNN": Composite(recurrent.recurrent, SUM, REALS, note=_STEPS),
}


def has_first(model: onnx.ModelProto) -> bool:
    """Whether the model has operators that must be written out before all others."""
    rules = (_rule(node) for node in model.graph.node)
    return any(rule is not None and rule.first for rule in rules)


def decompose(
    model: onnx.ModelProto,
    types: dict[str, TensorType],
    target: Target | None,
    parts: int = 1,
    *,
    first: bool = False,
    keep: Collection[str] = (),
) -> onnx.ModelProto:
    """Return ``model`` with its composite operators written out.

    ``types`` are the types of its values. ``target`` is the machine, None for the host. Tiles suit
    one of ``parts`` of the batch. ``first`` writes out only operators that must come before all
    others. Operators whose first result is in
    ``keep`` stay as they are.
    """
    if opset_of(model) < OLDEST:  # in older opsets, axes of reductions are attributes
        return model
    passes = passes_beside_convolutions(model.graph, types)

    def rule_of(node: onnx.NodeProto) -> Rule | None:
        rule = _rule(node)
        if rule is None or (first and not rule.first) or node.output[0] in keep:
            return None
        return rule.write if types[node.input[0]].elem in rule.elems else None

    return rewritten(model, types, rule_of, target=target, passes=passes, parts=parts)


def _rule(node: onnx.NodeProto) -> Composite | None:
    return COMPOSITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
