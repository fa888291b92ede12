"""Chains of elementwise operators become one operator each.

Alone, each operator reads LM and writes LM, whose ports decide how long it takes. Together, what
lies between them stays in registers. An operator joins the one that reads its result if nothing
else reads it and both have the same shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ..graph.dtypes import MNDtype
from ..graph.edit import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..layers.functions.fused import FUSED, MOST_INPUTS, STEPS, Read, Step, steps_of, text_of
from ..machine import Target
from ..pfvm.session import Array

#: Operators whose time the ports of LM decide.
_CHEAP = frozenset(
    {"Add", "Sub", "Mul", "Neg", "Relu", "Where", "Min", "Max", "And", "Or", "Not"}
    | {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}
)
_DTYPES = (MNDtype.FLOAT, MNDtype.SINGLE_BOOL)
#: The most operators of a chain: more need more registers than they save.
_MOST = 8
#: Nodes between two operators that may be joined although two large operands then live longer.
_SOON = 8
#: The most operands of full size, as those of an Add.
_LARGE = 2


def fuse_elementwise(
    graph: MNGraph,
    target: Target,
    exact: Collection[str],
    data: Mapping[str, Array],
    apart: Collection[str] = (),
) -> MNGraph:
    """Join elementwise operators on singles; ``exact`` values stay, as do small ones.

    ``data`` has the elements of constants: those of one element become parts of the program.
    Operators of the types ``apart`` stay as they are.
    """
    kept = {*exact, *(name for _, name in graph.outputs)}
    readers = Counter(name for node in graph.nodes for name in dict.fromkeys(node.inputs))
    # Smaller values do not fill one vector of every PE.
    least = prod(target.pe_shape) * MNDtype.FLOAT.words_per_long * target.cycles
    made: dict[str, tuple[int, MNNode]] = {}
    edit = Edit(graph)
    for place, node in enumerate(graph.nodes):
        if node.op in apart or not _may_join(node, graph):
            continue
        out = node.outputs[0]
        for name in dict.fromkeys(node.inputs):
            if name not in made or readers[name] != 1 or name in kept:
                continue
            start, before = made[name]
            shape = graph.values[name].shape
            if shape != graph.values[out].shape:
                continue
            if before.segment != node.segment:
                continue
            if prod(shape) >= least and not _near(before, start, place, graph):
                continue
            joined = _joined(node, before, name, graph, data, least)
            if joined is not None:
                for both in set(before.inputs) & set(node.inputs):
                    readers[both] -= 1
                node = joined
                edit.gone.add(before.name)
        made[out] = place, node
        edit.instead[node.name] = node
    return edit.done()


def _may_join(node: MNNode, graph: MNGraph) -> bool:
    if node.side is not Side.DEVICE or node.op not in _CHEAP or node.attributes:
        return False
    return all(
        name and graph.values[name].dtype in _DTYPES for name in (*node.inputs, *node.outputs)
    )


def _near(before: MNNode, start: int, place: int, graph: MNGraph) -> bool:
    """Whether joining keeps about as much alive: one large operand, or a reader that comes soon."""
    shape = graph.values[before.outputs[0]].shape
    large = [name for name in dict.fromkeys(before.inputs) if graph.values[name].shape == shape]
    return len(large) <= 1 or place - start <= _SOON


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
