"""Results of products in half that the caller wants as 16-bit floats are stored as halves.

The result is rounded once more, behind the sums of singles, by MNCoreNarrow. Then half as many
words leave LM, and DRAM holds half as many. A `float16` has fewer exponent bits than the machine's
half, so no result becomes infinite or zero that was not so before. A `bfloat16` has more, so it
stays a single.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from ..graph.dtypes import MNDtype
from ..graph.edit import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..layers.half_conversions import AXIS, NARROW
from ..layers.products.roles import precision_of, roles_of
from ..machine import WORDS_PER_LONG, Target

#: The element type of such results.
_NARROW_TYPE = "float16"
#: Products whose results are rounded here; channels of convolutions have a rule of their own.
_PRODUCTS = ("MatMul", "Gemm")


def round_results(graph: MNGraph, target: Target, exact: Collection[str]) -> MNGraph:
    """Insert MNCoreNarrow behind products in half whose results are 16-bit outputs.

    ``exact`` values keep all bits. Other readers of a result get the singles.
    """
    wanted = {name for _, name in graph.outputs} - set(exact)
    edit, readers = Edit(graph), graph.readers()
    for node in graph.nodes:
        out = node.outputs[0]
        axis = _axis(node, graph, target) if out in wanted else None
        if axis is None:
            continue
        single = f"{out}.singles"
        edit.values[out] = replace(graph.values[out], dtype=MNDtype.HALF)
        edit.values[single] = replace(graph.values[out], name=single)
        made = MNNode(f"{out}.{NARROW}", NARROW, (single,), (out,), ((AXIS, axis),))
        edit.instead[node.name] = replace(node, outputs=(single,))
        edit.behind[node.name].append(made.near(node))
        edit.inputs |= {(reader.name, out): single for reader in readers.get(out, ())}
    return edit.done()


def _axis(node: MNNode, graph: MNGraph, target: Target) -> int | None:
    """Return the axis of a result's columns if the result is stored as halves."""
    value = graph.values[node.outputs[0]]
    if node.side is not Side.DEVICE or node.op not in _PRODUCTS:
        return None
    if value.type.elem != _NARROW_TYPE or value.dtype is not MNDtype.FLOAT:
        return None
    if precision_of(node, target).words <= WORDS_PER_LONG:
        return None
    # Smaller values do not even fill a long word of each PE.
    if prod(value.shape) < prod(target.pe_shape) * MNDtype.FLOAT.words_per_long:
        return None
    return roles_of(node, graph).c[2]
