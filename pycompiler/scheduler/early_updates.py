"""Runs the updates of a training step as soon as their gradients exist.

A traced step has its updates behind the backward pass. There all of them download their state,
compute and upload at once, and each gradient waits for that in LM. Behind its gradient, an update
fills the gaps of the backward pass, and its words are free again. Only elementwise operators, views
and switches move, whose results lead to nothing but new values. Gradients stay where they are,
because the sums behind them need much memory for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..graph.graph import MNGraph, MNNode, Side
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH
from ..layers.view import View
from ..machine import Target
from ..planners.life_times import reader_places


def update_early(graph: MNGraph, renewed: Mapping[str, str], target: Target) -> MNGraph | None:
    """Return the graph with updates behind their gradients; None if nothing moves.

    ``renewed`` maps the key of an output to the registered value whose new value it is. A new value
    stays behind all nodes that read the old one, so that it can take over its words in DRAM.
    """
    old = {name: renewed[key] for key, name in graph.outputs if key in renewed}
    nodes = graph.nodes
    readers = reader_places(graph)
    moving = _moving(graph, readers, old, target)
    spot = {name: place for place, node in enumerate(nodes) for name in node.outputs}
    before = {place: _before(place, nodes[place], spot, readers, old) for place in sorted(moving)}
    behind: dict[int, list[int]] = {}
    first = {nodes[place].segment: place for place in reversed(range(len(nodes)))}
    goals: dict[int, int] = {}
    for place, others in before.items():
        for other in others & moving:
            behind.setdefault(other, []).append(place)
        start = first[nodes[place].segment] - 1
        goals[place] = max([start, *(goals.get(other, other) for other in others)])
    for place in sorted(moving, reverse=True):
        # What no gradient leads to, such as the decay of a momentum, waits for its first reader.
        later = [goals[reader] for reader in behind.get(place, ())]
        if goals[place] < first[nodes[place].segment] or later:
            goals[place] = max(goals[place], min((place, *later)))
    order = sorted(range(len(nodes)), key=lambda place: (goals.get(place, place), place))
    moved = tuple(nodes[place] for place in order)
    return None if moved == nodes else replace(graph, nodes=moved)


def _moving(
    graph: MNGraph, readers: Mapping[str, list[int]], old: Mapping[str, str], target: Target
) -> set[int]:
    """Return the places of nodes whose results lead to nothing but new values."""
    given = {name for _, name in graph.outputs}
    moving: set[int] = set()
    for place in reversed(range(len(graph.nodes))):
        node = graph.nodes[place]
        if _moves(node, graph, target) and all(
            (name in old or (name not in given and name in readers))
            and moving.issuperset(readers.get(name, ()))
            for name in node.outputs
        ):
            moving.add(place)
    return moving


def _moves(node: MNNode, graph: MNGraph, target: Target) -> bool:
    if node.side is not Side.DEVICE or node.slice is not None:
        return False
    layer = LAYERS[node.op]
    if node.op == SWITCH or isinstance(layer, View):
        return True
    return layer.steps_in(node, graph, layer.place(node, graph), target) is not None


def _before(
    place: int,
    node: MNNode,
    spot: Mapping[str, int],
    readers: Mapping[str, list[int]],
    old: Mapping[str, str],
) -> set[int]:
    """Return the nodes that must come before a node: those it reads, and those it overwrites."""
    makers = {spot[name] for name in node.inputs if name in spot}
    overwritten = {old[name] for name in node.outputs if name in old}
    return makers | {at for name in overwritten for at in readers.get(name, ()) if at < place}
