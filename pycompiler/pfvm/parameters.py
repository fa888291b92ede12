"""Parameters that the declared type of a result decides, although the model reads them as inputs.

The shape of a Reshape, the sizes of a Split or the axes of most reductions have one value that fits
the types. The operator then reads that value as a constant. Any other value would contradict the
types of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .declared import constants
from .known_shapes import known_types
from .names import all_names, reserved
from .opsets import STANDARD
from .prepare import prepare

_ROUNDS = 8
Shape = tuple[int, ...]


def settled_parameters(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the parameters that its types decide; one may make others known."""
    for _ in range(_ROUNDS):
        found = with_parameters(model)
        if len(found.graph.initializer) == len(model.graph.initializer):
            break
        model = prepare(found)
    return model


def with_parameters(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the parameters as constants; ``model`` has inferred types."""
    types = {name: shape for name, (_, shape) in known_types(model.graph).items()}
    known = constants(model.graph)
    taken = all_names(model.graph)
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for node in out.graph.node:
        rule = _RULES.get(node.op_type) if node.domain in STANDARD else None
        if rule is None:
            continue
        place, decide = rule
        if place >= len(node.input) or not node.input[place] or node.input[place] in known:
            continue
        if not all(name in types for name in (node.input[0], *node.output) if name):
            continue
        facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        found = decide(node, types, facts)
        if found is None:
            continue
        name = reserved(f"{node.output[0]}.{node.op_type}.parameter", taken)
        array = np.asarray(found, dtype=np.int64)
        out.graph.initializer.append(numpy_helper.from_array(array, name))
        node.input[place] = name
    return out


_Rule = Callable[[onnx.NodeProto, dict[str, Shape], dict[str, Any]], Sequence[int] | int | None]


def _reshape(node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]) -> Shape | None:
    # Without `allowzero`, 0 stands for the size of the operand.
    after = types[node.output[0]]
    return None if 0 in after and not facts.get("allowzero") else after


def _result(node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]) -> Shape | None:
    return types[node.output[0]]


def _tile(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    before, after = types[node.input[0]], types[node.output[0]]
    if 0 in before:
        return None
    return [new // old for old, new in zip(before, after, strict=True)]


def _unsqueeze(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    """Return axes of size 1 that lead to the shape: any choice among equal sizes is the same."""
    return _extra(types[node.input[0]], types[node.output[0]])


def _squeeze(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    return _extra(types[node.output[0]], types[node.input[0]])


def _extra(short: Shape, long: Shape) -> Sequence[int] | None:
    """Return axes of size 1 of ``long`` without which it is ``short``; None if there are none."""
    for axes in combinations(range(len(long)), len(long) - len(short)):
        rest = tuple(size for axis, size in enumerate(long) if axis not in axes)
        if rest == short and all(long[axis] == 1 for axis in axes):
            return axes
    return None


def _split(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    return [types[name][int(facts.get("axis", 0))] for name in node.output]


def _top_k(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    return [types[node.output[0]][int(facts.get("axis", -1))]]


def _sizes(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    """Return the sizes of a Resize that stretches; other policies choose among them."""
    if facts.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return None
    after = types[node.output[0]]
    return [after[axis] for axis in facts.get("axes", range(len(after)))]


def _crop(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    after = types[node.output[0]]
    return [after[axis] for axis in facts.get("axes", range(len(after)))]


def _grid(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    """Return the size of the picture; the number of its channels changes nothing."""
    batch, *spatial, _ = types[node.output[0]]
    return [batch, 1, *spatial]


def _axes(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | None:
    """Return the axes of a reduction if only one choice gives the shape of the result.

    Axes of size 1 give the same result whether they are reduced or not.
    """
    before, after = types[node.input[0]], types[node.output[0]]
    kept, nothing = int(facts.get("keepdims", 1)), int(facts.get("noop_with_empty_axes", 0))
    found: dict[Shape, Shape] = {}
    for count in range(1, len(before) + 1):
        for axes in combinations(range(len(before)), count):
            shape = [
                1 if axis in axes else size
                for axis, size in enumerate(before)
                if kept or axis not in axes
            ]
            if tuple(shape) == after:
                found[tuple(a for a in axes if before[a] != 1)] = axes
    if nothing and before == after:
        return None
    return next(iter(found.values())) if len(found) == 1 else None


def _index(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | int | None:
    """Return the axis of a scan over a tensor that has only one."""
    return 0 if len(types[node.input[0]]) == 1 else None


def _window(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | int | None:
    return prod(types[node.output[0]])


def _depth(
    node: onnx.NodeProto, types: dict[str, Shape], facts: dict[str, Any]
) -> Sequence[int] | int | None:
    depth = types[node.output[0]][int(facts.get("axis", -1))]
    shape = types.get(node.input[1], ())
    return depth if not shape else [depth]


#: By operator: the place of the parameter, and what decides it.
_RULES: dict[str, tuple[int, _Rule]] = {
    "Reshape": (1, _reshape),
    "Expand": (1, _result),
    "ConstantOfShape": (0, _result),
    "Tile": (1, _tile),
    "Unsqueeze": (1, _unsqueeze),
    "Squeeze": (1, _squeeze),
    "Split": (1, _split),
    "TopK": (1, _top_k),
    "Resize": (3, _sizes),
    "CenterCropPad": (1, _crop),
    "AffineGrid": (1, _grid),
    "CumSum": (1, _index),
    "CumProd": (1, _index),
    "OneHot": (1, _depth),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), (0, _window)),
    **dict.fromkeys(
        (
            *("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1"),
            *("ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
        ),
        (1, _axes),
    ),
}
