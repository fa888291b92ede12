"""Places the nodes of a graph in rows, so that values flow downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graph.graph import MNGraph

_SWEEPS = 3


@dataclass(frozen=True)
class Drawing:
    """``places`` are columns and rows of the nodes; an edge names two nodes and the value."""

    places: list[tuple[float, int]]
    edges: list[tuple[int, int, str]]


@dataclass(frozen=True)
class Module:
    """Nodes that a folded graph draws as one: their numbers, and the name of their module."""

    name: str
    members: tuple[int, ...]


def draw(graph: MNGraph) -> Drawing:
    """Return the places of all nodes, and the edges between them."""
    edges = _edges(graph)
    return Drawing(_places(len(graph.nodes), edges), edges)


def fold(graph: MNGraph, modules: Sequence[str]) -> tuple[list[Module], Drawing]:
    """Return a drawing in which nodes of one module are one; ``modules`` has a name for each node.

    Nodes without a name stay as they are. An edge that leads back to a module, from nodes between
    its own, is left out.
    """
    groups: dict[object, list[int]] = {}
    for k, name in enumerate(modules):
        groups.setdefault(name or k, []).append(k)
    place = {k: at for at, own in enumerate(groups.values()) for k in own}
    edges = [
        (place[one], place[other], name)
        for one, other, name in _edges(graph)
        if place[one] < place[other]
    ]
    joined = list({edge[:2]: edge for edge in edges}.values())
    found = [Module(modules[own[0]], tuple(own)) for own in groups.values()]
    return found, Drawing(_places(len(found), joined), joined)


def _edges(graph: MNGraph) -> list[tuple[int, int, str]]:
    made = {out: k for k, node in enumerate(graph.nodes) for out in node.outputs if out}
    return list(
        dict.fromkeys(
            (made[name], k, name)
            for k, node in enumerate(graph.nodes)
            for name in node.inputs
            if name in made
        )
    )


def _places(count: int, edges: Sequence[tuple[int, int, str]]) -> list[tuple[float, int]]:
    """Return columns and rows; an edge leads to a larger number.

    A row is one more than the longest way from a node that reads only inputs. Such a node, for
    example a download, stands above its first reader. Two nodes of a row are at least 1 apart.
    """
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for one, other, _ in edges:
        above[other].append(one)
        below[one].append(other)
    rows = [0] * count
    for k in range(len(rows)):  # nodes stand in an order in which they can run
        rows[k] = 1 + max((rows[p] for p in above[k]), default=-1)
    for k in range(len(rows)):
        if not above[k] and below[k]:
            rows[k] = max(0, min(rows[n] for n in below[k]) - 1)
    return list(zip(_columns(rows, above, below), rows, strict=True))


def _columns(
    rows: Sequence[int], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> list[float]:
    """Return a column for each node, near those of its neighbours."""
    members: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for k, row in enumerate(rows):
        members[row].append(k)
    columns = [0.0] * len(rows)
    for nodes in members:
        for place, k in enumerate(nodes):
            columns[k] = place - (len(nodes) - 1) / 2
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for nodes in members if down else reversed(members):
            _settle(nodes, near, columns)
    return columns


def _settle(nodes: list[int], near: Sequence[Sequence[int]], columns: list[float]) -> None:
    """Move the nodes of a row to the mean of their neighbours, at least 1 apart."""
    wish = {
        k: sum(columns[n] for n in near[k]) / len(near[k]) if near[k] else columns[k] for k in nodes
    }
    order = sorted(nodes, key=lambda k: (wish[k], columns[k]))
    right = float("-inf")
    shift = 0.0
    for k in order:
        columns[k] = max(wish[k], right + 1)
        right = columns[k]
        shift += columns[k] - wish[k]
    for k in order:
        columns[k] -= shift / len(order)
