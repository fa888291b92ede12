"""The ways of moves between units, in Python: the reference of the crate ``switches``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pycompiler.layers.switch.l1bm_vectors import l1bm_room
from pycompiler.layers.switch.pass_moves import Moves
from pycompiler.machine import LONGS_PER_WIDE, Target

#: The most steps that make a mask, when the number of the unit is at hand.
MASK_STEPS = 3
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


def turn_cost(found: Sequence[Turn], target: Target) -> int:
    vectors = sum(-(-len(turn.pairs) // target.cycles) for turn in found)
    return 2 * vectors + sum(MASK_STEPS for turn in found if turn.units is not None)


def cast_cost(found: Sequence[Cast], target: Target) -> int:
    vectors = -(-len({cast.at for cast in found}) // target.cycles)
    masks = {cast.units for cast in found if cast.units is not None}
    return vectors + len(found) + MASK_STEPS * len(masks)


_Origin = tuple[int, int]


@dataclass(frozen=True)
class Fill:
    """Long words ``words`` of MAB ``unit`` go to the places of MABs ``first``, ``first + 1`` ...

    With ``wide``, each of them comes with the one behind it, and both go to neighbours.
    """

    first: int
    unit: int
    words: tuple[int, ...]
    wide: bool


@dataclass(frozen=True)
class Row:
    """The row that goes to address ``at`` of all MABs. Later fills overwrite earlier ones."""

    at: int
    fills: tuple[Fill, ...]


def rows(found: Moves, target: Target, *, even: bool) -> list[Row]:
    """Return the moves as rows. ``even`` says whether the source begins at an even word."""
    count = target.counts["mab"]
    origins: dict[int, list[_Origin | None]] = defaultdict(lambda: [None] * count)
    columns = (found.result_at, found.result, found.source, found.source_at)
    for at, unit, source, source_at in zip(*(c.tolist() for c in columns), strict=True):
        origins[at][unit] = source, source_at
    even = even and count % LONGS_PER_WIDE == 0
    return [Row(at, tuple(_fills(row, target.cycles, even))) for at, row in sorted(origins.items())]


def _fills(origins: Sequence[_Origin | None], cycles: int, even: bool) -> Iterator[Fill]:
    unit = 0
    while unit < len(origins):
        origin = origins[unit]
        if origin is None:
            unit += 1
            continue
        pairs = _pairs(origins, unit, origin[0], cycles) if even else []
        if LONGS_PER_WIDE * len(pairs) > cycles:
            yield Fill(unit, origin[0], _full(pairs, cycles), wide=True)
            unit += LONGS_PER_WIDE * len(pairs)
            continue
        words: list[int] = []
        for following in origins[unit : unit + cycles]:
            if following is None or following[0] != origin[0]:
                break
            words.append(following[1])
        yield Fill(unit, origin[0], _full(words, cycles), wide=False)
        unit += len(words)


def _pairs(origins: Sequence[_Origin | None], first: int, source: int, most: int) -> list[int]:
    """Return the first addresses of long words that go with the next ones to neighbours."""
    found: list[int] = []
    if first % LONGS_PER_WIDE:
        return found
    for unit in range(first, len(origins), LONGS_PER_WIDE):
        start = origins[unit]
        if start is None or start[1] % LONGS_PER_WIDE or len(found) == most:
            break
        wanted = [(source, start[1] + more) for more in range(LONGS_PER_WIDE)]
        if list(origins[unit : unit + LONGS_PER_WIDE]) != wanted:
            break
        found.append(start[1])
    return found


def _full(words: Sequence[int], cycles: int) -> tuple[int, ...]:
    return (*words, *[words[-1]] * (cycles - len(words)))


def count_fills(found: Sequence[Row], target: Target, times: int = 1) -> int | None:
    """Count the steps of :func:`fill_steps`, if all is done ``times`` times.

    None if the last fill of a batch may not reach behind its row.
    """
    pes, cycles = target.counts["pe"], target.cycles
    if LONGS_PER_WIDE * cycles * pes > l1bm_room(target).words:
        return None
    fills = sum(len(row.fills) for row in found)
    return fills * times + -(-len(found) * times // cycles)


#: A turn: by how many units, and the units that write, a bit for each; None means all.
_Turn = tuple[int, int | None]


@dataclass(frozen=True)
class Shares:
    """Long words that take part in the same turns.

    ``rows`` has the address of each source, and for each of ``turns`` the address of the result.
    """

    turns: tuple[_Turn, ...]
    rows: tuple[tuple[int, tuple[int, ...]], ...]


def shared_turns(rows: Sequence[tuple[tuple[int, ...], int]], count: int) -> list[Shares]:
    """Return the moves between ``count`` units as turns of shared long words.

    ``rows`` has turn, source and result address of each move, and the units that write it.
    """
    ways: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for (by, source, result), units in rows:
        ways[source].append((by, units, result))
    alike: dict[tuple[_Turn, ...], list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    everywhere = (1 << count) - 1
    for source, found in sorted(ways.items()):
        found.sort()
        turns = tuple((by, None if units == everywhere else units) for by, units, _ in found)
        alike[turns].append((source, tuple(result for _, _, result in found)))
    return [Shares(turns, tuple(found)) for turns, found in alike.items()]


def shared_cost(found: Sequence[Shares], vectors: int, target: Target) -> int:
    """Count the steps if L1BM has room for ``vectors`` vectors."""
    steps = total = 0
    masks: set[int] = set()
    for shares in found:
        count = -(-len(shares.rows) // target.cycles)
        steps += count * _steps_of(shares.turns)
        total += count
        masks |= {units for _, units in shares.turns if units is not None}
    # Masks that find no register are made again for every batch.
    again = 1 if len(masks) < target.masks["entries"] else -(-total // vectors)
    return steps + MASK_STEPS * len(masks) * again


def _steps_of(turns: Sequence[_Turn]) -> int:
    """Count the steps of one vector: the ALU makes one copy while the vector goes up."""
    stays = any(by == 0 for by, _ in turns)
    moves = any(by != 0 for by, _ in turns)
    return len(turns) + (moves and not stays)


def way(
    found: Moves, target: Target, *, source_even: bool, result_even: bool
) -> tuple[str, list[Any]]:
    """Return the cheapest way between MABs, as the crate gives it: 0 stands for all units."""
    count = target.counts["mab"]
    found_turns = turns(found, count)
    found_casts = casts(found, count, target.cycles, even=result_even)
    shares = shared_turns(units_by_turn(found, count), count)
    by_turns, by_casts = turn_cost(found_turns, target), cast_cost(found_casts, target)
    by_shares = shared_cost(shares, l1bm_room(target).vectors, target)
    filled = rows(found, target, even=source_even)
    by_fills = count_fills(filled, target)
    if by_fills is not None and by_fills < min(by_turns, by_casts, by_shares):
        return "fills", [
            (row.at, [(f.first, f.unit, f.words, f.wide) for f in row.fills]) for row in filled
        ]
    if by_shares < min(by_turns, by_casts):
        return "shares", [
            ([(by, units or 0) for by, units in one.turns], [(at, [*own]) for at, own in one.rows])
            for one in shares
        ]
    if by_turns <= by_casts:
        return "turns", [(turn.by, turn.units or 0, [*turn.pairs]) for turn in found_turns]
    return "casts", [
        (cast.at, cast.first, [*cast.results], cast.units or 0, cast.each) for cast in found_casts
    ]
