"""Layout switches beside the fewest steps in which they could be done, by kind.

A switch is a chain of passes, from a value that no pass makes to one that something else reads.
Passes that several switches share count for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph.graph import MNGraph, MNNode, MNValue
from ..layers.base import layout_of
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH, level_of
from ..machine import Target
from .crossing import Crossing, crossings, least_steps


@dataclass
class Kind:
    """Switches with the same passes of which as many digits must move.

    ``steps`` are those of all passes by themselves, ``least`` what the machine needs for them.
    ``example`` is the result of the switch that is furthest above, by ``above`` steps.
    """

    name: str
    count: int = 0
    steps: int = 0
    least: int = 0
    example: str = ""
    above: int = -1

    def json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Switch:
    """A chain of passes from the value ``first`` to ``last``.

    ``crossing`` says what must come into the units of each level, ``least`` the steps for it.
    """

    chain: Sequence[MNNode]
    first: MNValue
    last: MNValue
    crossing: Mapping[str, Crossing]
    least: int


def switches(graph: MNGraph, target: Target) -> Iterator[Switch]:
    """Yield the switches of a graph; changes of layout that are alike are counted once."""
    known: dict[object, Mapping[str, Crossing]] = {}
    for chain in _chains(graph):
        first, last = graph.values[chain[0].inputs[0]], graph.values[chain[-1].outputs[0]]
        key = layout_of(first), layout_of(last), first.shape, first.dtype
        if key not in known:
            known[key] = crossings(*key, target)
        yield Switch(chain, first, last, known[key], least_steps(known[key], first.dtype, target))


def kinds(graph: MNGraph, target: Target) -> list[Kind]:
    """Return the kinds of switches, those with the most steps above what is needed first."""
    found: dict[str, Kind] = {}
    known: dict[object, int] = {}
    for switch in switches(graph, target):
        steps = sum(_steps(node, graph, target, known) for node in switch.chain)
        passes = ", ".join(level_of(node).value for node in switch.chain)
        name = f"{passes} ({switch.first.dtype.value}): {_ranks(switch.crossing)}"
        kind = found.setdefault(name, Kind(name))
        kind.count, kind.steps = kind.count + 1, kind.steps + steps
        kind.least += switch.least
        if steps - switch.least > kind.above:
            kind.example, kind.above = switch.last.name, steps - switch.least
    return sorted(found.values(), key=lambda kind: (kind.least - kind.steps, kind.name))


def _chains(graph: MNGraph) -> Iterator[list[MNNode]]:
    """Yield the passes of each switch, the first one first."""
    made = graph.producers()
    read = {name for _, name in graph.outputs}
    read |= {name for node in graph.nodes if node.op != SWITCH for name in node.inputs}
    for node in graph.nodes:
        if node.op == SWITCH and node.outputs[0] in read:
            chain = [node]
            while (before := made.get(chain[0].inputs[0])) is not None and before.op == SWITCH:
                chain.insert(0, before)
            yield chain


def _steps(node: MNNode, graph: MNGraph, target: Target, known: dict[object, int]) -> int:
    """Return the steps of a pass by itself; passes that are alike are asked once."""
    source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
    places = source.location, result.location
    key = layout_of(source), layout_of(result), source.shape, source.dtype, node.plan, places
    if key not in known:
        known[key] = LAYERS[SWITCH].cost(node, graph, target)
    return known[key]


def _ranks(found: Mapping[str, Crossing]) -> str:
    """Return what must move: the ranks of each level, or the elements if digits have no form."""
    parts = []
    for unit, own in found.items():
        powers = " x ".join(f"{size}^{times}" for size, times in sorted(own.rank.items()))
        if own.elements:
            parts.append(f"{unit} {powers or own.elements}")
    return ", ".join(parts) or "nothing must move"
