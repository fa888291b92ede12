"""Refuses contradictory shapes and constant indices that ONNX's shape inference accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import error, place_of
from .declared import constants
from .forms import Given, check_form, check_places
from .known_shapes import known_types
from .opsets import STANDARD
from .source import source_of

Shape = tuple[int, ...]


def check_shapes(model: onnx.ModelProto) -> None:
    """Refuse negative dimensions (P0113), wrong element counts (P0112), bad indices (P0111).

    ``model`` has inferred types. Only the main graph is checked, since onnxruntime checks bodies.
    """
    shapes = {name: shape for name, (_, shape) in known_types(model.graph).items()}
    data = _Constants(model.graph)
    makers = {name: node for node in model.graph.node for name in node.output}
    for name, shape in shapes.items():
        if any(size < 0 for size in shape):
            maker = makers.get(name)
            place = None if maker is None else place_of(source_of(maker))
            raise error("P0113", place=place, name=name, shape=shape)
    for node in model.graph.node:
        _check_lists(node, shapes)
        if node.domain in STANDARD:
            check_form(Given(node, shapes, data.get))
        rule = _RULES.get(node.op_type) if node.domain in STANDARD else None
        if rule is not None and all(n in shapes for n in (node.input[0], node.output[0])):
            rule(node, shapes, data)


class _Constants:
    """The data of constants, decoded when it is asked for."""

    def __init__(self, graph: onnx.GraphProto):
        self.tensors = constants(graph)

    def get(self, name: str) -> np.ndarray[Any, Any] | None:
        found = self.tensors.get(name)
        return None if found is None else numpy_helper.to_array(found)


_Rule = Callable[[onnx.NodeProto, Mapping[str, Shape], _Constants], None]


def _refused(node: onnx.NodeProto, name: str, reason: str) -> Exception:
    place = place_of(source_of(node))
    return error(
        "P0112", place=place, op=node.op_type, node=node.name or name, name=name, reason=reason
    )


def _check_lists(node: onnx.NodeProto, shapes: Mapping[str, Shape]) -> None:
    for place in _LISTS.get(node.op_type, ()) if node.domain in STANDARD else ():
        name = node.input[place] if place < len(node.input) else ""
        if name and len(shapes.get(name, (0,))) != 1:
            reason = f"`{name}` has shape {shapes[name]}, but is a list"
            raise _refused(node, node.output[0], reason)


def _attribute(node: onnx.NodeProto, name: str) -> int:
    found = (helper.get_attribute_value(a) for a in node.attribute if a.name == name)
    return int(next(found, 0))


def _same_count(node: onnx.NodeProto, shapes: Mapping[str, Shape], data: _Constants) -> None:
    before, after = shapes[node.input[0]], shapes[node.output[0]]
    if prod(before) != prod(after):
        reason = f"{before} has {prod(before)} elements, {after} has {prod(after)}"
        raise _refused(node, node.output[0], reason)


def _reshape(node: onnx.NodeProto, shapes: Mapping[str, Shape], data: _Constants) -> None:
    """Also compare with the constant shape, which may differ from the declared shape."""
    _same_count(node, shapes, data)
    given = data.get(node.input[1])
    if given is None:
        return
    before, after = shapes[node.input[0]], shapes[node.output[0]]
    wanted = [int(size) for size in given.reshape(-1)]
    shown = f"shape {tuple(wanted)} of {before}"
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise _refused(node, node.output[0], f"{shown} leaves more than one size open")
    if not _attribute(node, "allowzero"):
        if any(size == 0 and axis >= len(before) for axis, size in enumerate(wanted)):
            raise _refused(node, node.output[0], f"{shown} copies a size that is not there")
        wanted = [before[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    fits = len(wanted) == len(after) and all(
        size in (-1, own) for size, own in zip(wanted, after, strict=True)
    )
    if not fits:
        raise _refused(node, node.output[0], f"{shown} is not {after}")


def _gather(node: onnx.NodeProto, shapes: Mapping[str, Shape], data: _Constants) -> None:
    indices, table = data.get(node.input[1]), shapes[node.input[0]]
    if indices is not None and table:
        axis = _attribute(node, "axis") % len(table)
        check_places(node, indices, axis, table[axis])


def _gather_nd(node: onnx.NodeProto, shapes: Mapping[str, Shape], data: _Constants) -> None:
    indices, table = data.get(node.input[1]), shapes[node.input[0]]
    if indices is not None and indices.ndim:
        first = _attribute(node, "batch_dims")
        for place in range(indices.shape[-1]):
            check_places(node, indices[..., place], first + place, table[first + place])


def _conv(node: onnx.NodeProto, shapes: Mapping[str, Shape], data: _Constants) -> None:
    """Compare channels, groups, kernel and bias; ONNX's inference looks at the pixels only."""
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    name, group = node.output[0], int(facts.get("group", 1))
    image, weights = shapes[node.input[0]], shapes.get(node.input[1])
    if weights is None:
        return
    kernel = tuple(facts.get("kernel_shape", weights[2:]))
    if len(shapes[name]) != len(image):  # so ends onnx's inference where it gives up
        raise _refused(node, name, "its `output_shape` is smaller than its input")
    if len(weights) != len(image) or weights[2:] != kernel:
        raise _refused(node, name, f"weights {weights} have no kernel {kernel} for {image}")
    turned = node.op_type == "ConvTranspose"
    channels, own = (weights[0], image[1]) if turned else (weights[1] * group, image[1])
    rows = weights[1] * group if turned else weights[0]
    if group < 1 or channels != own or channels % group or rows % group:
        reason = f"weights {weights} in {group} groups do not fit the {own} channels of {image}"
        raise _refused(node, name, reason)
    bias = shapes.get(node.input[2]) if len(node.input) > 2 and node.input[2] else (rows,)
    if bias is not None and bias != (rows,):
        raise _refused(node, name, f"bias {bias} is not ({rows},)")


def _reduction(node: onnx.NodeProto, shapes: Mapping[str, Shape], data: _Constants) -> None:
    """Compare constant axes with the rank, and the result with what is left."""
    given = data.get(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    if given is None:
        return
    before, after, name = shapes[node.input[0]], shapes[node.output[0]], node.output[0]
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if given.ndim != 1:
        raise _refused(node, name, f"its axes have shape {given.shape} instead of one axis")
    check_places(node, given, 0, len(before))
    axes = {int(axis) % len(before) for axis in given}
    if not axes and not facts.get("noop_with_empty_axes", 0):
        axes = set(range(len(before)))
    kept = facts.get("keepdims", 1)
    sizes = enumerate(before)
    wanted = tuple(1 if a in axes else n for a, n in sizes if kept or a not in axes)
    if after != wanted:
        raise _refused(node, name, f"{before} without axes {sorted(axes)} is not {after}")


#: By operator: inputs that have one axis. ONNX's inference does not look at all of them.
_LISTS = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Pad": (1, 3),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Tile": (1,),
}
_REDUCTIONS = (
    *("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_REDUCTIONS, _reduction),
    "Conv": _conv,
    "ConvTranspose": _conv,
    "Reshape": _reshape,
    "Flatten": _same_count,
    "Squeeze": _same_count,
    "Unsqueeze": _same_count,
    "Transpose": _same_count,
    "Gather": _gather,
    "GatherElements": _gather,
    "GatherND": _gather_nd,
}
