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

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...code.lines import BlockOperand, Forward, Operand, Special, Step, alu_step, single_step
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from ..scratch import Words, vector
from .l1bm_vectors import l1bm_room, lift, shifts
from .mab_fills import count_fills, fill_steps, is_even, rows
from .pass_moves import Moves
from .shared_turns import shared_cost, shared_steps, shared_turns
from .unit_masks import MASK_STEPS, UnitMasks

Pair = tuple[int, int]


@dataclass(frozen=True)
class Turn:
    """Long words that go up by ``by`` units: ``pairs`` of source and result addresses.

    ``units`` are the units that write them, a bit for each; None means all.
    """

    by: int
    units: int | None
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Cast:
    """Address ``at`` of units ``first``, ``first + 1`` ... goes to addresses ``results``.

    ``units`` are the units that write them, a bit for each; None means all. A ``wide`` cast brings
    the data of ``each`` units at once, to neighbouring addresses: ``results`` has the first ones.
    """

    at: int
    first: int
    results: tuple[int, ...]
    units: int | None
    each: int = 1

    @property
    def wide(self) -> bool:
        """Whether it brings two long words at once to each PE."""
        return self.each > 1


def turns(moves: Moves, count: int) -> list[Turn]:
    """Return the moves as turns of ``count`` units, those without a mask first."""
    rows = units_by_turn(moves, count)
    # For each result address, one move may write everywhere, before the others.
    first: dict[int, tuple[int, int]] = {}
    for index, ((turn, _, at), units) in enumerate(rows):
        rank = (-units.bit_count() if turn else -count, index)
        if at not in first or rank < first[at]:
            first[at] = rank
    groups: dict[tuple[int, int | None], list[Pair]] = defaultdict(list)
    for index, ((turn, source, at), found) in enumerate(rows):
        everywhere = first[at][1] == index
        groups[turn, None if everywhere else found].append((source, at))
    ordered = sorted(groups.items(), key=lambda g: (g[0][1] is not None, g[0][1] or 0, g[0][0]))
    return [Turn(by, chosen, tuple(pairs)) for (by, chosen), pairs in ordered]


def units_by_turn(moves: Moves, count: int) -> list[tuple[tuple[int, ...], int]]:
    """Return turn, source and result address of all moves, and the units that write each."""
    turned = (moves.result - moves.source) % count
    return _units_by(moves, (turned, moves.source_at, moves.result_at))


def _units_by(moves: Moves, keys: Sequence[np.ndarray]) -> list[tuple[tuple[int, ...], int]]:
    """Return the distinct combinations of ``keys``, and the units that write for each."""
    # One number per combination of keys sorts faster than rows of a table.
    code = np.zeros_like(keys[0])
    for key in keys:
        code = code * (int(key.max(initial=0)) + 1) + key
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    units = np.zeros(len(first), dtype=np.int64)
    np.bitwise_or.at(units, inverse.reshape(-1), np.int64(1) << moves.result)
    rows = zip(*(key[first].tolist() for key in keys), strict=True)
    return list(zip(rows, units.tolist(), strict=True))


def casts(moves: Moves, count: int, cycles: int, *, even: bool = True) -> list[Cast]:
    """Return the moves as casts, those without a mask first.

    ``even`` says whether the addresses of the result begin at an even word.
    """
    rows = _units_by(moves, (moves.source_at, moves.result_at, moves.source))
    first: dict[int, tuple[int, int]] = {}
    for index, ((_, at, _), units) in enumerate(rows):
        rank = (-units.bit_count(), index)
        if at not in first or rank < first[at]:
            first[at] = rank
    groups: dict[tuple[int, int | None], list[Pair]] = defaultdict(list)
    for index, ((source_at, at, unit), units) in enumerate(rows):
        everywhere = first[at][1] == index
        groups[source_at, None if everywhere else units].append((unit, at))
    out: list[Cast] = []
    for (at, chosen), pairs in groups.items():
        ordered = sorted(pairs)
        runs, each = _runs(ordered, 1, cycles), 1
        if even and count % LONGS_PER_WIDE == 0:
            joined = _runs(_joined(ordered), LONGS_PER_WIDE, cycles)
            if joined and len(joined) < len(runs):
                runs, each = joined, LONGS_PER_WIDE
        out += [Cast(at, run[0][0], tuple(r for _, r in run), chosen, each) for run in runs]
    return sorted(out, key=lambda cast: (cast.units is not None, cast.units or 0))


def _joined(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the first of two units each that go to neighbours; nothing if some unit is alone."""
    found = set(pairs)
    first = [(unit, at) for unit, at in pairs if unit % LONGS_PER_WIDE == at % LONGS_PER_WIDE == 0]
    both = {(unit + more, at + more) for unit, at in first for more in range(LONGS_PER_WIDE)}
    return first if both == found else []


def _runs(pairs: Sequence[Pair], apart: int, most: int) -> list[list[Pair]]:
    """Cut pairs of units and addresses into runs of units that lie ``apart``."""
    out: list[list[Pair]] = []
    waiting = list(pairs)
    while waiting:
        run: list[Pair] = []
        rest: list[Pair] = []
        for unit, result in waiting:
            follows = not run or unit == run[-1][0] + apart
            (run if follows and len(run) < most else rest).append((unit, result))
        out.append(run)
        waiting = rest
    return out


def chunks(items: Sequence[Pair], size: int) -> Iterator[tuple[Pair, ...]]:
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
    for turn in turns(found, count):
        mask = None if turn.units is None else masks.use(turn.units, out)
        up = turn.by <= count - turn.by
        rounds = turn.by if up else count - turn.by
        for part in chunks(turn.pairs, target.cycles):
            here: Operand = vector(source, tuple(a for a, _ in part))
            there = vector(result, tuple(b for _, b in part), mask)
            for number in range(max(1, rounds)):
                name = ("msl" if up else "msr") if rounds else "lpassa"
                last = number >= rounds - 1
                out.append(alu_step(name, (here,), there if last else Special("nowrite")))
                here = Forward("alu")
    return out


# -- MABs ------------------------------------------------------------------------------------


def mab_steps(found: Moves, source: Words, result: Words, target: Target) -> list[Step]:
    """Return the code of a pass over the MABs of an L1B: by turns, by casts or by fills."""
    count = target.counts["mab"]
    found_turns = turns(found, count)
    found_casts = casts(found, count, target.cycles, even=is_even(result))
    shares = shared_turns(units_by_turn(found, count), count)
    masks = UnitMasks("mabid", target)
    room = l1bm_room(target)
    by_turns, by_casts = _turn_cost(found_turns, target), _cast_cost(found_casts, target)
    shared = shared_cost(shares, room.vectors, target)
    least = min(by_turns, by_casts, shared)
    # Each row takes a fill at least: this bound often shows that others are shorter.
    if np.unique(found.result_at).size < least:
        filled = rows(found, target, even=is_even(source))
        by_fills = count_fills(filled, target)
        if by_fills is not None and by_fills < least:
            return list(fill_steps(filled, source, result, target))
    if shared < min(by_turns, by_casts):
        return list(shared_steps(shares, masks, source, result, target))
    if by_turns <= by_casts:
        return list(_turn_steps(found_turns, masks, source, result, target))
    return list(_cast_steps(found_casts, masks, source, result, target))


def _turn_cost(found: Sequence[Turn], target: Target) -> int:
    vectors = sum(-(-len(turn.pairs) // target.cycles) for turn in found)
    return 2 * vectors + sum(MASK_STEPS for turn in found if turn.units is not None)


def _cast_cost(found: Sequence[Cast], target: Target) -> int:
    vectors = -(-len({cast.at for cast in found}) // target.cycles)
    masks = {cast.units for cast in found if cast.units is not None}
    return vectors + len(found) + MASK_STEPS * len(masks)


def _turn_steps(
    found: Sequence[Turn], masks: UnitMasks, source: Words, result: Words, target: Target
) -> Iterator[Step]:
    room = l1bm_room(target)
    shift = shifts(target)
    work = [(turn, part) for turn in found for part in chunks(turn.pairs, target.cycles)]
    for start in range(0, len(work), room.vectors):
        batch = work[start : start + room.vectors]
        slots: dict[tuple[int, ...], int] = {}
        for _, part in batch:
            read = tuple(a for a, _ in part)
            if read not in slots:
                slots[read] = len(slots) * room.words
                yield lift(source, read, slots[read], room, target)
        for turn, part in batch:
            steps: list[Step] = []
            mask = None if turn.units is None else masks.use(turn.units, steps)
            yield from steps
            at = BlockOperand("l1bm", slots[tuple(a for a, _ in part)], room.words)
            there = vector(result, tuple(b for _, b in part), mask)
            yield single_step("l1bm", f"l1bmd{shift[turn.by]}", (at,), there)


def _cast_steps(
    found: Sequence[Cast], masks: UnitMasks, source: Words, result: Words, target: Target
) -> Iterator[Step]:
    room = l1bm_room(target)
    pes = target.counts["pe"]
    rows = room.vectors * target.cycles
    done = 0
    ordered = list(found)
    while done < len(ordered):
        slots: dict[int, int] = {}
        batch: list[Cast] = []
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
            mask = None if cast.units is None else masks.use(cast.units, steps)
            yield from steps
            spare = target.cycles - len(cast.results)
            first = slots[cast.at] + (cast.first - spare * cast.each) * pes
            found_form = target.transfer("l1bmm", "to_pe_2" if cast.wide else "to_pe")
            above = BlockOperand("l1bm", first, found_form.source_words, wide=cast.wide)
            there = vector(result, (cast.results[0],) * spare + cast.results, mask)
            if cast.wide:
                there = replace(there, words=WORDS_PER_LONG * cast.each)
            yield single_step("l1bm", "l1bmm", (above,), there)
