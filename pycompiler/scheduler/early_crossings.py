"""Brings parameters over the L2Bs early, one after the other, while MVs have little to do.

A pass between L2Bs takes long, because its MVs hold the L2BMs of all units. Directly before a
convolution, that of its weights would make the convolution wait, and many of them would wait for
each other. Nothing but the parameters must be there for it. So each such pass begins long before
its reader, and long before the next pass.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from itertools import accumulate

from ..graph.graph import MNGraph, MNNode, Side
from ..graph.layout import Level
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH, level_of
from ..machine import Target
from ..planners.life_times import reader_places

#: A pass begins so many times its own steps before its reader, and before the pass behind it.
_AHEAD, _APART = 16, 2
#: More nodes than this do not move with a pass.
_MOST_NODES = 32


def cross_early(graph: MNGraph, renewed: Mapping[str, str], target: Target) -> MNGraph | None:
    """Return the graph with passes of parameters between L2Bs early; None if nothing moves.

    ``renewed`` maps the key of an output to the registered value whose new value it is. What makes
    a new value does not move: readers of the old one would find its words overwritten.
    """
    stay = {name for key, name in graph.outputs if key in renewed}
    made = {name: place for place, node in enumerate(graph.nodes) for name in node.outputs}
    found = {
        place: behind
        for place, node in enumerate(graph.nodes)
        if node.op == SWITCH and level_of(node) is Level.L2B
        for behind in [_from_inputs(place, graph, made, stay)]
        if behind is not None
    }
    if not found:
        return None
    steps = [
        0 if place in found or node.side is not Side.DEVICE else _steps(node, graph, target)
        for place, node in enumerate(graph.nodes)
    ]
    times = list(accumulate(steps, initial=0))
    readers = reader_places(graph)
    begins: dict[int | None, int] = {}
    for place, node in enumerate(graph.nodes):
        begins.setdefault(node.segment, times[place])
    # The times at which nodes shall begin, if that is earlier than they would.
    goals: dict[int, int] = {}
    following: dict[int | None, int] = {}
    first_reader = {
        place: readers.get(graph.nodes[place].outputs[0], [place])[0] for place in found
    }
    for place in sorted(found, key=lambda place: (-first_reader[place], -place)):
        node = graph.nodes[place]
        own = _steps(node, graph, target)
        goal = times[first_reader[place]] - _AHEAD * own
        goal = min(goal, following.get(node.segment, goal + _APART * own) - _APART * own)
        following[node.segment] = goal = max(goal, begins[node.segment])
        for other in (place, *found[place]):
            goals[other] = min(goals.get(other, times[other]), goal)

    # Host nodes take no time here, so segments may begin at the same time.
    segments = {segment: number for number, segment in enumerate(begins)}

    def when(place: int) -> tuple[int, int, bool, int]:
        segment = segments[graph.nodes[place].segment]
        return segment, goals.get(place, times[place]), place not in goals, place

    order = sorted(range(len(graph.nodes)), key=when)
    moved = tuple(graph.nodes[place] for place in order)
    return None if moved == graph.nodes else replace(graph, nodes=moved)


def _steps(node: MNNode, graph: MNGraph, target: Target) -> int:
    return LAYERS[node.op].cost(node, graph, target)


def _from_inputs(
    place: int, graph: MNGraph, made: Mapping[str, int], stay: Container[str]
) -> list[int] | None:
    """Return the nodes that a node needs.

    None if it needs more than inputs, many nodes, or one that makes a value of ``stay``.
    """
    segment = graph.nodes[place].segment
    found: dict[int, None] = {}
    waiting = [place]
    while waiting:
        at = waiting.pop()
        node = graph.nodes[at]
        if node.side is not Side.DEVICE or node.slice is not None or node.segment != segment:
            return None
        if at != place:
            found[at] = None
        if len(found) > _MOST_NODES or any(name in stay for name in node.outputs):
            return None
        waiting += [made[name] for name in node.inputs if name in made and made[name] not in found]
    return list(found)
