"""Chains of operators that the device computes as one function of singles.

The reciprocal of a root is one: the iteration gives 1/sqrt(x) itself. A mean is a sum times the
reciprocal of a count, rounded once, for which the graph goes through doubles. An axis of values of
different widths has no digit on W, so what lies beside such a mean, as all of a BatchNorm does,
could not have its channels in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ..graph.edit import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..layers.functions.arithmetic import FACTOR, SHARE
from ..layers.functions.roots import RSQRT
from ..pfvm.session import Array

#: Operators that end a chain, and the operators before them, the last first.
_CHAINS = {"Reciprocal": ("Sqrt",), "Cast": ("Mul", "Cast")}
#: Both singles of a number in these bounds are far from the ends of their range.
_LEAST, _MOST = 2.0**-64, 2.0**64


def fuse_functions(graph: MNGraph, exact: Collection[str], data: Mapping[str, Array]) -> MNGraph:
    """Replace chains of which nothing else reads what lies between by one node each.

    ``exact`` are values that must stay, such as those that overrides name. ``data`` has the
    elements of constants.
    """
    kept = {*exact, *(name for _, name in graph.outputs)}
    read = Counter(name for node in graph.nodes for name in node.inputs)
    made, edit = graph.producers(), Edit(graph)
    for node in graph.device_nodes():
        chain = [node]
        for op in _CHAINS.get(node.op, ()):
            name = chain[-1].inputs[0]
            before = made.get(name)
            if before is None or before.op != op or name in kept or read[name] > 1:
                break
            if (before.side, before.segment) != (Side.DEVICE, node.segment):
                break
            chain.append(before)
        whole = node.op in _CHAINS and len(chain) > len(_CHAINS[node.op])
        one = _fused(chain, graph, data) if whole else None
        if one is not None:
            edit.instead[node.name] = one
            edit.gone |= {before.name for before in chain[1:]}
    return edit.done()


def _fused(chain: list[MNNode], graph: MNGraph, data: Mapping[str, Array]) -> MNNode | None:
    """Return the node of a chain, the last node first; None if it is no function of singles."""
    last, first = chain[0], chain[-1]
    source, result = (graph.values[name] for name in (first.inputs[0], last.outputs[0]))
    if {source.type.elem, result.type.elem} != {"float"} or source.shape != result.shape:
        return None
    if last.op == "Reciprocal":
        return replace(last, op=RSQRT, inputs=first.inputs)
    product = chain[1]
    number = data.get(product.inputs[1])
    factor = float(number.item()) if number is not None and number.size == 1 else 0.0
    if graph.values[product.outputs[0]].type.elem != "double" or not _LEAST < abs(factor) < _MOST:
        return None
    return replace(last, op=SHARE, inputs=first.inputs, attributes=((FACTOR, factor),))
