"""Start orders of the search: that of the graph, and depth first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import groupby

from .problem import Problem

Order = tuple[int, ...]


def first_orders(problem: Problem) -> Iterator[Order]:
    """Yield orders; the first is that of the graph."""
    yield tuple(problem.order)
    yield depth_first(problem)


def depth_first(problem: Problem) -> Order:
    """Return an order in which the readers of a value follow it as closely as they can."""
    order: list[int] = []
    for _, group in groupby(problem.order, key=problem.segment.__getitem__):
        nodes = list(group)
        members = set(nodes)
        left = {node: len(problem.before[node] & members) for node in nodes}
        # The node that is ready since the latest node ran comes first.
        ready = sorted((1, node) for node in nodes if not left[node])
        while ready:
            _, node = heappop(ready)
            order.append(node)
            for other in sorted(problem.behind[node]):
                if other in left:
                    left[other] -= 1
                    if not left[other]:
                        heappush(ready, (-len(order), other))
    return tuple(order)
