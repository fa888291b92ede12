"""Results of products in half that the caller wants as 16-bit floats are stored as halves.

The result is rounded once more, behind the sums of singles, by MNCoreNarrow. Then half as many
words leave LM, and DRAM holds half as many. A `float16` has fewer exponent bits than the machine's
half, so no result becomes infinite or zero that was not so before. A `bfloat16` has more, so it
stays a single.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ..graph.draft import Edit
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from ..graph.rewrite import Part, Pattern, Rewrite
from ..layers.half_conversions import AXIS, NARROW
from ..layers.products.roles import precision_of, roles_of
from ..machine import WORDS_PER_LONG, Target

#: The element type of such results.
_NARROW_TYPE = "float16"


def _rounded(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Round a result before it leaves LM: float16(x) is float16(half(x)).

    Other readers get the singles.
    """
    (node,) = nodes
    out, outputs = node.outputs[0], (name for _, name in part.graph.outputs)
    wanted = out in outputs and out not in part.facts.exact
    axis = _axis(node, part.graph, part.facts.target) if wanted else None
    if axis is None:
        return None
    edit, single, value = Edit(), f"{out}.singles", part.values[out]
    edit.values = {out: replace(value, dtype=MNDtype.HALF), single: replace(value, name=single)}
    edit.outputs[node.name, out] = single
    narrow = MNNode(f"{out}.{NARROW}", NARROW, (single,), (out,), ((AXIS, axis),))
    edit.behind[node.name].append(narrow.near(node))
    edit.inputs = {(reader.name, out): single for reader in part.draft.readers(out)}
    return edit


def _axis(node: MNNode, graph: MNGraph, target: Target) -> int | None:
    """Return the axis of a result's columns if the result is stored as halves."""
    value = graph.values[node.outputs[0]]
    if value.type.elem != _NARROW_TYPE or value.dtype is not MNDtype.FLOAT:
        return None
    if precision_of(node, target).words <= WORDS_PER_LONG:
        return None
    # Smaller values do not even fill a long word of each PE.
    if prod(value.shape) < prod(target.pe_shape) * MNDtype.FLOAT.words_per_long:
        return None
    return roles_of(node, graph).c[2]


#: Channels of convolutions have a rule of their own.
ROUND_RESULTS = Rewrite(
    "round_results",
    "what becomes a 16-bit float is rounded to half before",
    Pattern(frozenset({"MatMul", "Gemm"})),
    _rounded,
)
