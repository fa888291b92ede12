"""Moves of held variables in the layout search: all others answer each candidate."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_search import cheapest, search_of, total

from pycompiler.planners.lpz import tables
from pycompiler.planners.lpz.held import move_held

Problem = tuple[list[np.ndarray], dict[tuple[int, int], np.ndarray]]


#: Choices that every variable has and that none should take.
USELESS = 4


def residual(chains: int, centres: int) -> Problem:
    """Return centres with ``chains`` neighbours each, which have one of their own.

    All agree on choice 0. Choice 1 is cheaper for the far ends, and a difference along a chain
    costs more than one end saves. A difference of centres costs more than all ends of one save.
    The near ones also meet each other, and all have useless choices, so tables get large.
    """
    near = centres + np.arange(centres * chains).reshape(centres, chains)
    far = near + near.size
    differ = 10 * (1 - np.eye(2, dtype=np.int64))
    single = [np.zeros(2, np.int64) for _ in range(centres + 2 * near.size)]
    pairs = {(centre - 1, centre): chains * differ for centre in range(1, centres)}
    for centre in range(centres):
        for own, end in zip(near[centre].tolist(), far[centre].tolist(), strict=True):
            pairs[centre, own], pairs[own, end] = differ, differ
            single[end] = np.array([4, 0])
            if own != near[centre, 0]:
                pairs[own - 1, own] = np.zeros((2, 2), np.int64)
    single = [np.pad(costs, (0, USELESS), constant_values=100) for costs in single]
    return single, {pair: np.pad(costs, (0, USELESS)) for pair, costs in pairs.items()}


@pytest.mark.parametrize("centres", [1, 2])
def test_what_lies_between_moves_too(monkeypatch: pytest.MonkeyPatch, centres: int) -> None:
    """Neither single moves nor the elimination leave the choice that all agree on."""
    single, pairs = residual(8, centres)
    start = [0] * len(single)
    monkeypatch.setattr(tables, "ENTRIES", 64)
    held = search_of(single, pairs).held
    assert set(range(centres)) <= set(held)
    assert cheapest(single, pairs, start) == start
    looked: list[list[int]] = []
    found = move_held(start, lambda: search_of(single, pairs), looked.append, 0)
    assert total(single, pairs, found) == 0
    assert found in looked
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
        patch.setattr(tables, "ENTRIES", rng.choice((1, 4, 16)))
        found = move_held(start, lambda: search_of(single, guessed), look, rng.randrange(4))
    assert total(single, pairs, found) == total(single, guessed, found)
    assert total(single, pairs, found) <= total(single, pairs, start)
