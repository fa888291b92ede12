"""The fewest cycles in which a machine can run a model: its bound.

It is the largest of three times: that of the multiply-adds at the MAU's peak, that of the words
that must cross DRAM (each output, and each parameter and input that is read, once), and that of the
work on vectors (:mod:`.vector_work`). All rates come from the spec of the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil, prod

import onnx

from ..cost.moves import chip_dram_rate
from ..graph.dtypes import MNDtype, device_dtype
from ..graph.graph import TensorType
from ..layers.products.roles import DOUBLE, precision
from ..machine import Target
from ..pfvm.names import bodies_of
from ..pfvm.prepare import prepare, static_types
from .report import Report
from .vector_work import vector_cycles

#: If products may compute in this precision, DRAM may hold floats as halves.
_HALF = "half"
#: The element type whose products have the precision of doubles.
_WIDE = "double"


@dataclass(frozen=True)
class Bound:
    """The work of a model, and the fewest cycles for it.

    ``multiply_adds`` is the work of the MAU, ``mau`` its cycles. ``words`` are the long words that
    cross DRAM, ``dram`` their cycles. ``vector`` are the cycles of the work on vectors.
    """

    multiply_adds: int
    words: int
    mau: int
    dram: int
    vector: int

    @property
    def cycles(self) -> int:
        """The largest time: all units work beside each other."""
        return max(self.mau, self.dram, self.vector)

    @property
    def binds(self) -> str:
        """The name of the largest time."""
        return max(("mau", "dram", "vector"), key=self.__getattribute__)


def peak(target: Target, name: str) -> int:
    """Return the multiply-adds per cycle in a precision: a matrix times a vector in every MAB."""
    kind = precision(name, target)
    mabs = prod(target.pe_shape) // target.counts["pe"]
    return mabs * kind.rows * kind.block // len(kind.suffixes)


def bound_of(model: onnx.ModelProto, target: Target, precisions: Collection[str]) -> Bound:
    """Return the bound of a model with static shapes and without bodies (see :func:`bodies`).

    ``precisions`` names those in which its products may compute; the fastest counts. P0103, P0108.
    """
    # The optimiser's new values have no types.
    model = prepare(model)
    types = static_types(model)
    counted = [(node, node_multiply_adds(node, types)) for node in model.graph.node]
    adds = sum(count for _, count in counted)
    doubles = sum(c for node, c in counted if c and types[node.output[0]].elem == _WIDE)
    words = ceil(_bits(model, types, _HALF in precisions) / MNDtype.LONG.bits)
    fastest = max(peak(target, name) for name in precisions)
    mau = (adds - doubles) / fastest + doubles / peak(target, DOUBLE)
    vector = vector_cycles(model, types, target, halves=_HALF in precisions)
    return Bound(adds, words, ceil(mau), ceil(words / chip_dram_rate(target)), vector)


def bodies(model: onnx.ModelProto) -> str | None:
    """Return the first node with a body, such as a Loop, as text; None if there is none."""
    loops = (f"{node.op_type} `{node.name}`" for node in model.graph.node if bodies_of(node))
    return next(loops, None)


def record_bound(
    report: Report, model: onnx.ModelProto, target: Target, precisions: Collection[str]
) -> None:
    """Fill ``bound`` of the report of a finished compile; see ``docs/compiler/README.md``.

    ``factor`` is the cycles of the program over those of the bound. What cannot be told is None,
    and ``reason`` says why.
    """
    keys = (*(field.name for field in fields(Bound)), "cycles", "binds")
    data = report.data
    data["bound"] = facts = dict.fromkeys((*keys, "factor", "reason"))
    body = bodies(model)
    if body is not None:
        facts["reason"] = f"the work in the body of {body} is not counted"
        return
    bound = bound_of(model, target, precisions)
    facts |= {key: getattr(bound, key) for key in keys}
    hosted = len(data["host_fallback"])
    if hosted:
        facts["reason"] = f"the work on the host ({hosted} operators) costs no cycles of the device"
    elif not bound.cycles:
        facts["reason"] = "the model has no work that counts"
    else:
        facts["factor"] = round(data["cycles"] / bound.cycles, 2)


def _bits(model: onnx.ModelProto, types: Mapping[str, TensorType], halves: bool) -> int:
    """Return the bits of what must cross DRAM; ``halves`` says that floats are halves."""
    graph = model.graph
    outside = {tensor.name for tensor in (*graph.initializer, *graph.input)}
    sizes = Counter({value.name: prod(types[value.name].shape) for value in graph.output})
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in outside:
                # A table is read only where an index points.
                picked = node.op_type == "Gather" and place == 0
                read = prod(types[node.output[0] if picked else name].shape)
                sizes[name] = min(prod(types[name].shape), sizes[name] + read)
    return sum(size * _width(types[name].elem, halves) for name, size in sizes.items())


def _width(elem: str, halves: bool) -> int:
    dtype = device_dtype(elem)
    return MNDtype.HALF.bits if halves and dtype is MNDtype.FLOAT else dtype.bits


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


def node_multiply_adds(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> int:
    """Return the multiply-adds of a node; 0 if it is no product."""
    count = _PRODUCTS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if count is None:
        return 0
    shapes = [types[name].shape for name in node.input if name]
    return count(node, shapes, types[node.output[0]].shape)


def _attribute(node: onnx.NodeProto, name: str, default: int | bytes) -> int | bytes:
    values = (onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name)
    return next(values, default)
