"""Passes inside an L1B: between PEs of a MAB by the ALU, between MABs through L1BM.

There are two kinds of moves. A *turn* sends the data of all units round by a number of units, and
some units write it. A *cast* sends the data of one unit to all MABs, and some of them write it. For
each result address, one move comes first and writes everywhere without a mask: the moves after it
overwrite the units where it is wrong.

A *fill* puts long words of one MAB into the places of its neighbours (:mod:`.mab_fills`). Between
MABs, several turns may *share* what they read: it goes up to L1BM once and comes down once
for each of them (:mod:`.shared_turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from emu2 import _core

from ...code.lines import BlockOperand, Forward, Operand, Special, Step, alu_step, single_step
from ...graph.dtypes import MNDtype
from ...graph.layout import Level
from ...machine import WORDS_PER_LONG, Target
from ..scratch import Words, vector
from .l1bm_vectors import l1bm_room, lift, shifts
from .mab_fills import fill_steps, is_even
from .pass_costs import Turn, facts, turns
from .pass_moves import Moves
from .shared_turns import shared_steps
from .unit_masks import UnitMasks

_Pair = tuple[int, int]


def chunks(items: Sequence[_Pair], size: int) -> Iterator[tuple[_Pair, ...]]:
    """Yield the items ``size`` at a time; the last chunk is filled with its last item."""
    for start in range(0, len(items), size):
        part = tuple(items[start : start + size])
        yield part + (part[-1],) * (size - len(part))


# -- PEs -------------------------------------------------------------------------------------


def pe_steps(found: Moves, source: Words, result: Words, target: Target) -> list[Step]:
    """Return the code of a pass over the PEs of a MAB."""
    count = target.counts["pe"]
    masks = UnitMasks("subpeid", target)
    out: list[Step] = []
    for by, units, pairs in turns(found, Level.PE, target):
        mask = masks.use(units, out) if units else None
        up = by <= count - by
        rounds = by if up else count - by
        for part in chunks(pairs, target.cycles):
            here: Operand = vector(source, tuple(a for a, _ in part))
            there = vector(result, tuple(b for _, b in part), mask)
            for number in range(max(1, rounds)):
                name = ("msl" if up else "msr") if rounds else "lpassa"
                last = number >= rounds - 1
                out.append(alu_step(name, (here,), there if last else Special("nowrite")))
                here = Forward("alu")
    return out


# -- MABs ------------------------------------------------------------------------------------


def mab_steps(moves: Moves, source: Words, result: Words, target: Target) -> list[Step]:
    """Return the code of a pass over the MABs of an L1B, on the way with the fewest steps."""
    even = is_even(source), is_even(result)
    way, found = _core.mab_way(moves.rows, facts(MNDtype.FLOAT, target), even)
    if way == "fills":
        return list(fill_steps(found, source, result, target))
    ways: Mapping[str, Callable[..., Iterator[Step]]] = {
        "shares": shared_steps,
        "turns": _turn_steps,
        "casts": _cast_steps,
    }
    return list(ways[way](found, UnitMasks("mabid", target), source, result, target))


class _Cast(NamedTuple):
    """Address ``at`` of units ``first``, ``first + 1`` ... goes to addresses ``results``.

    ``units`` are the units that write them, a bit for each; 0 means all. A cast may bring the data
    of ``each`` units at once, to neighbouring addresses: ``results`` has the first ones.
    """

    at: int
    first: int
    results: list[int]
    units: int
    each: int


def _turn_steps(
    found: Sequence[Turn], masks: UnitMasks, source: Words, result: Words, target: Target
) -> Iterator[Step]:
    room = l1bm_room(target)
    shift = shifts(target)
    work = [
        (by, units, part) for by, units, pairs in found for part in chunks(pairs, target.cycles)
    ]
    for start in range(0, len(work), room.vectors):
        batch = work[start : start + room.vectors]
        slots: dict[tuple[int, ...], int] = {}
        for *_, part in batch:
            read = tuple(a for a, _ in part)
            if read not in slots:
                slots[read] = len(slots) * room.words
                yield lift(source, read, slots[read], room, target)
        for by, units, part in batch:
            steps: list[Step] = []
            mask = masks.use(units, steps) if units else None
            yield from steps
            at = BlockOperand("l1bm", slots[tuple(a for a, _ in part)], room.words)
            there = vector(result, tuple(b for _, b in part), mask)
            yield single_step("l1bm", f"l1bmd{shift[by]}", (at,), there)


def _cast_steps(
    found: Sequence[Sequence[Any]], masks: UnitMasks, source: Words, result: Words, target: Target
) -> Iterator[Step]:
    room = l1bm_room(target)
    pes = target.counts["pe"]
    rows = room.vectors * target.cycles
    done = 0
    ordered = [_Cast(*cast) for cast in found]
    while done < len(ordered):
        slots: dict[int, int] = {}
        batch: list[_Cast] = []
        while done < len(ordered):
            cast = ordered[done]
            if cast.at not in slots and len(slots) == rows:
                break
            # The first row stays free: a cast may begin before its row.
            slots.setdefault(cast.at, room.words + len(slots) * room.row)
            batch.append(cast)
            done += 1
        wanted = list(slots)
        for start in range(0, len(wanted), target.cycles):
            part = wanted[start : start + target.cycles]
            read = tuple(part + [part[-1]] * (target.cycles - len(part)))
            yield lift(source, read, slots[part[0]], room, target)
        for cast in batch:
            steps: list[Step] = []
            mask = masks.use(cast.units, steps) if cast.units else None
            yield from steps
            spare, wide = target.cycles - len(cast.results), cast.each > 1
            first = slots[cast.at] + (cast.first - spare * cast.each) * pes
            found_form = target.transfer("l1bmm", "to_pe_2" if wide else "to_pe")
            above = BlockOperand("l1bm", first, found_form.source_words, wide=wide)
            there = vector(result, (*cast.results[:1] * spare, *cast.results), mask)
            if wide:
                there = there._replace(words=WORDS_PER_LONG * cast.each)
            yield single_step("l1bm", "l1bmm", (above,), there)
