"""The fewest cycles in which a machine can run a model: the bound of its row.

It is the larger of two times. One is that of the multiply-adds at the MAU's peak. The other is that
of the words that must cross DRAM: each parameter, input and output once. Both rates come from the
spec of the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

import onnx

from ..graph.dtypes import MNDtype, device_dtype
from ..graph.graph import TensorType
from ..layers.products.roles import precision
from ..machine import Target
from ..pfvm.prepare import prepare, static_types

#: The precision of products that each ``float_dtype`` chooses.
PRECISIONS = {"float": "single", "mixed": "half"}


@dataclass(frozen=True)
class Bound:
    """The work of a model: multiply-adds, and long words of DRAM; and the fewest cycles for it."""

    multiply_adds: int
    words: int
    cycles: int


def peak(target: Target, mode: str) -> int:
    """Return the multiply-adds per cycle: a matrix times a vector in every MAB."""
    kind = precision(PRECISIONS[mode], target)
    mabs = prod(target.pe_shape) // target.counts["pe"]
    return mabs * kind.rows * kind.block


def words_per_cycle(target: Target) -> int:
    """Return the long words that all DRAMs together read or write in one cycle."""
    return target.mv_block * target.groups


def bound_of(model: onnx.ModelProto, target: Target, mode: str) -> Bound:
    """Return the bound of a model with static shapes, for `float` or `mixed`."""
    model = prepare(model)  # the optimiser's new values have no types
    types = static_types(model)
    adds = sum(_multiply_adds(node, types) for node in model.graph.node)
    words = ceil(_bits(model, types, mode) / MNDtype.LONG.bits)
    cycles = max(ceil(adds / peak(target, mode)), ceil(words / words_per_cycle(target)))
    return Bound(adds, words, cycles)


def _bits(model: onnx.ModelProto, types: Mapping[str, TensorType], mode: str) -> int:
    """Return the bits of what must cross DRAM: floats are halves in `mixed`."""
    graph = model.graph
    parameters = {tensor.name for tensor in graph.initializer}
    sizes: Counter[str] = Counter()
    for value in (*graph.input, *graph.output):
        sizes[value.name] = prod(types[value.name].shape)
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in parameters:
                # A table is read only where an index points.
                picked = node.op_type == "Gather" and place == 0
                read = prod(types[node.output[0] if picked else name].shape)
                sizes[name] = min(prod(types[name].shape), sizes[name] + read)
    return sum(size * _width(types[name].elem, mode) for name, size in sizes.items())


def _width(elem: str, mode: str) -> int:
    dtype = device_dtype(elem)
    if dtype is MNDtype.FLOAT and mode == "mixed":
        return MNDtype.HALF.bits
    return dtype.bits


Shapes = Sequence[tuple[int, ...]]


def _matmul(node: onnx.NodeProto, shapes: Shapes, result: tuple[int, ...]) -> int:
    return prod(result) * shapes[0][-1]


def _gemm(node: onnx.NodeProto, shapes: Shapes, result: tuple[int, ...]) -> int:
    return prod(result) * shapes[0][0 if _attribute(node, "transA", 0) else 1]


def _conv(node: onnx.NodeProto, shapes: Shapes, result: tuple[int, ...]) -> int:
    return prod(result) * prod(shapes[1][1:])


def _conv_transpose(node: onnx.NodeProto, shapes: Shapes, result: tuple[int, ...]) -> int:
    return prod(shapes[0]) * prod(shapes[1][1:])


def _einsum(node: onnx.NodeProto, shapes: Shapes, result: tuple[int, ...]) -> int:
    if len(shapes) < 2:  # a sum or a transposition
        return 0
    sizes: dict[str, int] = {}
    equation = bytes(_attribute(node, "equation", b"")).decode().replace(" ", "")
    for term, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        before, dots, behind = term.partition("...")
        # The axes of an ellipsis are numbered from its end, as broadcasting does.
        hidden = len(shape) - len(before) - len(behind) if dots else 0
        names = [*before, *(f"-{axis}" for axis in range(hidden, 0, -1)), *behind]
        for name, size in zip(names, shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    return prod(sizes.values())


_PRODUCTS: Mapping[str, Callable[[onnx.NodeProto, Shapes, tuple[int, ...]], int]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
}


def _multiply_adds(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> int:
    """Return the multiply-adds of a node; 0 if it is no product. Bodies are not counted."""
    count = _PRODUCTS.get(node.op_type)
    if count is None:
        return 0
    shapes = [types[name].shape for name in node.input if name]
    return count(node, shapes, types[node.output[0]].shape)


def _attribute(node: onnx.NodeProto, name: str, default: int | bytes) -> int | bytes:
    found = (onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name)
    return next(found, default)
