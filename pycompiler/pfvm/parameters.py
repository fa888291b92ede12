"""Parameters that the declared type of a result decides, although the model reads them as inputs.

The shape of a Reshape, the sizes of a Split or the axes of most reductions have one value that fits
the types. The operator then reads that value as a constant. Any other value would contradict the
types of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod

import numpy as np
import onnx

from .composites.writer import Rule, Writer, rewritten
from .known_shapes import tensor_types
from .opsets import STANDARD
from .prepare import until_settled
from .shapes import REDUCTIONS

_ROUNDS = 8
Shape = tuple[int, ...]


def settled_parameters(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the parameters that its types decide; one may make others known."""
    return until_settled(model, with_parameters, _ROUNDS)


def with_parameters(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the parameters as constants; ``model`` has inferred types."""
    return rewritten(model, tensor_types(model.graph), _rule_of)


def _rule_of(node: onnx.NodeProto) -> Rule | None:
    return _settled if node.domain in STANDARD and node.op_type in _RULES else None


def _settled(write: Writer) -> bool:
    node, inputs = write.node, list(write.node.input)
    place, decide = _RULES[node.op_type]
    if not write.input(place) or inputs[place] in write.data:
        return False
    if not all(name in write.types for name in (inputs[0], *node.output) if name):
        return False
    found = decide(write, write.type(0).shape, write.types[node.output[0]].shape)
    if found is None:
        return False
    inputs[place] = write.constant(np.asarray(found, np.int64), f"{node.op_type}.parameter")
    write.again(inputs)
    return True


#: Returns a parameter from the shapes of the first input and result; None if they do not tell.
_Decide = Callable[[Writer, Shape, Shape], Sequence[int] | int | None]


def _reshape(write: Writer, before: Shape, after: Shape) -> Shape | None:
    # Without `allowzero`, 0 stands for the size of the operand.
    return None if 0 in after and not write.attribute("allowzero", 0) else after


def _tile(write: Writer, before: Shape, after: Shape) -> Sequence[int] | None:
    return None if 0 in before else [n // old for old, n in zip(before, after, strict=True)]


def _extra(short: Shape, long: Shape) -> Sequence[int] | None:
    """Return axes of size 1 of ``long`` without which it is ``short``; None if there are none.

    Any choice among equal sizes is the same.
    """
    for axes in combinations(range(len(long)), len(long) - len(short)):
        rest = tuple(size for axis, size in enumerate(long) if axis not in axes)
        if rest == short and all(long[axis] == 1 for axis in axes):
            return axes
    return None


def _split(write: Writer, before: Shape, after: Shape) -> Sequence[int]:
    axis = int(write.attribute("axis", 0))
    return [write.types[name].shape[axis] for name in write.node.output]


def _top_k(write: Writer, before: Shape, after: Shape) -> Sequence[int]:
    return [after[int(write.attribute("axis", -1))]]


def _sizes(write: Writer, before: Shape, after: Shape) -> Sequence[int] | None:
    """Return the sizes of a crop, or of a Resize that stretches: other policies choose them."""
    if write.attribute("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return None
    return [after[axis] for axis in write.attribute("axes", range(len(after)))]


def _grid(write: Writer, before: Shape, after: Shape) -> Sequence[int]:
    """Return the size of the picture; the number of its channels changes nothing."""
    batch, *spatial, _ = after
    return [batch, 1, *spatial]


def _axes(write: Writer, before: Shape, after: Shape) -> Sequence[int] | None:
    """Return the axes of a reduction if only one choice gives the shape of the result.

    Axes of size 1 give the same result whether they are reduced or not.
    """
    kept = int(write.attribute("keepdims", 1))
    if int(write.attribute("noop_with_empty_axes", 0)) and before == after:
        return None
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
    return next(iter(found.values())) if len(found) == 1 else None


def _depth(write: Writer, before: Shape, after: Shape) -> Sequence[int] | int:
    depth = after[int(write.attribute("axis", -1))]
    known = write.types.get(write.node.input[1])
    return [depth] if known is not None and known.shape else depth


#: By operator: the place of the parameter, and what decides it.
_RULES: dict[str, tuple[int, _Decide]] = {
    "Reshape": (1, _reshape),
    "Expand": (1, lambda _, before, after: after),
    "ConstantOfShape": (0, lambda _, before, after: after),
    "Tile": (1, _tile),
    "Unsqueeze": (1, lambda _, before, after: _extra(before, after)),
    "Squeeze": (1, lambda _, before, after: _extra(after, before)),
    "Split": (1, _split),
    "TopK": (1, _top_k),
    "Resize": (3, _sizes),
    "CenterCropPad": (1, _sizes),
    "AffineGrid": (1, _grid),
    # A scan over a tensor that has one axis only.
    **dict.fromkeys(("CumSum", "CumProd"), (1, lambda _, b, after: 0 if len(b) == 1 else None)),
    "OneHot": (1, _depth),
    **dict.fromkeys(
        ("HannWindow", "HammingWindow", "BlackmanWindow"), (0, lambda _, before, after: prod(after))
    ),
    **dict.fromkeys(REDUCTIONS, (1, _axes)),
}
