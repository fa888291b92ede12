"""How long values of a graph are needed, and how much of LM they fill meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, Side
from ..layers.view import VIEWS
from ..machine import Target

#: LM is short where values fill more than this share of it: the rest is for copies and padding.
FULL = 0.25


def last_readers(graph: MNGraph) -> dict[str, int]:
    """Return the place of the last node that reads each value or a view of it."""
    ends: dict[str, int] = {}
    for place, node in reversed(list(enumerate(graph.nodes))):
        viewed = ends.get(node.outputs[0], place) if node.op in VIEWS and node.outputs else place
        for name in node.inputs:
            ends[name] = max(ends.get(name, 0), viewed)
    return ends


def filled_words(graph: MNGraph, ends: Mapping[str, int], target: Target) -> list[float]:
    """Return the long words of each PE that values of the device fill at each node.

    They count as if each lay once on all PEs. Then the sum is at most what they need.
    """
    change = [0.0] * (len(graph.nodes) + 1)
    for place, node in enumerate(graph.nodes):
        if node.side is not Side.DEVICE or node.op in VIEWS:
            continue
        for name in filter(None, node.outputs):
            value = graph.values[name]
            if value.dtype is MNDtype.UNKNOWN:
                continue
            words = prod(value.shape) / value.dtype.words_per_long / prod(target.pe_shape)
            change[place] += words
            change[ends.get(name, place) + 1] -= words
    return [float(one) for one in np.cumsum(change[:-1])]


def reader_places(graph: MNGraph) -> dict[str, list[int]]:
    """Return the places of the nodes that read each value, in the order of the graph."""
    found: dict[str, list[int]] = {}
    for place, node in enumerate(graph.nodes):
        for name in dict.fromkeys(node.inputs):
            found.setdefault(name, []).append(place)
    return found


def most_words(target: Target, share: float) -> float:
    """Return the long words of each PE beyond which LM is short."""
    return share * sum(target.words(memory) for memory in ("lm0", "lm1"))
