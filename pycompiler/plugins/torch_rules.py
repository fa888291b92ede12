"""How operations of torch are written in ONNX operators that run one by one on a device.

A rule takes an :class:`Eager` and the operands: device tensors, numbers, lists of sizes. Operations
without a rule are taken apart by torch's own decompositions until rules are left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch._decomp import decomposition_table

from ..frontend.gradient_rules import GRADIENT_RULES
from . import torch_operators as ops
from . import torch_windows as windows
from .torch_norms import group_norm


@lru_cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return what takes operations apart: our own, the rules of gradients, then those of torch."""
    own = {torch.ops.aten.native_group_norm.default: group_norm}
    return {**decomposition_table, **GRADIENT_RULES, **own}


#: Elementwise operations that torch's primitives have by the same names.
_PRIMS = (
    *("abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cos", "div", "eq"),
    *("erf", "exp", "expm1", "floor", "ge", "gt", "le", "log", "log1p", "lt", "maximum", "minimum"),
    *("mul", "ne", "neg", "reciprocal", "round", "rsqrt", "sign", "sin", "sqrt", "sub", "tanh"),
    "where",
)

#: By the name of the operation, as in `aten.add.Tensor`.
RULES: dict[str, ops.Rule] = {
    **{
        f"aten.{name}.default": ops.single(op)
        for name, op in {
            "abs": "Abs", "cos": "Cos", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log",
            "logical_not": "Not", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu",
            "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sqrt": "Sqrt",
            "tanh": "Tanh",
        }.items()
    },
    **{
        f"aten.{name}.{kind}": ops.pair(op)
        for name, op in {
            "add": "Add", "div": "Div", "eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater",
            "le": "LessOrEqual", "lt": "Less", "mul": "Mul", "sub": "Sub",
        }.items()
        for kind in ("Tensor", "Scalar")
    },
    "aten._log_softmax.default": ops.softmax("LogSoftmax"),
    "aten.ops.softmax.default": ops.softmax("Softmax"),
    "aten._to_copy.default": ops.cast,
    "aten._unsafe_view.default": ops.reshaped,
    "aten.amax.default": ops.reduced("ReduceMax"),
    "aten.amin.default": ops.reduced("ReduceMin"),
    "aten.argmax.default": ops.place_of("ArgMax"),
    "aten.argmin.default": ops.place_of("ArgMin"),
    "aten.avg_pool2d.default": windows.average_pool(2),
    "aten.avg_pool3d.default": windows.average_pool(3),
    "aten.bitwise_and.Tensor": ops.bits("And", "BitwiseAnd"),
    "aten.bitwise_not.default": ops.bits_not,
    "aten.bitwise_or.Tensor": ops.bits("Or", "BitwiseOr"),
    "aten.bitwise_xor.Tensor": ops.bits("Xor", "BitwiseXor"),
    "aten.bmm.default": ops.pair("MatMul"),
    "aten.cat.default": ops.joined,
    "aten.clone.default": ops.same,
    "aten.convolution.default": ops.convolution,
    "aten.copy.default": ops.copied,
    "aten.embedding.default": ops.looked_up,
    "aten.empty_like.default": ops.like(0),
    "aten.expand.default": ops.expanded,
    "aten.expm1.default": ops.exp_minus_one,
    "aten.fill.Scalar": ops.full_like,
    "aten.full_like.default": ops.full_like,
    "aten.gather.default": ops.gathered,
    "aten.gelu.default": ops.gelu,
    "aten.log1p.default": ops.log_one_plus,
    "aten.logical_and.default": ops.pair("And"),
    "aten.max.default": ops.whole("ReduceMax"),
    "aten.max_pool2d_with_indices.default": windows.max_pool(2),
    "aten.max_pool3d_with_indices.default": windows.max_pool(3),
    "aten.maximum.default": ops.pair("Max"),
    "aten.mean.default": ops.whole("ReduceMean"),
    "aten.mean.dim": ops.reduced("ReduceMean"),
    "aten.min.default": ops.whole("ReduceMin"),
    "aten.minimum.default": ops.pair("Min"),
    "aten.mm.default": ops.pair("MatMul"),
    "aten.ne.Scalar": ops.not_equal,
    "aten.ne.Tensor": ops.not_equal,
    "aten.new_ones.default": ops.new(1),
    "aten.new_zeros.default": ops.new(0),
    "aten.ones_like.default": ops.like(1),
    "aten.permute.default": ops.permuted,
    "aten.pow.Tensor_Scalar": ops.powered,
    "aten.pow.Tensor_Tensor": ops.powered,
    "aten.rsqrt.default": ops.inverse_root,
    "aten.scatter.src": ops.scattered,
    "aten.scatter.value": ops.scattered,
    "aten.select.int": ops.selected,
    "aten.slice.Tensor": ops.sliced,
    "aten.split.Tensor": ops.split,
    "aten.split_with_sizes.default": ops.split,
    "aten.squeeze.dim": ops.squeezed,
    "aten.squeeze.dims": ops.squeezed,
    "aten.sum.default": ops.whole("ReduceSum"),
    "aten.sum.dim_IntList": ops.reduced("ReduceSum"),
    "aten.t.default": ops.transposed,
    "aten.transpose.int": ops.swapped,
    "aten.unsafe_split.Tensor": ops.split,
    "aten.unsqueeze.default": ops.unsqueezed,
    "aten.view.default": ops.reshaped,
    "aten.where.ScalarOther": ops.where,
    "aten.where.ScalarSelf": ops.where,
    "aten.where.self": ops.where,
    "aten.zero.default": ops.like(0),
    "aten.zeros_like.default": ops.like(0),
}  # fmt: skip

#: What torch's decompositions end in, where it means the same.
RULES |= {
    name.replace("aten.", "prims.").replace(f".{kind}", ".default"): rule
    for name, rule in RULES.items()
    for kind in ("default", "Tensor", "self")
    if name.endswith(f".{kind}") and name.split(".")[1] in _PRIMS
}
RULES |= {
    "prims.broadcast_in_dim.default": ops.spread,
    "prims.convert_element_type.default": ops.cast,
    "prims.sum.default": ops.prim_sum,
    "prims.var.default": ops.variance,
}
