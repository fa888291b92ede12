"""Where the operands of a node may lie: in LM0 or in LM1.

Most layers name the banks of their operands, and may exchange LM0 and LM1. Elementwise operators
read both operands from one LM as fast as from two, so theirs may stay where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ..graph.graph import Location, MNGraph, MNNode
from ..layers.base import Placement, distinct, mirrored
from ..layers.operators import LAYERS
from ..machine import Target

BANKS = (Location.LM0, Location.LM1)


def placements(
    node: MNNode, graph: MNGraph, target: Target, lying: Mapping[str, Sequence[Location]]
) -> Iterator[tuple[Placement, int]]:
    """Yield where the operands of a node may lie, with the cycles of its code in each case.

    Cycles of layers that do not tell them count as 0. ``lying`` has the banks with a copy of each
    input.
    """
    layer = LAYERS[node.op]
    wanted = layer.place(node, graph)
    usual = (wanted, mirrored(wanted)) if wanted.mirrors else (wanted,)
    inputs = distinct([name for name in node.inputs if name])

    def cycles(placement: Placement) -> int | None:
        steps = layer.steps_in(node, graph, placement, target)
        return None if steps is None else steps * target.cycles

    if not inputs or cycles(wanted) is None:
        yield from ((one, 0) for one in usual)
        return
    places = [(one.inputs, one.outputs[0]) for one in usual]
    for out, new in product(BANKS, BANKS):
        places.append((tuple(_nearest(lying[name], out, new) for name in inputs), out))
    taken = None if wanted.inplace is None else inputs.index(node.inputs[wanted.inplace])
    for banks, out in dict.fromkeys(places):
        there = Placement(banks, (out,), mirrors=wanted.mirrors)
        cost = cycles(there) or 0
        if taken is not None and banks[taken] is out:
            yield replace(there, inplace=wanted.inplace), cost
        yield there, cost


def _nearest(lying: Sequence[Location], out: Location, new: Location) -> Location:
    """Return the bank in which an operand is read: one where it lies, or ``new``."""
    others = [bank for bank in lying if bank is not out]
    return next(iter((*others, *lying)), new)
