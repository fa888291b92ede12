"""The graph's own operator for a Slice that leaves out little at the ends of axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..graph.graph import MNNode, TensorType
from ..pfvm.composites.writer import MOVED

#: The graph's own operator; its layer explains it.
CROP = "MNCoreCrop"
#: A crop keeps at least this part of an axis: what it leaves out still takes room, time and words
#: of DRAM.
_KEPT = 3 / 4


def crop_node(node: MNNode, types: Mapping[str, TensorType]) -> MNNode:
    """Return the node of a Slice that only leaves out a few last elements; else ``node``."""
    if node.op != "Slice":
        return node
    given, found = types[node.inputs[0]], types[node.outputs[0]]
    facts = dict(node.attributes)
    starts, steps = facts.get("starts"), facts.get("steps", (1,))
    if not isinstance(starts, tuple) or not isinstance(steps, tuple) or given.elem not in MOVED:
        return node
    pairs = list(zip(given.shape, found.shape, strict=True))
    little = given.shape != found.shape and all(k and k >= _KEPT * s for s, k in pairs)
    if any(starts) or any(step != 1 for step in steps) or not little:
        return node
    return replace(node, op=CROP, inputs=node.inputs[:1], attributes=())
