"""Moves of held variables: they take other candidates, and all that are not held answer.

A variable that shares costs with many others, such as the region behind a residual sum, is held:
the elimination gives it no choice. A single move seldom helps it, because the views and layers
around it must move too. Here the elimination answers each of its candidates with the cheapest
choices of all variables that are not held. What the best answers choose makes a small problem, in
which nothing need be held. Its solution moves all held variables together.
"""

from __future__ import annotations

from collections.abc import Callable

from emu2._core import ChoiceSearch

#: Returns the search with the present costs, guesses among them.
Present = Callable[[], ChoiceSearch]
#: Replaces the guesses that a choice needs by true costs.
Look = Callable[[list[int]], None]

#: How many answers for one variable are looked at, and how many choices of all together.
TRIES, TOGETHER = 12, 16


def move_held(best: list[int], present: Present, look: Look, worth: float) -> list[int]:
    """Return ``best`` or a cheaper choice, with true costs.

    Choices are looked at if all variables together may save ``worth``.
    """
    search = present()
    if not search.held:
        return best
    least = worth / len(search.held)
    best = _together(best, present, look, least)
    for variable in search.held:
        for _, candidate, _ in search.answers(best, variable, TRIES):
            # What was looked at for the answers before may have made this one dearer.
            asked = [*best]
            asked[variable] = candidate
            answer = search.eliminated(asked)
            now = search.total(best)
            if now - search.total(answer) > least:
                look(answer)
                search = present()
                if search.total(answer) < now:
                    best = answer
    return best


def _together(best: list[int], present: Present, look: Look, least: float) -> list[int]:
    """Return ``best`` or a cheaper choice of what the best answers choose."""
    search = present()
    used = [{choice} for choice in best]
    for variable in search.held:
        for _, _, answer in search.answers(best, variable, TRIES):
            for own, choice in zip(used, answer, strict=True):
                own.add(choice)
    kept = [sorted(own) for own in used]
    part = search.part(kept)
    for _ in range(TOGETHER):
        part.follow(search)
        start = [at.index(choice) for at, choice in zip(kept, best, strict=True)]
        found = part.cheapest(start)
        made = [at[place] for at, place in zip(kept, found, strict=True)]
        now = search.total(best)
        if now - search.total(made) <= least:
            break
        look(made)
        search = present()
        if search.total(made) < now:
            best = made
    return best
