"""Dynamic programming: tables that are filled step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import program, uniform, whole


@program("floyd-warshall", d=uniform(27, 27, low=1.0, high=100.0))
def floyd_warshall(xp: Any, d: Any) -> Any:
    """The shortest ways between all nodes (PolyBench)."""
    for k in range(d.shape[0]):
        d = xp.minimum(d, d[:, k, None] + d[k])
    return d


@program("nussinov", s=whole(4, 11))
def nussinov(xp: Any, s: Any) -> Any:
    """The most pairs of bases of a strand, diagonal by diagonal (PolyBench)."""
    n = s.shape[0]
    fits = xp.where(s[:, None] + s == 3, xp.ones_like(s), xp.zeros_like(s))
    none = s[0] * 0
    best: dict[tuple[int, int], Any] = {}

    def at(i: int, j: int) -> Any:
        return best.get((i, j), none)

    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            value = at(i + 1, j - 1) + (fits[i, j] if length > 1 else 0)
            value = xp.maximum(xp.maximum(value, at(i + 1, j)), at(i, j - 1))
            for k in range(i + 1, j):
                value = xp.maximum(value, at(i, k) + at(k + 1, j))
            best[i, j] = value
    return at(0, n - 1)


@program("Smith-Waterman", a=whole(4, 13), b=whole(4, 17))
def smith_waterman(xp: Any, a: Any, b: Any) -> Any:
    """The best local alignment of two strands, by antidiagonals; gaps cost 1."""
    scores = xp.where(a[:, None] == b, 3 * xp.ones_like(b), -3 * xp.ones_like(b))
    n, m = scores.shape
    none = xp.zeros_like(a[:1])
    before, last, best = none[:0], none[:0], none[0]
    for d in range(n + m - 1):
        low, high = max(0, d - m + 1), min(n, d + 1)
        diagonal = xp.stack([scores[i, d - i] for i in range(low, high)])

        def from_row(line: Any, first: int, at: int) -> Any:
            return line[at - first] if 0 <= at - first < line.shape[0] else none[0]

        first, second = max(0, d - 1 - m), max(0, d - m)
        cells = []
        for i in range(low, high):
            up, left = from_row(last, second, i - 1) - 1, from_row(last, second, i) - 1
            cross = from_row(before, first, i - 1) + diagonal[i - low]
            value = xp.maximum(xp.maximum(up, left), xp.maximum(cross, none[0]))
            cells.append(value)
        before, last = last, xp.stack(cells)
        best = xp.maximum(best, xp.amax(last))
    return best


@program("knapsack", worth=uniform(15, low=1.0, high=9.0))
def knapsack(xp: Any, worth: Any) -> Any:
    """The largest worth within each capacity up to 100; the weights are constants."""
    weights = [int(w) for w in np.random.default_rng(3).integers(5, 40, 15)]
    best = xp.concatenate([worth * 0] * 7, 0)[:101]
    for k, weight in enumerate(weights):
        taken = xp.concatenate([best[:weight] * 0, best[:-weight] + worth[k]], 0)
        best = xp.maximum(best, taken)
    return best


@program("Viterbi", start=(23,), move=(23, 23), seen=(9, 23))
def viterbi(xp: Any, start: Any, move: Any, seen: Any) -> Any:
    """The logarithms of the best paths of a hidden chain after nine observations."""
    best = start + seen[0]
    for t in range(1, seen.shape[0]):
        best = xp.amax(best[:, None] + move, 0) + seen[t]
    return best


@program("dynamic time warping", a=(9,), b=(11,))
def time_warping(xp: Any, a: Any, b: Any) -> Any:
    """The least cost of matching two series, row by row."""
    costs = xp.abs(a[:, None] - b)
    row = xp.cumsum(costs[0], 0)
    for i in range(1, a.shape[0]):
        cell = row[0] + costs[i, 0]
        cells = [cell]
        for j in range(1, b.shape[0]):
            cell = costs[i, j] + xp.minimum(cell, xp.minimum(row[j], row[j - 1]))
            cells.append(cell)
        row = xp.stack(cells)
    return row
