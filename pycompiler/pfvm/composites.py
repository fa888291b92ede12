"""Operators that are made of others: Softmax, LayerNormalization and their kin.

A table of operator names and how each is written with operators that the device has layers for.
Bodies of control flow and functions are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..graph.graph import TensorType
from .names import all_names, fresh
from .session import Array


@dataclass
class Writer:
    """Collects the nodes that replace one node."""

    node: onnx.NodeProto
    types: dict[str, TensorType]
    taken: set[str]
    #: inputs that are constants
    data: dict[str, Array]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def type(self, index: int) -> TensorType:
        """Return the type of an input."""
        return self.types[self.node.input[index]]

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        for found in self.node.attribute:
            if found.name == name:
                return helper.get_attribute_value(found)
        return default

    def constant(self, array: Array, what: str) -> str:
        """Return the name of a constant."""
        name = self._name(what)
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def number(self, value: float) -> str:
        """Return the name of a constant of the node's own element type."""
        dtype = helper.tensor_dtype_to_np_dtype(
            onnx.TensorProto.DataType.Value(self.type(0).elem.upper())
        )
        return self.constant(np.asarray(value, dtype=dtype), "number")

    def ints(self, values: Sequence[int]) -> str:
        """Return the name of a constant of axes."""
        return self.constant(np.asarray(values, dtype=np.int64), "axes")

    def op(self, op: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        """Append a node; return its result."""
        name = result or self._name(op)
        made = helper.make_node(op, list(inputs), [name], **attributes)
        made.name = f"{self.node.name or self.node.op_type}.{op}.{len(self.nodes)}"
        made.metadata_props.extend(self.node.metadata_props)
        self.nodes.append(made)
        return name

    def _name(self, what: str) -> str:
        name = fresh(f"{self.node.output[0]}.{what}", self.taken)
        self.taken.add(name)
        return name

    def mean(self, value: str, axes: Sequence[int], count: int, result: str | None = None) -> str:
        """Append the mean over axes, which stay with size 1."""
        total = self.op("ReduceSum", value, self.ints(axes), keepdims=1)
        return self.op("Mul", total, self.number(1.0 / count), result=result)


def _axis(write: Writer, default: int) -> int:
    rank = len(write.type(0).shape)
    return int(write.attribute("axis", default)) % rank if rank else 0


def _softmax(write: Writer) -> bool:
    axes = [_axis(write, -1)] if write.type(0).shape else []
    if not axes:
        return False
    shifted, total = _shifted(write, axes)
    write.op("Mul", shifted, write.op("Reciprocal", total), result=write.node.output[0])
    return True


def _shifted(write: Writer, axes: list[int]) -> tuple[str, str]:
    value = write.node.input[0]
    largest = write.op("ReduceMax", value, write.ints(axes), keepdims=1)
    powers = write.op("Exp", write.op("Sub", value, largest))
    return powers, write.op("ReduceSum", powers, write.ints(axes), keepdims=1)


def _log_softmax(write: Writer) -> bool:
    if not write.type(0).shape:
        return False
    axes = [_axis(write, -1)]
    value = write.node.input[0]
    largest = write.op("ReduceMax", value, write.ints(axes), keepdims=1)
    moved = write.op("Sub", value, largest)
    total = write.op("ReduceSum", write.op("Exp", moved), write.ints(axes), keepdims=1)
    write.op("Sub", moved, write.op("Log", total), result=write.node.output[0])
    return True


def _layer_norm(write: Writer) -> bool:
    if len(write.node.output) > 1 and any(write.node.output[1:]):
        return False
    shape = write.type(0).shape
    axes = list(range(_axis(write, -1), len(shape)))
    count = prod(shape[axis] for axis in axes)
    value = write.node.input[0]
    moved = write.op("Sub", value, write.mean(value, axes, count))
    normal = _normalised(write, moved, axes, count)
    return _scaled(write, normal)


def _rms_norm(write: Writer) -> bool:
    shape = write.type(0).shape
    axes = list(range(_axis(write, -1), len(shape)))
    normal = _normalised(write, write.node.input[0], axes, prod(shape[a] for a in axes))
    return _scaled(write, normal)


def _normalised(write: Writer, value: str, axes: Sequence[int], count: int) -> str:
    variance = write.mean(write.op("Mul", value, value), axes, count)
    epsilon = write.number(float(write.attribute("epsilon", 1e-5)))
    deviation = write.op("Sqrt", write.op("Add", variance, epsilon))
    return write.op("Mul", value, write.op("Reciprocal", deviation))


def _scaled(write: Writer, normal: str) -> bool:
    scale, shift = (*write.node.input[1:], "", "")[:2]
    for op, operand in (("Mul", scale), ("Add", shift)):
        if operand:
            normal = write.op(op, normal, operand)
    write.op("Identity", normal, result=write.node.output[0])
    return True


def _batch_norm(write: Writer) -> bool:
    if int(write.attribute("training_mode", 0)) or len(write.node.output) > 1:
        return False
    shape = write.type(0).shape
    wide = write.ints([-1] + [1] * (len(shape) - 2))
    value, *facts = write.node.input
    scale, shift, mean, variance = (write.op("Reshape", name, wide) for name in facts)
    epsilon = write.number(float(write.attribute("epsilon", 1e-5)))
    deviation = write.op("Sqrt", write.op("Add", variance, epsilon))
    factor = write.op("Mul", scale, write.op("Reciprocal", deviation))
    moved = write.op("Mul", write.op("Sub", value, mean), factor)
    write.op("Add", moved, shift, result=write.node.output[0])
    return True


def _mean(write: Writer) -> bool:
    shape = write.type(0).shape
    if len(write.node.input) > 1 and write.node.input[1]:
        return False
    axes = list(range(len(shape)))
    keep = int(write.attribute("keepdims", 1))
    return _mean_over(write, axes, keep)


def _mean_over(write: Writer, axes: Sequence[int], keep: int) -> bool:
    shape = write.type(0).shape
    count = prod(shape[axis] for axis in axes)
    total = write.op("ReduceSum", write.node.input[0], write.ints(axes), keepdims=keep)
    write.op("Mul", total, write.number(1.0 / max(1, count)), result=write.node.output[0])
    return True


def _gemm(write: Writer) -> bool:
    """Take alpha, beta and a C that is no row out of a Gemm."""
    alpha, beta = (float(write.attribute(name, 1.0)) for name in ("alpha", "beta"))
    bias = write.node.input[2] if len(write.node.input) > 2 else ""
    columns = write.types[write.node.output[0]].shape[1]
    shape = write.types[bias].shape if bias else ()
    row = bool(shape) and prod(shape[:-1]) == 1 and shape[-1] == columns
    if alpha == 1.0 and (not bias or (beta == 1.0 and row)):
        return False
    flags: dict[str, Any] = {n: int(write.attribute(n, 0)) for n in ("transA", "transB")}
    goal = write.node.output[0]
    found = write.op("Gemm", *write.node.input[:2], **flags)
    if alpha != 1.0:
        found = write.op("Mul", found, write.number(alpha))
    if bias:
        if beta != 1.0:
            bias = write.op("Mul", bias, write.number(beta))
        found = write.op("Add", found, bias)
    write.op("Identity", found, result=goal)
    return True


# -- indices -----------------------------------------------------------------------------------


def _picked(write: Writer, table: str, index: str, axis: int, rank: int, size: int) -> str:
    """Append the sum over ``axis`` of ``table`` where the position on it is ``index``.

    Both have ``rank`` axes, ``index`` size 1 on ``axis``; ``size`` is that of ``table`` there.
    """
    elem = write.type(1).elem
    dtype = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(elem.upper()))
    wide = [size if place == axis else 1 for place in range(rank)]
    places = write.constant(np.arange(size, dtype=dtype).reshape(wide), "places")
    zero = write.constant(np.zeros((), dtype=dtype), "zero")
    whole = write.constant(np.asarray(size, dtype=dtype), "size")
    index = write.op("Where", write.op("Less", index, zero), write.op("Add", index, whole), index)
    chosen = write.op("Where", write.op("Equal", index, places), table, write.number(0.0))
    return write.op("ReduceSum", chosen, write.ints([axis]), keepdims=0)


def _unsqueezed(write: Writer, value: str, axes: Sequence[int]) -> str:
    return write.op("Unsqueeze", value, write.ints(axes)) if axes else value


def _gather(write: Writer) -> bool:
    table, index = write.type(0), write.type(1)
    axis = _axis(write, 0)
    name = write.node.input[1]
    given = write.data.get(name)
    if given is not None and given.size == 1:
        size = table.shape[axis]
        at = int(given.reshape(-1)[0]) % size
        ends = [write.ints([v]) for v in (at, at + 1, axis)]
        part = write.op("Slice", write.node.input[0], *ends)
        if index.shape:
            shape = (*table.shape[:axis], *index.shape, *table.shape[axis + 1 :])
            write.op("Reshape", part, write.ints(shape), result=write.node.output[0])
        else:
            write.op("Squeeze", part, write.ints([axis]), result=write.node.output[0])
        return True
    if table.elem not in _FLOATS:
        return False
    inner = len(index.shape)
    rank = len(table.shape) + inner
    after = len(table.shape) - axis - 1
    # Axes: those before, the index's, the one it picks from, those behind.
    wide = _unsqueezed(write, write.node.input[0], range(axis, axis + inner))
    places = [*range(axis), axis + inner, *range(rank - after, rank)]
    wide_index = _unsqueezed(write, name, places)
    found = _picked(write, wide, wide_index, axis + inner, rank, table.shape[axis])
    write.op("Identity", found, result=write.node.output[0])
    return True


def _gather_elements(write: Writer) -> bool:
    table, index = write.type(0), write.type(1)
    axis = _axis(write, 0)
    value = write.node.input[0]
    for place, (own, wanted) in enumerate(zip(table.shape, index.shape, strict=True)):
        if place != axis and own != wanted:
            value = write.op("Slice", value, *(write.ints([v]) for v in (0, wanted, place)))
    wide = _unsqueezed(write, value, [axis])
    wide_index = _unsqueezed(write, write.node.input[1], [axis + 1])
    rank = len(table.shape) + 1
    found = _picked(write, wide, wide_index, axis + 1, rank, table.shape[axis])
    write.op("Identity", found, result=write.node.output[0])
    return True


def _one_hot(write: Writer) -> bool:
    index, values = write.type(0), write.data.get(write.node.input[2])
    depth = write.data.get(write.node.input[1])
    if values is None or depth is None or index.elem not in ("int64", "int32"):
        return False
    size, rank = int(depth.reshape(-1)[0]), len(index.shape) + 1
    axis = int(write.attribute("axis", -1)) % rank
    wide = [size if place == axis else 1 for place in range(rank)]
    places = write.constant(np.arange(size).reshape(wide).astype(index.elem), "places")
    own = write.node.input[0]
    zero = write.constant(np.zeros((), dtype=index.elem), "zero")
    whole = write.constant(np.asarray(size, dtype=index.elem), "size")
    own = write.op("Where", write.op("Less", own, zero), write.op("Add", own, whole), own)
    same = write.op("Equal", _unsqueezed(write, own, [axis]), places)
    off, on = (write.constant(v, "value") for v in values.reshape(-1))
    write.op("Where", same, on, off, result=write.node.output[0])
    return True


def _extreme_index(write: Writer) -> bool:
    """Find the first place of the largest or smallest element among places as floats."""
    shape = write.type(0).shape
    if not shape or int(write.attribute("select_last_index", 0)):
        return False
    axis = _axis(write, 0)
    size = shape[axis]
    reduce = "ReduceMax" if write.node.op_type == "ArgMax" else "ReduceMin"
    value = write.node.input[0]
    best = write.op(reduce, value, write.ints([axis]), keepdims=1)
    wide = [size if place == axis else 1 for place in range(len(shape))]
    places = write.constant(np.arange(size, dtype=np.float32).reshape(wide), "places")
    where = write.op("Where", write.op("Equal", value, best), places, write.number(float(size)))
    keep = int(write.attribute("keepdims", 1))
    found = write.op("ReduceMin", where, write.ints([axis]), keepdims=keep)
    write.op("Cast", found, result=write.node.output[0], to=onnx.TensorProto.INT64)
    return True


# -- losses ------------------------------------------------------------------------------------


def _cross_entropy(write: Writer) -> bool:
    shape = write.type(0).shape
    axes = [1]
    value = write.node.input[0]
    largest = write.op("ReduceMax", value, write.ints(axes), keepdims=1)
    moved = write.op("Sub", value, largest)
    total = write.op("ReduceSum", write.op("Exp", moved), write.ints(axes), keepdims=1)
    chances = write.op("Sub", moved, write.op("Log", total))
    if len(write.node.output) > 1 and write.node.output[1]:
        write.op("Identity", chances, result=write.node.output[1])
    return _likelihood(write, chances, shape)


def _nll(write: Writer) -> bool:
    return _likelihood(write, write.node.input[0], write.type(0).shape)


def _likelihood(write: Writer, chances: str, shape: tuple[int, ...]) -> bool:
    """Append the negative likelihood of the targets, weighted and reduced."""
    target = write.node.input[1]
    elem = write.type(1).elem
    size, rank = shape[1], len(shape)
    wide = [size if place == 1 else 1 for place in range(rank)]
    places = write.constant(np.arange(size).reshape(wide).astype(elem), "places")
    # Targets outside of the classes, ignored ones among them, meet no place.
    same = write.op("Equal", _unsqueezed(write, target, [1]), places)
    ignored = write.attribute("ignore_index", None)
    if ignored is not None and 0 <= int(ignored) < size:
        number = write.constant(np.asarray(int(ignored), dtype=elem), "ignored")
        same = write.op("And", same, write.op("Not", write.op("Equal", places, number)))
    zero = write.number(0.0)
    weights = write.number(-1.0)
    if len(write.node.input) > 2 and write.node.input[2]:
        weight = write.op("Reshape", write.node.input[2], write.ints(wide))
        weights = write.op("Neg", weight)
    each = write.op("Where", same, write.op("Mul", chances, weights), zero)
    reduction = bytes(write.attribute("reduction", b"mean")).decode()
    goal = write.node.output[0]
    if reduction == "none":
        write.op("ReduceSum", each, write.ints([1]), keepdims=0, result=goal)
        return True
    total = write.op("ReduceSum", each, keepdims=0, result=goal if reduction == "sum" else None)
    if reduction == "sum":
        return True
    counted = write.op("Where", same, write.op("Neg", weights), zero)
    count = write.op("ReduceSum", counted, keepdims=0)
    write.op("Mul", total, write.op("Reciprocal", count), result=goal)
    return True


COMPOSITES: dict[str, Callable[[Writer], bool]] = {
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "BatchNormalization": _batch_norm,
    "ReduceMean": _mean,
    "Gemm": _gemm,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "OneHot": _one_hot,
    "ArgMax": _extreme_index,
    "ArgMin": _extreme_index,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "NegativeLogLikelihoodLoss": _nll,
}

#: Rules for which the first input need be no float.
_ANY = frozenset({"Gather", "OneHot"})

#: Element types the rules are for.
_FLOATS = frozenset({"float"})


def decompose(model: onnx.ModelProto, types: dict[str, TensorType]) -> onnx.ModelProto:
    """Return ``model`` with what the table names written out; ``types`` are those of its values."""
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if opset < 18:  # before, axes of reductions were attributes
        return model
    data = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                data[node.output[0]] = attribute.t
    taken = all_names(model.graph)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for node in model.graph.node:
        written = _write(node, types, taken, data)
        if written is None:
            nodes.append(node)
        else:
            nodes += written.nodes
            constants += written.constants
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    out.graph.initializer.extend(constants)
    return out


def _write(
    node: onnx.NodeProto,
    types: dict[str, TensorType],
    taken: set[str],
    data: dict[str, onnx.TensorProto],
) -> Writer | None:
    rule = COMPOSITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if rule is None or (types[node.input[0]].elem not in _FLOATS and node.op_type not in _ANY):
        return None
    read = {name: numpy_helper.to_array(data[name]) for name in node.input if name in data}
    write = Writer(node, types, taken, read)
    if node.op_type == "ReduceMean" and len(node.input) > 1 and node.input[1]:
        if node.input[1] not in data:
            return None
        rank = len(types[node.input[0]].shape)
        axes = [int(a) % rank for a in numpy_helper.to_array(data[node.input[1]]).reshape(-1)]
        if not axes:
            axes = [] if write.attribute("noop_with_empty_axes", 0) else list(range(rank))
        return write if _mean_over(write, axes, int(write.attribute("keepdims", 1))) else None
    return write if rule(write) else None
