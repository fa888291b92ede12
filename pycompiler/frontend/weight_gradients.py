"""Finds the convolutions that give the gradient of another one's weights.

Such a Conv has channels for pictures, and pictures and tiles for channels: both of its operands
come from a Transpose that exchanges them, and a Reshape that makes pictures and tiles one axis.
:mod:`pycompiler.pfvm.composites.weight_gradient` writes them like that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import onnx

from ..graph.graph import MNNode, TensorType
from ..pfvm.source import source_of
from ..pfvm.windows import WEIGHT_GRADIENT


def weight_gradients(
    protos: Mapping[str, onnx.NodeProto], types: Mapping[str, TensorType], outputs: Iterable[str]
) -> tuple[dict[str, MNNode], set[str]]:
    """Return the nodes in place of such Convs, by name, and the names of nodes no longer needed."""
    readers = Counter([*outputs, *(name for proto in protos.values() for name in proto.input)])
    makers = {out: proto for proto in protos.values() for out in proto.output}
    found: dict[str, MNNode] = {}
    spare: set[str] = set()
    for name, proto in protos.items():
        made = _node(name, proto, makers, types)
        if made is None:
            continue
        found[name] = made
        for value in proto.input:
            # The views are gone unless something else reads them.
            while value not in made.inputs and readers[value] == 1:
                spare.add(makers[value].name)
                value = makers[value].input[0]
    return found, {name for name, proto in protos.items() if proto.name in spare}


def _node(
    name: str,
    proto: onnx.NodeProto,
    makers: Mapping[str, onnx.NodeProto],
    types: Mapping[str, TensorType],
) -> MNNode | None:
    if proto.op_type != "Conv" or proto.domain not in ("", "ai.onnx") or len(proto.input) > 2:
        return None
    if types[proto.input[0]].elem != "float":
        return None
    facts = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
    if facts.get("group", 1) != 1 or any(facts.get("pads", ())) or "auto_pad" in facts:
        return None
    one, other = (_turned(value, makers, types) for value in proto.input)
    if one is None or other is None or one[1] != other[1]:
        return None
    (pixels, order), (gradient, _) = one, other
    rank, spatial = len(order), len(types[proto.output[0]].shape) - 2
    if types[proto.input[0]].shape[1] != types[proto.input[1]].shape[1]:
        return None
    places = list(order[rank - spatial :])
    taps = types[proto.output[0]].shape[2:]
    ones = [1] * spatial
    # The gradients are the kernel, so dilations of this Conv are strides of the other one.
    strides, dilations = facts.get("dilations", ones), facts.get("strides", ones)
    columns = {"kernel_shape": 0, "strides": 1, "dilations": 1}
    given = {"kernel_shape": taps, "strides": strides, "dilations": dilations}
    attributes = tuple(
        (
            what,
            tuple(
                int(given[what][places.index(axis)]) if axis in places else other
                for axis in range(2, rank)
            ),
        )
        for what, other in columns.items()
    )
    outputs = tuple(proto.output)
    return MNNode(
        name, WEIGHT_GRADIENT, (pixels, gradient), outputs, attributes, source=source_of(proto)
    )


def _turned(
    value: str, makers: Mapping[str, onnx.NodeProto], types: Mapping[str, TensorType]
) -> tuple[str, tuple[int, ...]] | None:
    """Return what a Transpose and a Reshape made a value of, and the Transpose's order."""
    turned, after = value, types[value].shape
    reshape = makers.get(value)
    # Without tiles the Reshape changes nothing, and is gone.
    if reshape is not None and reshape.op_type == "Reshape":
        turned = reshape.input[0]
    transpose = makers.get(turned)
    if transpose is None or transpose.op_type != "Transpose":
        return None
    order = tuple(next((a.ints for a in transpose.attribute if a.name == "perm"), ()))
    before = types[turned].shape
    spatial = len(after) - 2
    joined = len(before) - spatial
    if order[:2] != (1, 0) or len(order) < 2 + spatial:
        return None
    # Channels stay, places stay, and the axes between them become one.
    whole = 1
    for size in before[1:joined]:
        whole *= size
    if after != (before[0], whole, *before[joined:]):
        return None
    tiles, places = order[2:joined], order[joined:]
    rising = list(tiles) == sorted(tiles) and list(places) == sorted(places)
    if not rising or any(axis + 1 not in places for axis in tiles):
        return None
    return transpose.input[0], order
