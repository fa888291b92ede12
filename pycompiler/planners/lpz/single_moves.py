"""Moves of single variables, beside the choices of all others.

They need true costs of few switches only, so they find what the search passes over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .edges import UNKNOWN, Edge
from .search import Costs as Table

#: How many candidates of one variable are tried with the choices of the others.
TRIES = 6


def move_single(
    best: list[int],
    alone: Sequence[Table],
    edges: Sequence[Edge],
    learn: Callable[[Edge, Sequence[int]], None],
    worth: float,
) -> bool:
    """Change the choices of single variables, in place, where that saves steps; whether any.

    ``alone`` has the costs of variables alone. ``learn`` makes the cost of a switch a true one. All
    moves together should save ``worth``.
    """
    least, moved = worth / max(1, len(best)), False
    for number, own in enumerate(_edges_of(edges, len(alone))):
        seen: list[int] = []
        while own and len(seen) < TRIES:
            before = best[number]
            costs = _costs(number, alone, own, best)
            now = costs[before]
            costs[seen] = UNKNOWN
            found = int(costs.argmin())
            if found == before or now - costs[found] <= least:
                break
            seen.append(found)
            best[number] = found
            for edge in own:
                learn(edge, best)
            if _costs(number, alone, own, best)[found] < now:
                moved = True
            else:
                best[number] = before
    return moved


def _costs(
    number: int, alone: Sequence[Table], edges: Sequence[Edge], best: Sequence[int]
) -> Table:
    """Return the costs of a variable's candidates beside the choices of the others."""
    costs = alone[number].copy()
    for edge in edges:
        if edge.source == edge.result:
            costs += edge.costs.diagonal()
        elif edge.source == number:
            costs += edge.costs[:, best[edge.result]]
        else:
            costs += edge.costs[best[edge.source]]
    return costs


def _edges_of(edges: Sequence[Edge], count: int) -> list[list[Edge]]:
    """Return the switches of every variable."""
    out: list[list[Edge]] = [[] for _ in range(count)]
    for edge in edges:
        for number in {edge.source, edge.result}:
            out[number].append(edge)
    return out
