"""Removes operators on tensors without elements: their results are constants.

Neither the device nor every runtime has operators on empty tensors. A reduction of an empty tensor
becomes the constant that torch returns (the mean of nothing is NaN). An operator that also reads
other tensors is rewritten without the empty ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import error
from .known_shapes import known_types
from .names import all_names, reserved
from .with_nodes import with_nodes

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

    An operator without a rule stays if its result has elements.
    """
    types = known_types(model.graph)
    if not any(0 in shape for _, shape in types.values()):
        return model
    makers = {name: node for node in model.graph.node for name in node.output}
    given = {value.name for value in model.graph.input}
    write = _Settler(types, all_names(model.graph), given, makers)
    for node in model.graph.node:
        if not write.settled(node):
            write.keep(node)
    return with_nodes(model, write.nodes)


_Type = tuple[int, tuple[int, ...]]


@dataclass
class _Settler:
    types: dict[str, _Type]
    taken: set[str]
    given: set[str]
    makers: Mapping[str, onnx.NodeProto]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    #: constants that stand for inputs
    instead: dict[str, str] = field(default_factory=dict)

    def empty(self, name: str) -> bool:
        """Whether a tensor is known to have no elements."""
        return name in self.types and 0 in self.types[name][1]

    def truth(self, name: str) -> bool:
        """Whether a tensor holds only zeros and ones, because it is a cast of booleans."""
        maker = self.makers.get(name)
        if maker is None or maker.op_type != "Cast":
            return False
        return self.types.get(maker.input[0], (0,))[0] == onnx.TensorProto.BOOL

    def full(self, name: str, elem: int, shape: Sequence[int], value: float) -> None:
        """Append a constant that is filled with one number."""
        array = np.full(shape, value, dtype=helper.tensor_dtype_to_np_dtype(elem))
        self.constant(numpy_helper.from_array(array, name))

    def constant(self, tensor: onnx.TensorProto) -> None:
        """Append a constant with the name of the tensor."""
        name = f"{tensor.name}.Constant"
        self.nodes.append(helper.make_node("Constant", [], [tensor.name], name=name, value=tensor))

    def op(self, like: onnx.NodeProto, op: str, inputs: Sequence[str], *outputs: str) -> None:
        """Append a node in the place of ``like``."""
        made = helper.make_node(op, list(inputs), list(outputs))
        made.name = like.name if len(outputs) > 1 else f"{like.name}.{op}.{outputs[0]}"
        made.metadata_props.extend(like.metadata_props)
        self.nodes.append(made)

    def keep(self, node: onnx.NodeProto) -> None:
        """Append a node as it is, but with constants in place of empty inputs of the model."""
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        for index, name in enumerate(node.input):
            if name in self.given and self.empty(name):
                if name not in self.instead:
                    self.instead[name] = reserved(f"{name}.none", self.taken)
                    self.full(self.instead[name], *self.types[name], 0)
                kept.input[index] = self.instead[name]
        self.nodes.append(kept)

    def settled(self, node: onnx.NodeProto) -> bool:
        """Append the nodes that replace ``node``; False if it stays."""
        if node.domain not in ("", "ai.onnx") or node.op_type == "Constant":
            return False
        results = [name for name in node.output if name]
        if results and all(map(self.empty, results)):
            for name in results:
                self.full(name, *self.types[name], 0)
            return True
        if not any(name in self.types for name in results):
            return False
        if not any(map(self.empty, (*node.input, *results))):
            return False
        rule = _RULES.get(node.op_type, _nothing)
        return rule(self, node)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = (helper.get_attribute_value(a) for a in node.attribute if a.name == name)
    return next(found, default)


def _nothing(write: _Settler, node: onnx.NodeProto) -> bool:
    """Write the operator's result on an empty tensor as a constant."""
    value, (name, *_) = _NOTHING.get(node.op_type), node.output
    if value is None or not write.empty(node.input[0]) or name not in write.types:
        return False
    elem, shape = write.types[name]
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(elem))
    if prod(shape) > _MOST:
        return False
    if dtype.kind in "iub":
        if np.isnan(value):
            return False
        if np.isinf(value):
            # The smallest or largest value that the type can hold.
            bounds = (0, 1)
            if dtype.kind != "b" and not write.truth(node.input[0]):
                bounds = np.iinfo(dtype).min, np.iinfo(dtype).max
            value = bounds[value > 0]
    write.full(name, elem, shape, value)
    return True


def _place(write: _Settler, node: onnx.NodeProto) -> bool:
    """Refuse to find the index of an extreme element in an empty axis."""
    if not write.empty(node.input[0]):
        return False
    reason = f"{node.op_type} `{node.name}` has no elements to choose from"
    raise error("P0108", reason=reason)


def _loss(write: _Settler, node: onnx.NodeProto) -> bool:
    """Write the loss without targets as a constant."""
    value = _LOSSES.get(_attribute(node, "reduction", b"mean"))
    if value is None or not write.empty(node.input[1]) or node.output[0] not in write.types:
        return False
    write.full(node.output[0], *write.types[node.output[0]], value)
    for name in node.output[1:]:
        if name:
            write.full(name, *write.types[name], 0)
    return True


def _gemm(write: _Settler, node: onnx.NodeProto) -> bool:
    """Replace a product without terms by zeros, plus the added operand if there is one."""
    (name,) = node.output
    if name not in write.types or prod(write.types[name][1]) > _MOST:
        return False
    elem, shape = write.types[name]
    zeros = (
        reserved(f"{name}.zeros", write.taken) if len(node.input) > 2 and node.input[2] else name
    )
    write.full(zeros, elem, shape, 0)
    if zeros == name:
        return True
    added, beta = node.input[2], float(_attribute(node, "beta", 1.0))
    if beta != 1:
        factor, scaled = (reserved(f"{name}.{what}", write.taken) for what in ("beta", "scaled"))
        write.full(factor, elem, (), beta)
        write.op(node, "Mul", (added, factor), scaled)
        added = scaled
    write.op(node, "Add", (zeros, added), name)
    return True


def _concat(write: _Settler, node: onnx.NodeProto) -> bool:
    """Drop the empty parts."""
    parts = [name for name in node.input if not write.empty(name)]
    if len(parts) == 1:
        write.op(node, "Identity", parts, node.output[0])
        return True
    kept = onnx.NodeProto()
    kept.CopyFrom(node)
    del kept.input[:]
    kept.input.extend(parts)
    write.nodes.append(kept)
    return True


def _split(write: _Settler, node: onnx.NodeProto) -> bool:
    """Make only the parts that have elements."""
    if not all(name and name in write.types for name in node.output):
        return False
    parts = [name for name in node.output if not write.empty(name)]
    for name in node.output:
        if name not in parts:
            write.full(name, *write.types[name], 0)
    if len(parts) == 1:
        write.op(node, "Identity", node.input[:1], parts[0])
        return True
    axis = int(_attribute(node, "axis", 0))
    sizes = np.array([write.types[name][1][axis] for name in parts], dtype=np.int64)
    given = reserved(f"{node.output[0]}.sizes", write.taken)
    write.constant(numpy_helper.from_array(sizes, given))
    write.op(node, "Split", (node.input[0], given), *parts)
    write.nodes[-1].attribute.append(helper.make_attribute("axis", axis))
    return True


_RULES: dict[str, Callable[[_Settler, onnx.NodeProto], bool]] = {
    "ArgMax": _place,
    "ArgMin": _place,
    "SoftmaxCrossEntropyLoss": _loss,
    "NegativeLogLikelihoodLoss": _loss,
    "Gemm": _gemm,
    "Concat": _concat,
    "Split": _split,
}
