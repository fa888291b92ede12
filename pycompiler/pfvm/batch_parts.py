"""Into how many parts the batch of a model may be cut.

Where the values of a large batch crowd LM, each part of the batch may go through the whole model
before the next one begins. Weights are then loaded for every part, but values stay in LM.
"""

from __future__ import annotations

from math import prod

import onnx

from ..graph.dtypes import MNDtype, device_dtype
from ..machine import Target
from .known_shapes import tensor_types
from .registered import updates

#: guess: values crowd LM if they fill this share of it, in the mean over the operators. Copies,
#: padding and weights need the rest.
_CROWDED = 1 / 6
#: guess: of models with fewer operators, slices of some values take fewer cycles than parts.
LARGE = 100
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"})


def parts_of(model: onnx.ModelProto, target: Target, *, halves: bool) -> int:
    """Return the fewest parts, a power of two, of which none crowds LM; 1 if no part is so small.

    With ``halves``, floats may be kept as halves. The batch of a small model, and of a training
    step, which adds up over it, stays whole.
    """
    if len(model.graph.node) < LARGE or updates(model):
        return 1
    graph, types = model.graph, tensor_types(model.graph)
    ends = {name: place for place, node in enumerate(graph.node) for name in node.input}
    made = [
        (name, place)
        for place, node in enumerate(graph.node)
        for name in node.output
        if name in types and node.op_type not in _VIEWS
    ]
    filled = 0.0
    for name, place in made:
        elem, shape = types[name].elem, types[name].shape
        bits = (MNDtype.HALF if halves and elem == "float" else device_dtype(elem)).bits
        filled += prod(shape) * bits / MNDtype.LONG.bits * (ends.get(name, place) + 1 - place)
    room = sum(target.words(memory) for memory in ("lm0", "lm1")) * prod(target.pe_shape)
    parts = 1
    while filled > parts * _CROWDED * room * len(graph.node):
        parts *= 2
    given = (types[one.name].shape for one in graph.input if one.name in types)
    batch = min((shape[0] for shape in given if shape), default=1)
    return parts if parts <= batch else 1
