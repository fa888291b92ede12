"""Refuses contradictory shapes and constant indices that ONNX's shape inference accepts."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx

from ..errors import error, place_of
from .declared import constants
from .forms import FORM_RULES, Given, Rule, check_places, refused
from .held import Array, array_of
from .known_shapes import known_types
from .opsets import STANDARD
from .source import source_of


def check_shapes(model: onnx.ModelProto) -> None:
    """Refuse negative dimensions (P0113), wrong element counts (P0112), bad indices (P0111).

    ``model`` has inferred types. Only the main graph is checked, since onnxruntime checks bodies.
    """
    shapes = {name: shape for name, (_, shape) in known_types(model.graph).items()}
    tensors = constants(model.graph)

    def constant(name: str) -> Array | None:
        return array_of(tensors[name]) if name in tensors else None

    makers = {name: node for node in model.graph.node for name in node.output}
    for name, shape in shapes.items():
        if any(size < 0 for size in shape):
            maker = makers.get(name)
            place = None if maker is None else place_of(source_of(maker))
            raise error("P0113", place=place, name=name, shape=shape)
    for node in model.graph.node:
        if node.domain not in STANDARD:
            continue
        given = Given(node, shapes, constant)
        rules = (_lists, *FORM_RULES.get(node.op_type, ()))
        own = _RULES.get(node.op_type, ())
        if own and given.shape(0) is not None and node.output[0] in shapes:
            rules += own
        for rule in rules:
            for reason in rule(given):
                raise refused(node, reason)


def _lists(given: Given) -> Iterator[str]:
    for place in _LISTS.get(given.node.op_type, ()):
        shape = given.shape(place)
        if shape is not None and len(shape) != 1:
            yield f"`{given.input(place)}` has shape {shape}, but is a list"


def _same_count(given: Given) -> Iterator[str]:
    before, after = given.ends()
    if prod(before) != prod(after):
        yield f"{before} has {prod(before)} elements, {after} has {prod(after)}"


def _reshape(given: Given) -> Iterator[str]:
    """Compare with the constant shape, which may differ from the declared shape."""
    (before, after), sizes = given.ends(), given.data(1)
    if sizes is None:
        return
    wanted = [int(size) for size in sizes.reshape(-1)]
    shown = f"shape {tuple(wanted)} of {before}"
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        yield f"{shown} leaves more than one size open"
    if not given.attribute("allowzero", 0):
        if any(size == 0 and axis >= len(before) for axis, size in enumerate(wanted)):
            yield f"{shown} copies a size that is not there"
        wanted = [before[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    fits = len(wanted) == len(after) and all(
        size in (-1, own) for size, own in zip(wanted, after, strict=True)
    )
    if not fits:
        yield f"{shown} is not {after}"


def _conv(given: Given) -> Iterator[str]:
    """Compare channels, groups, kernel and bias; ONNX's inference looks at the pixels only."""
    (image, result), weights = given.ends(), given.shape(1)
    group = int(given.attribute("group", 1))
    if weights is None:
        return
    kernel = tuple(given.attribute("kernel_shape", weights[2:]))
    if len(result) != len(image):  # so ends onnx's inference where it gives up
        yield "its `output_shape` is smaller than its input"
    if len(weights) != len(image) or weights[2:] != kernel:
        yield f"weights {weights} have no kernel {kernel} for {image}"
    turned = given.node.op_type == "ConvTranspose"
    channels, own = (weights[0], image[1]) if turned else (weights[1] * group, image[1])
    rows = weights[1] * group if turned else weights[0]
    if group < 1 or channels != own or channels % group or rows % group:
        yield f"weights {weights} in {group} groups do not fit the {own} channels of {image}"
    bias = given.shape(2)
    if bias is not None and bias != (rows,):
        yield f"bias {bias} is not ({rows},)"


def _reduction(given: Given) -> Iterator[str]:
    """Compare constant axes with the rank, and the result with what is left."""
    (before, after), found = given.ends(), given.data(1)
    if found is None:
        return
    if found.ndim != 1:
        yield f"its axes have shape {found.shape} instead of one axis"
    check_places(given.node, found, 0, len(before))
    axes = {int(axis) % len(before) for axis in found}
    if not axes and not given.attribute("noop_with_empty_axes", 0):
        axes = set(range(len(before)))
    kept, sizes = given.attribute("keepdims", 1), enumerate(before)
    wanted = tuple(1 if a in axes else n for a, n in sizes if kept or a not in axes)
    if after != wanted:
        yield f"{before} without axes {sorted(axes)} is not {after}"


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
#: Operators that reduce the axes that their second input or their attribute names.
REDUCTIONS = (
    *("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)
#: Rules for nodes whose first input and result have known shapes.
_RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(REDUCTIONS, (_reduction,)),
    **dict.fromkeys(("Conv", "ConvTranspose"), (_conv,)),
    "Reshape": (_same_count, _reshape),
    **dict.fromkeys(("Flatten", "Squeeze", "Unsqueeze", "Transpose"), (_same_count,)),
}
