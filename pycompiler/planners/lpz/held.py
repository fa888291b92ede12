"""Moves of held variables: one takes another candidate, and all that are not held answer.

A variable that shares costs with many others, such as the region behind a residual sum, is held:
the elimination gives it no choice. A single move seldom helps it, because the views and layers
around it must move too. Here the elimination answers each of its candidates with the cheapest
choices of all variables that are not held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .elimination import Costs, Elimination
from .search import total

#: Returns the present costs of single variables and of pairs, guesses among them.
Tables = Callable[[], tuple[list[Costs], dict[tuple[int, int], Costs]]]
#: Replaces the guesses that a choice needs by true costs.
Look = Callable[[list[int]], None]


@dataclass(frozen=True)
class _Answer:
    """The cheapest choice in which a held variable has one candidate, with its total cost."""

    cost: int
    choice: list[int]


def move_held(best: list[int], tables: Tables, look: Look, worth: float, tries: int) -> list[int]:
    """Return ``best`` or a choice that is cheaper by at least ``worth``, with true costs.

    At most ``tries`` candidates of each variable are looked at.
    """
    single, pairs = tables()
    elimination = Elimination([len(costs) for costs in single], pairs)
    for variable in elimination.held:
        seen: set[int] = set()
        while len(seen) < tries:
            single, pairs = tables()
            now = total(single, pairs, best)
            found = _cheapest(elimination, single, pairs, best, variable, seen)
            if found is None or now - found.cost <= worth:
                break
            seen.add(found.choice[variable])
            look(found.choice)
            if total(*tables(), found.choice) < now:
                best = found.choice
    return best


def _cheapest(
    elimination: Elimination,
    single: Sequence[Costs],
    pairs: Mapping[tuple[int, int], Costs],
    best: Sequence[int],
    variable: int,
    seen: set[int],
) -> _Answer | None:
    """Return the cheapest answer to a candidate of ``variable`` that is not in ``seen``."""
    found: _Answer | None = None
    for candidate in range(len(single[variable])):
        if candidate in seen:
            continue
        start = list(best)
        start[variable] = candidate
        choice = elimination.run(single, pairs, start)
        cost = total(single, pairs, choice)
        if found is None or cost < found.cost:
            found = _Answer(cost, choice)
    return found
