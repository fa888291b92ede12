"""Signs that are read late come from halves that are kept anyway, not from singles beside them.

The way back of a ReLU reads only whether its result is above zero, long after the forward pass. If
the gradient of a convolution keeps a rounded copy of that result anyway, MNCoreWiden gives the
signs from it. The singles then need no memory in between. Rounding keeps every sign, but for
elements so small that they become zero. So comparisons of other values read singles: a mask of
small probabilities would lose elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..graph.draft import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..graph.rewrite import Facts, FlowRewrite
from ..layers.half_conversions import NARROW, WIDEN
from ..pfvm.session import Array
from .life_times import FULL, filled_words, last_readers, most_words, reader_places

#: The operator whose result is compared.
_RELU = "Relu"
#: Operators that compare elements.
_COMPARES = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")
#: Signs are taken from halves if values fill more than this share of LM at some time in between.
_FULL = FULL


def _signs(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Compare halves that are alive anyway: relu(x) > 0 is half(relu(x)) > 0."""
    target, data = facts.target, facts.data
    rounded: dict[str, list[MNNode]] = {}
    results = {name for node in graph.device_nodes() if node.op == _RELU for name in node.outputs}
    for node in graph.device_nodes():
        if node.op == NARROW and node.inputs[0] in results:
            rounded.setdefault(node.inputs[0], []).append(node)
    if not rounded:
        return
    ends = last_readers(graph)
    filled = filled_words(graph, ends, target)
    most = most_words(target, _FULL)
    readers = reader_places(graph)
    for single, copies in rounded.items():
        late = _signs_at_end(single, readers[single], graph, data)
        before = [place for place in readers[single] if place not in late]
        if not late or not before:
            continue
        between = filled[before[-1] : late[0]]
        if not between or max(between) <= most:
            continue
        fullest = before[-1] + between.index(max(between))
        kept = next((node for node in copies if ends[node.outputs[0]] > fullest), None)
        if kept is None:
            continue
        wide = f"{kept.outputs[0]}.signs"
        edit = Edit(inputs={(graph.nodes[place].name, single): wide for place in late})
        edit.values[wide] = replace(graph.values[single], name=wide)
        near = graph.nodes[late[0]]
        made = MNNode(f"{wide}.{WIDEN}", WIDEN, kept.outputs, (wide,), kept.attributes)
        edit.before[near.name].append(made.near(near))
        yield edit


def _signs_at_end(
    name: str, readers: Sequence[int], graph: MNGraph, data: Mapping[str, Array]
) -> list[int]:
    """Return the places of the last readers, as far as they only compare the value with zero."""
    out: list[int] = []
    for place in reversed(readers):
        node = graph.nodes[place]
        if node.side is not Side.DEVICE or node.op not in _COMPARES:
            break
        if not all(other == name or _is_zero(other, graph, data) for other in node.inputs):
            break
        out.insert(0, place)
    return out


def _is_zero(name: str, graph: MNGraph, data: Mapping[str, Array]) -> bool:
    return name in graph.constants and name in data and not np.any(data[name])


SIGNS_OF_HALVES = FlowRewrite(
    "signs_of_halves", "results of ReLUs below the least half count as zero", _signs
)
