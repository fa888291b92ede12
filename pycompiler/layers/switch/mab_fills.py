"""Passes between MABs that fill rows of L1BM word by word: `l1bmm@x` up, `l1bmd` down.

One instruction takes long words of one MAB, from any addresses, and fills the places of
neighbouring MABs in a row of L1BM. The row then comes down to all MABs. No masks are needed, so
this is the shortest way if each MAB takes from others and few rows do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...code.lines import BlockOperand, Step, single_step
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from ..scratch import Scratch, Words, vector
from .l1bm_vectors import l1bm_room


class Fill(NamedTuple):
    """Long words ``words`` of MAB ``unit`` go to the places of MABs ``first``, ``first + 1`` ...

    If it is ``wide``, each of them comes with the one behind it, and both go to neighbours.
    """

    first: int
    unit: int
    words: list[int]
    wide: bool


#: The address to which a row goes in all MABs, and its fills. Later fills overwrite earlier ones.
FillRow = tuple[int, Sequence[Sequence[Any]]]


def fill_steps(
    found: Sequence[FillRow], source: Words, result: Words, target: Target
) -> Iterator[Step]:
    """Yield the code: as many rows at once as L1BM holds."""
    room, pes = l1bm_room(target), target.counts["pe"]
    most = room.vectors * target.cycles
    for start in range(0, len(found), most):
        batch = found[start : start + most]
        down: list[tuple[int, list[int]]] = []
        for first in range(0, len(batch), target.cycles):
            part = batch[first : first + target.cycles]
            # A vector that is not full begins with rows that its last ones overwrite.
            spare = target.cycles - len(part)
            down.append((first * room.row, [part[0][0]] * spare + [at for at, _ in part]))
            for index, (_, fills) in enumerate(part):
                place = (first + spare + index) * room.row
                for fill in fills:
                    yield _fill(Fill(*fill), source, place + fill[0] * pes, target)
        for place, at in down:
            above = BlockOperand("l1bm", place, room.words)
            yield single_step("l1bm", "l1bmd", (above,), vector(result, tuple(at)))


def _fill(fill: Fill, source: Words, place: int, target: Target) -> Step:
    form = target.transfer("l1bmm", "from_pe_2" if fill.wide else "from_pe", mab_number=fill.unit)
    words = (*fill.words, *[fill.words[-1]] * (target.cycles - len(fill.words)))
    here = vector(source, words)
    if fill.wide:
        here = here._replace(words=WORDS_PER_LONG * LONGS_PER_WIDE)
    above = BlockOperand("l1bm", place, form.destination_words, wide=fill.wide)
    return single_step("l1bm", f"l1bmm@{fill.unit}", (here,), above)


def is_even(place: Words) -> bool:
    """Whether the words of a place begin at an even address; values begin at whole vectors."""
    return not isinstance(place, Scratch) or place.base % LONGS_PER_WIDE == 0
