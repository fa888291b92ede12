"""A Slice that leaves out little at the ends of axes moves nothing: it only reads less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.draft import Edit
from ..graph.graph import MNNode
from ..graph.rewrite import Part, Pattern, Rewrite
from ..layers.crop import CROP
from ..pfvm.composites.writer import MOVED

#: A crop keeps at least this part of an axis: what it leaves out still takes room, time and words
#: of DRAM.
_KEPT = 3 / 4


def _cropped(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Read less of x: a Slice of step 1 from the start of all axes is a crop, without code."""
    (node,) = nodes
    given, found = (part.values[name].type for name in (node.inputs[0], node.outputs[0]))
    facts = dict(node.attributes)
    starts, steps = facts.get("starts"), facts.get("steps", (1,))
    if not isinstance(starts, tuple) or not isinstance(steps, tuple) or given.elem not in MOVED:
        return None
    pairs = list(zip(given.shape, found.shape, strict=True))
    little = given.shape != found.shape and all(k and k >= _KEPT * s for s, k in pairs)
    if any(starts) or any(step != 1 for step in steps) or not little:
        return None
    made = replace(node, op=CROP, inputs=node.inputs[:1], attributes=())
    return Edit(instead={node.name: made})


CROP_SLICES = Rewrite("crop_slices", "", Pattern(frozenset({"Slice"})), _cropped)
