"""Operators with a gradient: shapes, constants and attributes that their rules distinguish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto

FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class Case:
    """An operator: shapes of its float inputs, constants behind them, attributes.

    Sizes are drawn: a letter in a shape is one of them. ``scale`` and ``shift`` move the operands
    to where the operator is smooth.
    """

    operator: str
    shapes: tuple[str, ...] = ("ab",)
    constants: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    scale: float = 1.0
    shift: float = 0.0
    name: str = ""


def _ints(*values: int) -> np.ndarray:
    return np.asarray(values, dtype=np.int64)


_PLAIN = (
    "Abs Celu Elu Erf Exp HardSigmoid HardSwish Identity LeakyRelu Neg Relu Selu Sigmoid "
    "Softplus Tanh Mish Atan Cos Sin Ceil Floor Round Sign Trilu"
)
_FLIPS = {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
_GLOBAL = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
_PADDED = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
POSITIVE = {"scale": 0.2, "shift": 2.0}
CASES = [
    *(Case(name) for name in _PLAIN.split()),
    Case("Celu", attributes={"alpha": 0.7}, name="alpha"),
    Case("Elu", attributes={"alpha": 1.7}, name="alpha"),
    Case("HardSigmoid", attributes={"alpha": 0.3, "beta": 0.4}, name="alpha"),
    Case("LeakyRelu", attributes={"alpha": 0.3}, name="alpha"),
    Case("Swish"),
    Case("Gelu"),
    Case("Gelu", attributes={"approximate": "tanh"}, name="tanh"),
    Case("Log", **POSITIVE),
    *(Case(name, scale=0.1) for name in ("Acos", "Asin", "Atanh", "Cosh", "Sinh", "Tan")),
    Case("Asinh"),
    Case("Acosh", scale=0.2, shift=3.0),
    Case("Sqrt", **POSITIVE),
    Case("Reciprocal", **POSITIVE),
    Case("Cast", attributes={"to": FLOAT}),
    *(Case(name, ("ab", "ab")) for name in ("Add", "Sub", "Mul", "Max", "Min", "Sum")),
    *(Case(name, ("cab", "b"), name="row") for name in ("Add", "Sub", "Mul")),
    *(Case(name, ("b", "ca1"), name="column") for name in ("Add", "Sub", "Mul", "Max")),
    Case("Div", ("ab", "1b"), **POSITIVE),
    Case("Pow", ("ab", "b"), **POSITIVE),
    Case("Pow", ("ab",), (np.float32(3),), name="cube"),
    Case("Pow", ("ab",), (np.int64(2),), name="whole"),
    Case("Clip", ("ab",), (np.float32(-0.31), np.float32(0.42))),
    Case("Clip", ("ab", "", ""), name="bounds"),
    Case("DFT", ("ab2",)),
    Case("DFT", ("ab1",), attributes={"onesided": 1}, name="half"),
    # Without the attribute, onnx infers a shape with twice the frequencies.
    Case(
        "STFT",
        ("271",),
        (np.int64(2), np.float32([0.2, 0.9, 1.0, 0.3]), np.int64(4)),
        {"onesided": 1},
    ),
    Case("PRelu", ("ab", "b")),
    Case("Where", ("ab", "b"), name="where"),
    Case("Expand", ("a1",), (_ints(2, 1, 5),)),
    Case("Flatten", ("abc",), (), {"axis": 2}),
    Case("Reshape", ("ab",), (_ints(1, -1),)),
    Case("Squeeze", ("1a1",), (_ints(0),)),
    Case("Unsqueeze", ("ab",), (_ints(1),)),
    Case("Transpose", ("abc",), (), {"perm": [2, 0, 1]}),
    Case("Transpose", ("abc",), name="reversed"),
    Case("Tile", ("ab",), (_ints(3, 2),)),
    Case("Concat", ("abc", "a2c", "abc"), (), {"axis": 1}),
    Case("Split", ("6b",), (), {"num_outputs": 3, "axis": 0}, outputs=3),
    Case("Split", ("b6",), (_ints(1, 5),), attributes={"axis": -1}, outputs=2, name="sizes"),
    Case("Slice", ("9b",), (_ints(1), _ints(8), _ints(0), _ints(3))),
    Case("Slice", ("9b",), (_ints(0, -1), _ints(9, -99), _ints(0, 1), _ints(2, -1)), name="back"),
    Case("Slice", ("9b",), (_ints(7), _ints(1), _ints(0), _ints(-3)), name="back by three"),
    Case("Pad", ("ab",), (_ints(1, 0, 2, 3),)),
    Case("Pad", ("3b",), (_ints(-1, 2, 1, 0),), name="negative"),
    Case("Pad", ("33",), (_ints(1, 1, 1, 1),), attributes={"mode": "reflect"}, name="reflect"),
    Case("Gather", ("abc",), (np.asarray([[1, 0], [-1, 1]]),), attributes={"axis": 0}),
    Case("Gather", ("abc",), (np.asarray([1, 0, 1]),), attributes={"axis": 1}, name="axis"),
    Case("Gather", ("abc",), (np.asarray(-1),), attributes={"axis": 1}, name="one"),
    Case("GatherElements", ("3b",), (np.asarray([[1, 0], [-1, 1]]),), attributes={"axis": 0}),
    Case(
        "GatherElements", ("3b",), (np.asarray([[1, 0], [1, 1]]),), {"axis": 1}, name="other axis"
    ),
    Case("GatherND", ("abc",), (np.asarray([[1, 0], [0, 1], [1, 0]]),)),
    Case("ScatterElements", ("3b", "22"), name="scatter"),
    Case("ScatterElements", ("3b", "22"), (), {"reduction": "add"}, name="scatter"),
    Case("ScatterND", ("3b", "2b"), name="scatter"),
    Case("ScatterND", ("3b", "2b"), (), {"reduction": "add"}, name="scatter"),
    Case("CumProd", ("ab",), (np.int64(1),), **POSITIVE),
    Case("TopK", ("ab",), (_ints(2),), outputs=2),
    Case("TopK", ("ab",), (_ints(2),), {"axis": 0, "largest": 0}, outputs=2, name="least"),
    Case("CumSum", ("ab",), (np.int64(1),)),
    Case("CumSum", ("ab",), (np.int64(0),), {"reverse": 1, "exclusive": 1}, name="reverse"),
    *(
        Case(name, ("abc",), (_ints(0, 2),), {"keepdims": keep}, name=f"keep {keep}", **POSITIVE)
        for name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean")
        for keep in (0, 1)
    ),
    Case("ReduceSum", ("abc",), (), {"keepdims": 0}, name="all"),
    Case("ReduceL1", ("abc",), (_ints(1),), **POSITIVE),
    Case("ReduceL2", ("abc",), (_ints(1),), **POSITIVE),
    Case("ReduceLogSumExp", ("abc",), (_ints(1),)),
    Case("Softmax", ("abc",), (), {"axis": 1}),
    Case("LogSoftmax", ("abc",)),
    Case("LayerNormalization", ("abc", "c", "c"), scale=3.0),
    Case("RMSNormalization", ("abc", "c"), scale=3.0),
    Case("BatchNormalization", ("2abc", "a", "a"), (np.ones(0), np.ones(0)), name="batch"),
    Case("InstanceNormalization", ("2a6c", "a", "a")),
    Case("GroupNormalization", ("24bc", "4", "4"), (), {"num_groups": 2}),
    Case("LRN", ("2abc",), (), {"size": 3}),
    Case("MeanVarianceNormalization", ("2a6c",), (), {"axes": [0, 2, 3]}, scale=3.0),
    Case("Attention", ("24ac", "22bc", "22bc")),
    Case("Attention", ("24ac", "22bc", "22b3"), (), {"is_causal": 1, "softcap": 2.0}, name="c"),
    Case("RotaryEmbedding", ("2ab4", "2b2", "2b2")),
    Case("LpNormalization", ("abc",), (), {"axis": 1}, scale=3.0),
    Case("LpNormalization", ("abc",), (), {"axis": 2, "p": 1}, scale=3.0, name="p"),
    Case("MatMul", ("ab", "bc")),
    Case("MatMul", ("2abc", "ca"), name="rows"),
    Case("MatMul", ("2abc", "2acb"), name="batches"),
    Case("MatMul", ("2abc", "acb"), name="fewer batches"),
    Case("MatMul", ("a", "ab"), name="vector"),
    Case("MatMul", ("2ab", "b"), name="column"),
    Case("MatMul", ("a", "a"), name="inner"),
    Case("Gemm", ("ab", "bc", "c")),
    Case(
        "Gemm",
        ("ba", "cb", "ac"),
        attributes=_FLIPS,
        name="flips",
    ),
    Case("Gemm", ("ba", "bc"), (), {"transA": 1}, name="left flip"),
    Case("Gemm", ("ab", "cb"), (), {"transB": 1}, name="right flip"),
    Case("Einsum", ("abc", "cb"), (), {"equation": "ijk,kj->ji"}),
    Case("Conv", ("2a67", "ba33", "b"), (), {"pads": [1, 1, 1, 1]}),
    Case(
        "Conv",
        ("2a87", "ba32"),
        attributes={"strides": [2, 3], "pads": [1, 0, 2, 1]},
        name="strides",
    ),
    Case("Conv", ("1a89", "ba23"), (), {"dilations": [2, 3]}, name="dilations"),
    Case("Conv", ("2468", "6232", "6"), (), {"group": 2}, name="groups"),
    Case("Conv", ("2467", "4133"), (), {"group": 4, "pads": [1, 1, 1, 1]}, name="depthwise"),
    Case("Conv", ("2a9", "ba4"), (), {"strides": [2], "auto_pad": "SAME_UPPER"}, name="1d"),
    Case(
        "ConvTranspose", ("2a45", "ab33", "b"), attributes={"strides": [2, 2], "pads": [1, 1, 1, 1]}
    ),
    Case(
        "ConvTranspose",
        ("2445", "4232"),
        attributes={"strides": [2, 3], "output_padding": [1, 2], "group": 2},
        name="output padding",
    ),
    Case("MaxPool", ("2a67",), (), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case(
        "MaxPool", ("2a67",), attributes={"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}, name="pads"
    ),
    Case(
        "MaxPool",
        ("2a87",),
        attributes={"kernel_shape": [2, 3], "strides": [2, 3], "ceil_mode": 1, "dilations": [2, 1]},
        name="ceil",
    ),
    Case("AveragePool", ("2a67",), (), {"kernel_shape": [2, 3], "strides": [1, 2]}),
    Case(
        "AveragePool",
        ("2a67",),
        attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        name="pads",
    ),
    Case(
        "AveragePool",
        ("2a67",),
        attributes={**_PADDED, "count_include_pad": 1},
        name="counted",
    ),
    Case("LpPool", ("2a67",), (), {"kernel_shape": [2, 2]}, **POSITIVE),
    *(Case(name, ("2a67",), **POSITIVE) for name in _GLOBAL),
    Case("DepthToSpace", ("18bc",), (), {"blocksize": 2}),
    Case("SpaceToDepth", ("1a46",), (), {"blocksize": 2}),
    Case(
        "Resize",
        ("2a45",),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), _ints(2, 3, 7, 9)),
        {"mode": "linear"},
        name="resize",
    ),
    Case("Col2Im", ("184",), (_ints(3, 3), _ints(2, 2)), name="col2im"),
    Case("Mean", ("ab", "ab", "b")),
    Case("Mod", ("ab",), (np.float32([3.7]),), {"fmod": 1}, scale=0.2, shift=6.0),
    Case("Det", ("33",), shift=0.2),
    Case(
        "MaxUnpool",
        ("1222",),
        (_ints(0, 3, 10, 15, 17, 18, 24, 31).reshape(1, 2, 2, 2),),
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    Case("SoftmaxCrossEntropyLoss", ("ab",), name="loss"),
    Case("NegativeLogLikelihoodLoss", ("ab",), name="loss"),
    Case(
        "GridSample",
        ("1a45", "1232"),
        name="grid",
        scale=0.3,
        attributes={"padding_mode": "border"},
    ),
    Case("AffineGrid", ("223",), (_ints(2, 1, 3, 4),)),
    Case(
        "RoiAlign",
        ("2a45",),
        (np.float32([[-0.3, 0.4, 3.3, 2.9], [1.2, 0.7, 6.1, 2.2]]), _ints(1, 0)),
        {"output_height": 2, "output_width": 3},
    ),
    Case("ReverseSequence", ("32b",), (_ints(3, 2),)),
    Case("TensorScatter", ("24b", "22b"), (_ints(1, 2),)),
]
#: Recurrent layers, whose gradients have tests of their own (``test_recurrent.py``).
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
#: Operators whose gradient is refused (P0119).
REFUSED = frozenset({"ReduceProd"})
#: Operators without a gradient: their operands or results are no floats, or steps.
NONE = frozenset(
    {
        "And",
        "ArgMax",
        "ArgMin",
        "BitShift",
        "BitwiseAnd",
        "BitwiseNot",
        "BitwiseOr",
        "BitwiseXor",
        "Equal",
    }
    | {
        "Greater",
        "GreaterOrEqual",
        "Hardmax",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "Not",
        "OneHot",
    }
    | {"Or", "Xor"}
    | {"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger"}
    | {"EyeLike", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "Range"}
)
