"""The graph's own operators for convolutions in groups."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import replace

import onnx

from ..graph.graph import MNNode, TensorType
from ..pfvm.names import fresh
from ..pfvm.session import Array
from ..pfvm.windows import DEPTHWISE, GROUPED
from .host_forms import HostForms, reshaped


def convolution_nodes(
    node: MNNode,
    types: MutableMapping[str, TensorType],
    data: MutableMapping[str, Array],
    forms: HostForms,
) -> Iterator[MNNode]:
    """Yield the nodes of a Conv; other nodes stay as they are.

    If its groups have single channels, it is one node of another operator. Other groups become an
    axis of the pixels, of the weights and of the result. ``types`` and ``data`` get the new values,
    ``forms`` the ONNX nodes of the new nodes.
    """
    if node.op != "Conv" or types[node.inputs[0]].elem != "float":
        yield node
        return
    shape, weights = (types[name].shape for name in node.inputs[:2])
    facts = dict(node.attributes)
    group, pads = facts.get("group", 1), facts.get("pads", ())
    assert isinstance(group, int)
    padded = any(pads) if isinstance(pads, tuple) else True
    plain = not padded and facts.get("auto_pad", "NOTSET") in ("NOTSET", "VALID")
    if weights[0] == shape[1] > weights[1] == 1:
        # The windows are read from the attributes, and `kernel_shape` may be missing there.
        attributes = {**facts, "kernel_shape": weights[2:]}
        yield replace(node, op=DEPTHWISE, attributes=tuple(attributes.items()))
    elif group > 1 and plain:
        yield from _with_group_axis(node, group, types, data, forms)
    else:
        yield node


def _with_group_axis(
    node: MNNode,
    group: int,
    types: MutableMapping[str, TensorType],
    data: MutableMapping[str, Array],
    forms: HostForms,
) -> Iterator[MNNode]:
    pixels, result = node.inputs[0], node.outputs[0]

    def value(like: str, axis: int) -> str:
        """Return a new value like another one, whose ``axis`` is split into groups."""
        name, found = fresh(f"{like}.groups", types), types[like]
        split = (*found.shape[:axis], group, found.shape[axis] // group, *found.shape[axis + 1 :])
        types[name] = TensorType(found.elem, split)
        return name

    def view(source: str, goal: str) -> MNNode:
        facts = (("shape", types[goal].shape), ("allowzero", 1))
        name = f"{node.name}.{goal}"
        forms[name] = reshaped(source, types[goal].shape, goal)
        return MNNode(name, "Reshape", (source,), (goal,), facts, source=node.source)

    def flat(place: int, split: str) -> tuple[onnx.NodeProto, ...]:
        """Let the whole Conv read ``split`` without the axis of groups; return what makes that."""
        shape = types[whole.input[place]].shape
        whole.input[place] = f"{split}.flat"
        return reshaped(split, shape, f"{split}.flat")

    pixels_in, result_in = value(pixels, 1), value(result, 1)
    yield view(pixels, pixels_in)
    parameters = []
    whole = onnx.NodeProto()
    whole.CopyFrom(forms[node.name][-1])
    form = flat(0, pixels_in)
    for place, name in enumerate(node.inputs[1:], 1):
        if not name:
            continue
        parameters.append(value(name, 0))
        form += flat(place, parameters[-1])
        if name in data:
            data[parameters[-1]] = data[name].reshape(types[parameters[-1]].shape)
        else:
            yield view(name, parameters[-1])
    whole.output[0] = f"{result_in}.flat"
    form += (whole, *reshaped(whole.output[0], types[result_in].shape, result_in))
    forms[node.name] = form
    kept = tuple((name, fact) for name, fact in node.attributes if name in ("strides", "dilations"))
    reads = (pixels_in, *parameters)
    yield replace(node, op=GROUPED, inputs=reads, outputs=(result_in,), attributes=kept)
    yield view(result_in, result)
