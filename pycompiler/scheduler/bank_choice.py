"""Chooses LM0 or LM1 for the operands and results of nodes, so that few values are copied.

Most layers read one LM and write the other, and products read a matrix and vectors from different
LMs. So the banks of a chain of nodes alternate, and where two chains meet, one of the values may
lie in the wrong bank and must be copied. Each chain may begin in either bank, though.

:class:`Sides` looks at the whole graph: two values that a layer ties to equal or to different banks
are an edge, and its weight is the words that a copy would move. A spanning forest of the heaviest
edges says which values lie on the same side. Only edges outside of the forest can need a copy, and
these are the light ones: a weight is copied before it is spread over all units, not behind.

Elementwise operators read both operands from one LM as fast as from two. They tie nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ..graph.graph import Location, MNGraph, MNNode, Side
from ..layers.base import Placement, distinct, mirrored
from ..layers.operators import LAYERS
from ..layers.split_concat import IN_DRAM
from ..machine import Target

BANKS = (Location.LM0, Location.LM1)


class Sides:
    """Which values should lie in the same bank, and which in different ones."""

    def __init__(self, graph: MNGraph, target: Target):
        self.graph, self.target = graph, target
        self._above: dict[str, tuple[str, int]] = {}
        #: the bank of the values with side 0, by the root of a tree
        self._banks: dict[str, Location] = {}
        edges = sorted(self._edges(), key=lambda edge: -edge[0])
        for _, one, other, differ in edges:
            first, second = self._find(one), self._find(other)
            if first[0] != second[0]:
                self._above[first[0]] = second[0], first[1] ^ second[1] ^ differ

    def preferred(self, name: str) -> Location | None:
        """Return the bank in which ``name`` should lie; None if either is as good."""
        root, side = self._find(name)
        bank = self._banks.get(root)
        return None if bank is None else BANKS[BANKS.index(bank) ^ side]

    def settle(self, name: str, bank: Location) -> None:
        """Note that ``name`` lies in ``bank``: the values of its tree follow."""
        root, side = self._find(name)
        self._banks.setdefault(root, BANKS[BANKS.index(bank) ^ side])

    def _find(self, name: str) -> tuple[str, int]:
        """Return the root of the tree of ``name``, and whether both lie on different sides."""
        path, side = [], 0
        while name in self._above:
            path.append(name)
            name = self._above[name][0]
        for one in reversed(path):
            side ^= self._above[one][1]
            self._above[one] = name, side
        return name, side

    def _edges(self) -> Iterator[tuple[int, str, str, int]]:
        """Yield words, two values, and whether these should lie in different banks."""
        for node in self.graph.nodes:
            if node.side is Side.HOST or node.op in IN_DRAM:
                continue
            inputs = distinct([name for name in node.inputs if name])
            outputs = [name for name in node.outputs if name]
            placement = LAYERS[node.op].place(node, self.graph)
            if not placement.mirrors:
                continue
            free = LAYERS[node.op].steps_in(node, self.graph, placement, self.target) is not None
            if free:
                # A result in another bank than its only operand, or than the largest, costs least.
                largest = max(inputs, key=self._words, default=None)
                if largest is not None:
                    share = 1 if len(inputs) == 1 else 2
                    yield self._words(largest) // share, largest, outputs[0], 1
                continue
            places = [*zip(inputs, placement.inputs, strict=True)]
            places += [pair for pair in zip(outputs, placement.outputs, strict=True)]
            places = [(name, bank) for name, bank in places if bank in BANKS]
            for name, bank in places[:-1]:
                last, other = places[-1]
                yield self._words(name), name, last, int(bank is not other)

    def _words(self, name: str) -> int:
        return self.graph.values[name].num_lw or 0


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
        found = cycles(there) or 0
        if taken is not None and banks[taken] is out:
            yield replace(there, inplace=wanted.inplace), found
        yield there, found


def _nearest(lying: Sequence[Location], out: Location, new: Location) -> Location:
    """Return the bank in which an operand is read: one where it lies, or ``new``."""
    others = [bank for bank in lying if bank is not out]
    return next(iter((*others, *lying)), new)
