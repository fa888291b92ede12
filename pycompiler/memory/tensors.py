"""The tensors of a function, with the times at which they live.

A time is the place of a node in the order of execution. Parameters, the state of optimizers and
their new values are not counted: they live between calls. Views have the memory of what they show.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

import onnx
from onnx import helper

from ..graph.graph import TensorType
from ..pfvm.names import reads_of
from ..pfvm.prepare import static_types
from ..pfvm.registered import registered, updates
from ..pfvm.update_order import own_updates

ACTIVATION, GRADIENT, WEIGHT_GRADIENT = "activation", "gradient", "weight gradient"
#: What a tensor is for. An inference has activations only.
KINDS = (ACTIVATION, GRADIENT, WEIGHT_GRADIENT)
#: Operators whose result has the memory of the operand.
VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
_HALF = 2  # bytes


@dataclass(frozen=True)
class Tensor:
    """A tensor of ``size`` bytes, which lives from ``start`` to before ``end``."""

    name: str
    kind: str
    size: int
    start: int
    end: int


def tensors_of(model: onnx.ModelProto, *, half: bool = False) -> list[Tensor]:
    """Return the tensors of a model with static shapes, in the order of their nodes.

    ``half`` counts 16 bits for each float32. P0103.
    """
    graph, types = model.graph, static_types(model)
    kept = {tensor.name for tensor in graph.initializer} | set(registered(model))
    new, own, forward = updates(model), own_updates(model), _forward(model)
    shown = _shown(graph)
    makers = {name: node.output[0] for node in graph.node for name in node.output}
    fresh = {shown.get(name, name) for name in new}
    found = []
    for name, life in _lives(graph, kept, new, shown).items():
        if name in fresh or not prod(types[name].shape):
            continue
        kind = WEIGHT_GRADIENT if makers.get(name) in own else GRADIENT
        if name not in makers or makers[name] in forward:
            kind = ACTIVATION
        found.append(Tensor(name, kind, bytes_of(types[name], half=half), *life))
    return found


def _lives(
    graph: onnx.GraphProto, kept: Collection[str], new: Collection[str], shown: Mapping[str, str]
) -> dict[str, list[int]]:
    """Return start and end of each tensor that is no view."""
    found = {value.name: [0, 1] for value in graph.input if value.name not in kept}
    for time, node in enumerate(graph.node):
        for source in (shown.get(name, name) for name in reads_of(node)):
            if source in found:
                found[source][1] = time + 1
        if node.op_type != "Constant":
            made = (name for name in node.output if name and name not in shown)
            found.update((name, [time, time + 1]) for name in made)
    for name in (value.name for value in graph.output if value.name not in new):
        if shown.get(name, name) in found:
            found[shown.get(name, name)][1] = len(graph.node)
    return found


def _shown(graph: onnx.GraphProto) -> dict[str, str]:
    """Return what each view shows."""
    found: dict[str, str] = {}
    for node in graph.node:
        if node.op_type in VIEWS:
            source = found.get(node.input[0], node.input[0])
            found.update((name, source) for name in node.output if name)
    return found


def bytes_of(type: TensorType, *, half: bool) -> int:
    """Return the bytes of a tensor; ``half`` counts two bytes for each float32."""
    if half and type.elem == "float":
        return prod(type.shape) * _HALF
    code = onnx.TensorProto.DataType.Value(type.elem.upper())
    return prod(type.shape) * int(helper.tensor_dtype_to_np_dtype(code).itemsize)


def _forward(model: onnx.ModelProto) -> set[str]:
    """Return the nodes, by first output, that lead to a result of the function."""
    new = updates(model)
    needed = {value.name for value in model.graph.output if value.name not in new}
    if not new:
        needed |= {name for node in model.graph.node for name in node.output}
    found = set()
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(reads_of(node))
            found.add(node.output[0])
    return found
