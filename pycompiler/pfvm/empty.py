"""Removes operators on tensors without elements: their results are constants.

Neither the device nor every runtime has operators on empty tensors. A reduction of an empty tensor
becomes the constant that torch returns (the mean of nothing is NaN). An operator that also reads
other tensors is rewritten without the empty ones.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import error
from ..graph.dtypes import numpy_dtype
from .composites.writer import Rule, Writer, rewritten
from .known_shapes import tensor_types
from .opsets import STANDARD

#: Results with more elements stay operators, because a constant takes room in the app.
_MOST = 1 << 22
#: The result of each operator on an empty tensor.
_NOTHING: dict[str, float] = {
    "ReduceSum": 0.0,
    "ReduceSumSquare": 0.0,
    "ReduceL1": 0.0,
    "ReduceL2": 0.0,
    "ReduceProd": 1.0,
    "ReduceMean": np.nan,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
    "MatMul": 0.0,
}
#: The value of a loss without targets, by its reduction.
_LOSSES = {b"mean": np.nan, b"sum": 0.0}


def settle_empty(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``model`` without operators on empty tensors; ``model`` must have inferred types.

    An operator without a rule stays if its result has elements. Constants stand in place of the
    empty inputs that it reads.
    """
    types = tensor_types(model.graph)
    empty = {name for name, known in types.items() if 0 in known.shape}
    return rewritten(model, types, lambda n: None if empty.isdisjoint(_values(n)) else _settled)


def _values(node: onnx.NodeProto) -> list[str]:
    return [*node.input, *node.output]


def _settled(write: Writer) -> bool:
    """Write a node otherwise; False if it stays."""
    node = write.node
    results = [name for name in node.output if name]
    standard = node.domain in STANDARD and node.op_type != "Constant"
    if standard and results and all(_empty(write, name) for name in results):
        for name in results:
            _full(write, name, 0)
        return True
    known = standard and any(name in write.types for name in results)
    if known and _RULES.get(node.op_type, _nothing)(write):
        return True
    given = [name for name in node.input if name in write.given and _empty(write, name)]
    names = {n: write.constant(np.zeros(*_form(write, n)), "none") for n in given}
    write.again([names.get(name, name) for name in node.input])
    return bool(given)


def _empty(write: Writer, name: str) -> bool:
    """Whether a tensor is known to have no elements."""
    return name in write.types and 0 in write.types[name].shape


def _form(write: Writer, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return write.types[name].shape, numpy_dtype(write.types[name].elem)


def _full(write: Writer, name: str, value: float) -> None:
    """Append a constant that is filled with one number."""
    shape, dtype = _form(write, name)
    tensor = numpy_helper.from_array(np.full(shape, value, dtype), name)
    write.op("Constant", result=name, value=tensor)


def _truth(write: Writer, name: str) -> bool:
    """Whether a tensor holds only zeros and ones, because it is a cast of booleans."""
    maker = write.makers.get(name)
    source = maker.input[0] if maker is not None and maker.op_type == "Cast" else ""
    return source in write.types and write.types[source].elem == "bool"


def _nothing(write: Writer) -> bool:
    """Write the operator's result on an empty tensor as a constant."""
    value, (name, *_) = _NOTHING.get(write.node.op_type), write.node.output
    if value is None or not _empty(write, write.node.input[0]) or name not in write.types:
        return False
    shape, dtype = _form(write, name)
    if prod(shape) > _MOST:
        return False
    if dtype.kind in "iub":
        if np.isnan(value):
            return False
        if np.isinf(value):
            # The smallest or largest value that the type can hold.
            bounds = (0, 1)
            if dtype.kind != "b" and not _truth(write, write.node.input[0]):
                bounds = np.iinfo(dtype).min, np.iinfo(dtype).max
            value = bounds[value > 0]
    _full(write, name, value)
    return True


def _place(write: Writer) -> bool:
    """Refuse to find the index of an extreme element in an empty axis."""
    if not _empty(write, write.node.input[0]):
        return False
    reason = f"{write.node.op_type} `{write.node.name}` has no elements to choose from"
    raise error("P0108", reason=reason)


def _loss(write: Writer) -> bool:
    """Write the loss without targets as a constant."""
    (loss, *others), value = write.node.output, _LOSSES.get(write.attribute("reduction", b"mean"))
    if value is None or not _empty(write, write.node.input[1]) or loss not in write.types:
        return False
    _full(write, loss, value)
    for name in filter(None, others):
        _full(write, name, 0)
    return True


def _gemm(write: Writer) -> bool:
    """Replace a product without terms by zeros, plus the added operand if there is one."""
    (name,), added = write.node.output, write.input(2)
    if name not in write.types or prod(write.types[name].shape) > _MOST:
        return False
    if not added:
        _full(write, name, 0)
        return True
    if (beta := float(write.attribute("beta", 1.0))) != 1:
        added = write.op("Mul", added, beta)
    zeros = write.constant(np.zeros(*_form(write, name)), "zeros")
    write.op("Add", zeros, added, result=name)
    return True


def _concat(write: Writer) -> bool:
    """Drop the empty parts."""
    parts = [name for name in write.node.input if not _empty(write, name)]
    if len(parts) == 1:
        write.op("Identity", *parts, result=write.node.output[0])
    else:
        write.again(parts)
    return True


def _split(write: Writer) -> bool:
    """Make only the parts that have elements."""
    x, names, axis = write.node.input[0], write.node.output, int(write.attribute("axis", 0))
    if not all(name in write.types for name in names):
        return False
    parts = [name for name in names if not _empty(write, name)]
    for name in names:
        if name not in parts:
            _full(write, name, 0)
    if len(parts) == 1:
        write.op("Identity", x, result=parts[0])
        return True
    sizes = write.ints([write.types[name].shape[axis] for name in parts])
    made = write.again([x, sizes], parts)
    del made.attribute[:]
    made.attribute.append(helper.make_attribute("axis", axis))
    return True


_RULES: dict[str, Rule] = {
    "ArgMax": _place,
    "ArgMin": _place,
    "SoftmaxCrossEntropyLoss": _loss,
    "NegativeLogLikelihoodLoss": _loss,
    "Gemm": _gemm,
    "Concat": _concat,
    "Split": _split,
}
