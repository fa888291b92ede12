"""Start orders of the search: depth first, breadth first, and by the memory that values need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from .problem import Problem

Order = tuple[int, ...]


def first_orders(problem: Problem) -> Iterator[tuple[str, Order]]:
    """Yield names and orders; the first is that of the graph."""
    yield "given", tuple(problem.order)
    yield "depth", depth_first(problem)
    yield "breadth", breadth_first(problem)
    yield "memory", memory_aware(problem)


def depth_first(problem: Problem) -> Order:
    """Return an order in which the readers of a value follow it as closely as they can."""
    return _listed(problem, lambda node, made: (-made, node))


def breadth_first(problem: Problem) -> Order:
    """Return an order by the longest chain of nodes that leads to a node."""
    level = [0] * len(problem.inputs)
    for node in problem.order:
        level[node] = 1 + max((level[other] for other in problem.before[node]), default=0)
    return _listed(problem, lambda node, made: (level[node], node))


def _listed(problem: Problem, rank: Callable[[int, int], tuple[int, int]]) -> Order:
    """Return the order that takes the ready node of least rank, segment by segment.

    ``rank`` gets a node and when the latest of the nodes before it ran.
    """
    order: list[int] = []
    for nodes in _segments(problem):
        own = set(nodes)
        left = {node: len(problem.before[node] & own) for node in nodes}
        ready: list[tuple[tuple[int, int], int]] = []
        for node in nodes:
            if not left[node]:
                heappush(ready, (rank(node, -1), node))
        while ready:
            _, node = heappop(ready)
            order.append(node)
            for other in sorted(problem.behind[node]):
                if other in left:
                    left[other] -= 1
                    if not left[other]:
                        heappush(ready, (rank(other, len(order)), other))
    return tuple(order)


def memory_aware(problem: Problem) -> Order:
    """Return an order that takes the ready node after which values need the least memory.

    Among equal ones, it takes the node whose operands were made or read last.
    """
    order: list[int] = []
    touched = [-1] * len(problem.values)
    readers = [0] * len(problem.values)
    for node, own in enumerate(problem.inputs):
        if problem.choices[node]:
            for value in own:
                readers[value] += 1
    here = [False] * len(problem.values)
    for nodes in _segments(problem):
        own_nodes = set(nodes)
        left = {node: len(problem.before[node] & own_nodes) for node in nodes}
        ready = [node for node in nodes if not left[node]]
        while ready:
            best = min(ready, key=lambda node: _growth(problem, node, readers, here, touched))
            ready.remove(best)
            order.append(best)
            if problem.choices[best]:
                for value in problem.inputs[best]:
                    readers[value] -= 1
                    here[value] = readers[value] > 0
                    touched[value] = len(order)
            for value in problem.outputs[best]:
                here[value] = bool(problem.choices[best])
                touched[value] = len(order)
            for other in problem.behind[best]:
                if other in left:
                    left[other] -= 1
                    if not left[other]:
                        ready.append(other)
    return tuple(order)


def _growth(
    problem: Problem,
    node: int,
    readers: Sequence[int],
    here: Sequence[bool],
    touched: Sequence[int],
) -> tuple[int, int, int]:
    """Return by how much the room of values grows, how long ago they were touched, the node."""
    if not problem.choices[node]:
        return -1, 0, node
    grown, latest = 0, -1
    for value in problem.inputs[node]:
        if readers[value] > 1:
            grown += 0 if here[value] else problem.size[value]
        elif here[value]:
            grown -= problem.size[value]
        if here[value]:
            latest = max(latest, touched[value])
    for value in problem.outputs[node]:
        if readers[value]:
            grown += problem.size[value]
    return grown, -latest, node


def _segments(problem: Problem) -> Iterator[list[int]]:
    """Yield the nodes of each segment, in the order of the graph."""
    found: list[int] = []
    for node in problem.order:
        if found and problem.segment[node] != problem.segment[found[-1]]:
            yield found
            found = []
        found.append(node)
    if found:
        yield found
