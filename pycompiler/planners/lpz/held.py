"""Moves of held variables: they take other candidates, and all that are not held answer.

A variable that shares costs with many others, such as the region behind a residual sum, is held:
the elimination gives it no choice. A single move seldom helps it, because the views and layers
around it must move too. Here the elimination answers each of its candidates with the cheapest
choices of all variables that are not held. What the best answers choose makes a small problem, in
which nothing need be held. Its solution moves all held variables together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nsmallest

import numpy as np

from .search import Costs, Search, total

#: Costs of single variables and of pairs.
_Costs = tuple[list[Costs], dict[tuple[int, int], Costs]]
#: Returns the present costs, guesses among them.
Tables = Callable[[], _Costs]
#: Replaces the guesses that a choice needs by true costs.
Look = Callable[[list[int]], None]

#: How many answers for one variable are looked at, and how many choices of all together.
TRIES, TOGETHER = 12, 16


def move_held(best: list[int], tables: Tables, look: Look, worth: float) -> list[int]:
    """Return ``best`` or a cheaper choice, with true costs.

    Choices are looked at if all variables together may save ``worth``.
    """
    costs = tables()
    elimination = Search([len(one) for one in costs[0]], costs[1])
    if elimination.exact:
        return best
    least = worth / len(elimination.held)
    best = _together(elimination, best, tables, look, least)
    for variable in elimination.held:
        costs = tables()
        for _, candidate, _ in _ranked(elimination, costs, best, variable):
            # What was looked at for the answers before may have made this one dearer.
            costs = tables()
            answer = _answer(elimination, costs, best, variable, candidate)
            now = total(*costs, best)
            if now - total(*costs, answer) > least:
                look(answer)
                if total(*tables(), answer) < now:
                    best = answer
    return best


def _together(
    elimination: Search, best: list[int], tables: Tables, look: Look, least: float
) -> list[int]:
    """Return ``best`` or a cheaper choice of what the best answers choose."""
    costs = tables()
    used = [{choice} for choice in best]
    for variable in elimination.held:
        for _, _, answer in _ranked(elimination, costs, best, variable):
            for own, choice in zip(used, answer, strict=True):
                own.add(choice)
    kept = [np.array(sorted(own)) for own in used]
    search = Search([len(own) for own in kept], costs[1])
    for _ in range(TOGETHER):
        single, pairs = tables()
        found = search.cheapest(
            [own[at] for own, at in zip(single, kept, strict=True)],
            {(u, v): own[np.ix_(kept[u], kept[v])] for (u, v), own in pairs.items()},
            [int(np.searchsorted(at, choice)) for at, choice in zip(kept, best, strict=True)],
        )
        made = [int(at[place]) for at, place in zip(kept, found, strict=True)]
        now = total(single, pairs, best)
        if now - total(single, pairs, made) <= least:
            break
        look(made)
        if total(*tables(), made) < now:
            best = made
    return best


def _ranked(
    elimination: Search, costs: _Costs, best: Sequence[int], variable: int
) -> list[tuple[int, int, list[int]]]:
    """Return the candidates of a variable with the cheapest answers: cost, candidate, answer."""
    return nsmallest(TRIES, elimination.answers(*costs, best, variable))


def _answer(
    elimination: Search, costs: _Costs, best: Sequence[int], variable: int, candidate: int
) -> list[int]:
    """Return the cheapest choice in which a variable has a candidate and other held ones stay."""
    start = list(best)
    start[variable] = candidate
    return elimination.eliminated(*costs, start)
