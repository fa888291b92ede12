"""The pieces of a recut: which elements of a result's row come from which row of an input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...graph.graph import MNGraph, MNNode
from ...graph.runs import RUNS, Run


@dataclass(frozen=True)
class Piece:
    """``count`` elements of a row of the result from ``to`` on, and where they come from."""

    source: int
    row: int
    at: int
    goal_row: int
    to: int
    count: int


def runs_of(node: MNNode) -> list[Run]:
    """Return the runs of a node."""
    numbers = dict(node.attributes)[RUNS]
    assert isinstance(numbers, tuple)
    flat = [int(number) for number in numbers]
    return [(flat[i], flat[i + 1], flat[i + 2], flat[i + 3]) for i in range(0, len(flat), 4)]


def pieces_of(node: MNNode, graph: MNGraph) -> Iterator[Piece]:
    """Yield the pieces in the order of the result: a piece ends where a row of either ends."""
    goal = graph.values[node.outputs[0]].shape[-1]
    lengths = [graph.values[name].shape[-1] for name in node.inputs]
    for source, start, stop, count in sorted(runs_of(node), key=lambda run: run[2]):
        yield from _cut(source, start, stop, count, lengths[source], goal)


def _cut(source: int, at: int, to: int, count: int, own: int, goal: int) -> Iterator[Piece]:
    while count:
        row, first = divmod(at, own)
        goal_row, place = divmod(to, goal)
        size = min(count, own - first, goal - place)
        yield Piece(source, row, first, goal_row, place, size)
        at, to, count = at + size, to + size, count - size


def whole_units(piece: Piece, unit: int, length: int) -> range:
    """Return the units of the result's row that a piece fills; the last unit may be cut short."""
    end = piece.to + piece.count
    last = -(-end // unit) if end == length else end // unit
    first = -(-piece.to // unit)
    return range(first, max(first, last))


def mixed_units(
    found: Sequence[Piece], unit: int, length: int
) -> dict[tuple[int, int], list[Piece]]:
    """Return the other units, by row and number, with the pieces that they consist of."""
    out: dict[tuple[int, int], list[Piece]] = {}
    for piece in found:
        whole = whole_units(piece, unit, length)
        first, last = piece.to // unit, (piece.to + piece.count - 1) // unit
        for number in {first, last}:
            if number not in whole:
                out.setdefault((piece.goal_row, number), []).append(piece)
        between = [n for n in range(first, last + 1) if n not in whole and n not in (first, last)]
        assert not between
    return out
