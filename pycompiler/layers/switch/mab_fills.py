"""Passes between MABs that fill rows of L1BM word by word: `l1bmm@x` up, `l1bmd` down.

One instruction takes long words of one MAB, from any addresses, and fills the places of
neighbouring MABs in a row of L1BM. The row then comes down to all MABs. No masks are needed, so
this is the shortest way if each MAB takes from others and few rows do the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...code.lines import BlockOperand, Step, single_step
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from ..scratch import Scratch, Words, vector
from .l1bm_vectors import l1bm_room
from .pass_moves import Moves

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


def fill_steps(
    found: Sequence[Row], source: Words, result: Words, target: Target
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
            down.append((first * room.row, [part[0].at] * spare + [row.at for row in part]))
            for index, row in enumerate(part):
                place = (first + spare + index) * room.row
                for fill in row.fills:
                    yield _fill(fill, source, place + fill.first * pes, target)
        for place, at in down:
            above = BlockOperand("l1bm", place, room.words)
            yield single_step("l1bm", "l1bmd", (above,), vector(result, tuple(at)))


def _fill(fill: Fill, source: Words, place: int, target: Target) -> Step:
    form = target.transfer("l1bmm", "from_pe_2" if fill.wide else "from_pe", mab_number=fill.unit)
    here = vector(source, fill.words)
    if fill.wide:
        here = replace(here, words=WORDS_PER_LONG * LONGS_PER_WIDE)
    above = BlockOperand("l1bm", place, form.destination_words, wide=fill.wide)
    return single_step("l1bm", f"l1bmm@{fill.unit}", (here,), above)


def is_even(place: Words) -> bool:
    """Whether the words of a place begin at an even address; values begin at whole vectors."""
    return not isinstance(place, Scratch) or place.base % LONGS_PER_WIDE == 0
