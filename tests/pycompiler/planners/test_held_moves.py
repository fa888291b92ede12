"""Moves of held variables in the layout search: all others answer each candidate."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st

from pycompiler.planners.lpz import elimination
from pycompiler.planners.lpz.elimination import Elimination
from pycompiler.planners.lpz.held import move_held
from pycompiler.planners.lpz.search import cheapest, total

Problem = tuple[list[np.ndarray], dict[tuple[int, int], np.ndarray]]


def residual(chains: int) -> Problem:
    """Return a variable with ``chains`` neighbours, each with one of its own that wants to stay.

    All agree on choice 0. Choice 1 is cheaper for the far ends, and a difference along a chain
    costs more than one end saves. The near ones also meet each other, so tables get large.
    """
    differ = 10 * (1 - np.eye(2, dtype=np.int64))
    single = [np.zeros(2, np.int64) for _ in range(1 + 2 * chains)]
    pairs = {}
    for chain in range(chains):
        near, far = 1 + chain, 1 + chains + chain
        pairs[0, near], pairs[near, far] = differ, differ
        single[far] = np.array([4, 0])
        if chain:
            pairs[near - 1, near] = np.zeros((2, 2), np.int64)
    return single, pairs


def test_what_lies_between_moves_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither single moves nor the elimination leave the choice that all agree on."""
    single, pairs = residual(8)
    start = [0] * len(single)
    monkeypatch.setattr(elimination, "TABLE", 4)
    assert Elimination([2] * len(single), pairs).held
    assert cheapest(single, pairs, start) == start
    looked: list[list[int]] = []
    found = move_held(start, lambda: (single, pairs), looked.append, 0, 2)
    assert total(single, pairs, found) == 0
    assert looked == [found]
    assert start == [0] * len(single)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(60))
def test_never_dearer_by_true_costs(seed: int) -> None:
    """Guesses mislead; what counts is the cost after a look."""
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 5) for _ in range(6)]
    pairs = {
        (u, v): np.array([rng.randrange(50) for _ in range(sizes[u] * sizes[v])]).reshape(
            sizes[u], sizes[v]
        )
        for u, v in product(range(6), repeat=2)
        if u < v and rng.random() < 0.7
    }
    guessed = {pair: np.maximum(costs - rng.randrange(30), 0) for pair, costs in pairs.items()}
    single = [np.array([rng.randrange(50) for _ in range(size)]) for size in sizes]

    def look(chosen: list[int]) -> None:
        for (u, v), costs in pairs.items():
            changed = guessed[u, v].copy()
            changed[chosen[u], chosen[v]] = costs[chosen[u], chosen[v]]
            guessed[u, v] = changed

    start = cheapest(single, guessed, [0] * 6)
    look(start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "TABLE", rng.choice((1, 4, 16)))
        found = move_held(start, lambda: (single, guessed), look, rng.randrange(4), 3)
    assert total(single, pairs, found) == total(single, guessed, found)
    assert total(single, pairs, found) <= total(single, pairs, start)
