"""Chains of elementwise operators become one operator each.

Alone, each operator reads LM and writes LM, whose ports decide how long it takes. Together, what
lies between them stays in registers. An operator joins the one that reads its result if nothing
else reads it and both have the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ..graph.draft import Edit
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from ..graph.rewrite import Part, Pattern, Rewrite
from ..layers.functions.fused import FUSED, MOST_INPUTS, STEPS, Read, Step, steps_of, text_of
from ..pfvm.session import Array

#: Operators whose time the ports of LM decide.
_CHEAP = frozenset(
    {"Add", "Sub", "Mul", "Neg", "Relu", "Where", "Min", "Max", "And", "Or", "Not"}
    | {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}
)
_DTYPES = frozenset({MNDtype.FLOAT, MNDtype.SINGLE_BOOL})
#: The most operators of a chain: more need more registers than they save.
_MOST = 8
#: Nodes between two operators that may be joined although two large operands then live longer.
_SOON = 8
#: The most operands of full size, as those of an Add.
_LARGE = 2


def _fused(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Compute f(g(x, y), z), all of one shape, as one function of x, y and z.

    Constants of one element become parts of the program.
    """
    node, before = nodes
    graph, target, between = part.graph, part.facts.target, before.outputs[0]
    # Smaller values do not fill one vector of every PE.
    least = prod(target.pe_shape) * MNDtype.FLOAT.words_per_long * target.cycles
    shape = graph.values[between].shape
    if shape != graph.values[node.outputs[0]].shape:
        return None
    if any(one.attributes and one.op != FUSED for one in nodes):
        return None
    if prod(shape) >= least and not _near(before, node, part):
        return None
    joined = _joined(node, before, between, graph, part.facts.data, least)
    return None if joined is None else Edit(gone={before.name}, instead={node.name: joined})


def _near(before: MNNode, node: MNNode, part: Part) -> bool:
    """Whether joining keeps about as much alive: one large operand, or a reader that comes soon."""
    shape = part.values[before.outputs[0]].shape
    large = [name for name in dict.fromkeys(before.inputs) if part.values[name].shape == shape]
    places = part.draft.places
    return len(large) <= 1 or places[node.name] - places[before.name] <= _SOON


def _joined(
    node: MNNode,
    before: MNNode,
    between: str,
    graph: MNGraph,
    data: Mapping[str, Array],
    least: int,
) -> MNNode | None:
    """Return one node for both; None if it would be too large.

    Operands of fewer elements than ``least`` need little of LM.
    """
    first, second = _steps(before, graph, data), _steps(node, graph, data)
    inputs = list(dict.fromkeys((*first[0], *(name for name in second[0] if name != between))))
    steps: list[Step] = []
    for names, own in (first, second):
        offset = len(steps)

        def place(read: Read, names: Sequence[str] = names, offset: int = offset) -> Read:
            if isinstance(read, float):
                return read
            if read < 0:
                return read - offset
            return inputs.index(names[read]) if names[read] != between else -offset

        steps += [(op, tuple(map(place, reads)), dtype) for op, reads, dtype in own]
    # More operands of full size could need more of LM than one operator alone.
    shape = graph.values[node.outputs[0]].shape
    large = sum(graph.values[name].shape == shape for name in inputs)
    most = _LARGE if prod(shape) >= least else MOST_INPUTS
    if len(inputs) > MOST_INPUTS or len(steps) > _MOST or large > most:
        return None
    facts = ((STEPS, text_of(steps)),)
    return replace(node, op=FUSED, inputs=tuple(inputs), attributes=facts)


def _steps(
    node: MNNode, graph: MNGraph, data: Mapping[str, Array]
) -> tuple[tuple[str, ...], list[Step]]:
    """Return the inputs that are no numbers, and the steps that read them."""
    if node.op == FUSED:
        return node.inputs, steps_of(dict(node.attributes))
    own = [name for name in dict.fromkeys(node.inputs) if not _is_number(name, graph, data)]
    reads = tuple(
        own.index(name) if name in own else float(data[name].reshape(())) for name in node.inputs
    )
    return tuple(own), [(node.op, reads, graph.values[node.outputs[0]].dtype)]


def _is_number(name: str, graph: MNGraph, data: Mapping[str, Array]) -> bool:
    known = name in graph.constants and name in data and graph.values[name].dtype is MNDtype.FLOAT
    # An infinity becomes what the conversion of all constants makes of it.
    return known and data[name].size == 1 and bool(np.isfinite(data[name]).all())


_ELEMENTWISE = Pattern(_CHEAP | {FUSED}, dtypes=_DTYPES)
FUSE_ELEMENTWISE = Rewrite(
    "fuse_elementwise",
    "a product is not rounded before it is added",
    replace(_ELEMENTWISE, operand=_ELEMENTWISE),
    _fused,
)
