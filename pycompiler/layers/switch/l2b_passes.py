"""Passes between L2Bs, through the PDMs.

Rows come to L2BM as in passes between L1Bs, cross over in MVs, and come down to new addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...code.lines import BlockOperand, Line, Move, PeOperand
from ...errors import error
from ...machine import Target
from ..scratch import Words
from .pass_moves import Moves
from .rows import (
    Origin,
    RowRoom,
    l2_step,
    origins_of,
    pieces,
    rows_of_l1b,
    too_small,
    vectors_of,
    way_down,
    way_up,
)


@dataclass(frozen=True)
class _Run:
    """Long words that go from ``start`` in one L2BM to ``goal`` in another, by the PDM ``home``.

    ``origin`` is the unit they come from; ``unit`` is where they go, None if all units take them.
    ``home`` is the group of ``unit``, or, if all take them, that of ``origin``.
    """

    unit: int | None
    home: int
    origin: int
    start: int
    goal: int
    words: int

    @property
    def way_up(self) -> tuple[int, int, int, int]:
        """What the MV to the PDM moves. The L2Bs of a group may need the same."""
        return self.home, self.origin, self.start, self.words

    def meets(self, other: _Run) -> bool:
        """Whether the other run goes on where this one ends."""
        ends = self.start + self.words, self.goal + self.words
        return self.origin == other.origin and ends == (other.start, other.goal)


def l2b_lines(
    found: Moves, source: Words, result: Words, target: Target, mask: PeOperand | None = None
) -> list[Line]:
    """Return the code of a pass over the L2Bs of the chip; only the PEs of ``mask`` write.

    P0606 if a vector of rows does not fit half of L2BM: rows come from one half to the other.
    """
    count = target.level_range["L2B"]
    origins = origins_of(found, count)
    room = rows_of_l1b(target)
    row = room.row * target.counts["l1b"]
    half = target.words("l2bm") // 2
    if row * room.vector > half:
        raise too_small(target, "L2Bs", row * room.vector, half)
    most = min(room.half * room.vector, half // row) // room.vector
    out: list[Line] = []
    # Rows that take from the same rows come together, so each row goes up once. Then all L2Bs give
    # and take in every batch. Beside each other stand those from the same L2Bs: runs are long.
    results = sorted(origins, key=lambda at: (_read(origins[at]), at))
    size = most * room.vector
    start = 0
    while start < len(results):
        read: dict[int, None] = {}
        batch: list[int] = []
        for at in results[start:]:
            more = read | dict.fromkeys(o[1] for o in origins[at] if o is not None)
            if batch and (len(more) > size or len(batch) == size):
                break
            read = more
            batch.append(at)
        start += len(batch)
        batch.sort(key=lambda at: ([-1 if o is None else o[0] for o in origins[at]], at))
        out += _l2b_batch(batch, list(read), origins, row, source, result, target, mask)
    return out


def _read(origins: Sequence[Origin | None]) -> list[int]:
    """Return the rows that the units' rows come from, sorted."""
    return sorted({origin[1] for origin in origins if origin is not None})


def _l2b_batch(
    batch: Sequence[int],
    read: Sequence[int],
    origins: Mapping[int, tuple[Origin | None, ...]],
    row: int,
    source: Words,
    result: Words,
    target: Target,
    mask: PeOperand | None,
) -> Iterator[Line]:
    room = rows_of_l1b(target)
    lifted = _in_order_of_readers(batch, read, origins)
    up = {at: index * row for index, at in enumerate(lifted)}
    _check_rows(row, target)
    below = target.words("l2bm") // 2 // row * row
    yield from _rows_up(source, lifted, room, target)
    pdm = 0
    crossing: list[tuple[_Run, int]] = []
    there: dict[tuple[int, int, int, int], int] = {}
    # Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    whole, spare = len(batch) // room.vector * room.vector, -len(batch) % room.vector
    places = [below + (n if n < whole else n + spare) * row for n in range(len(batch))]
    runs = _for_all(_runs(batch, places, up, origins, row, target), target)
    for run in _by_turns(runs, target):
        at = there.get(run.way_up)
        if at is None:
            if pdm + run.words > target.words("pdm"):
                yield from _come_down(crossing, target)
                crossing, pdm = [], 0
                there.clear()
            at = there[run.way_up] = pdm
            pdm += run.words
            yield Move("mvp", run.words, _l2bm(run.origin, run.start, run, target), _pdm(at, run))
        crossing.append((run, at))
    yield from _come_down(crossing, target)
    filled = [*batch[:whole], *[*batch[whole : whole + 1]] * spare, *batch[whole:]]
    yield from _rows_down(result, filled, below, room, target, mask)


def _in_order_of_readers(
    batch: Sequence[int], read: Sequence[int], origins: Mapping[int, tuple[Origin | None, ...]]
) -> list[int]:
    """Sort rows by the first unit that takes them and by their place there: runs are long."""
    first: dict[int, tuple[int, int]] = {}
    for place, at in enumerate(batch):
        for unit, origin in enumerate(origins[at]):
            if origin is not None:
                here = unit, place
                first[origin[1]] = min(first.get(origin[1], here), here)
    return sorted(read, key=lambda at: first[at])


def _for_all(runs: Iterable[_Run], target: Target) -> Iterator[_Run]:
    """Join runs that differ only in the unit, if there is one for each unit."""
    alike: dict[tuple[int, int, int, int], list[_Run]] = {}
    for run in runs:
        alike.setdefault((run.origin, run.start, run.goal, run.words), []).append(run)
    for found in alike.values():
        if len(found) == target.level_range["L2B"]:
            home = found[0].origin // target.l2bs_per_group
            yield replace(found[0], unit=None, home=home)
        else:
            yield from found


def _by_turns(runs: Iterable[_Run], target: Target) -> list[_Run]:
    """Order runs so that in each turn all PDMs take from L2BMs of their own.

    A memory serves one MV at a time, and MVs wait for those before them.
    """
    units = target.level_range["L2B"]
    return sorted(runs, key=lambda run: (run.origin - run.home * target.l2bs_per_group) % units)


def _l2bm(unit: int, at: int, run: _Run, target: Target) -> BlockOperand:
    group, l2b = divmod(unit, target.l2bs_per_group)
    return BlockOperand("l2bm", at, run.words, l2b=l2b, group=group)


def _pdm(at: int, run: _Run) -> BlockOperand:
    return BlockOperand("pdm", at, run.words, group=run.home)


def _check_rows(row: int, target: Target) -> None:
    """Raise P0606 if a row of an L2B is no multiple of the MV unit: no MV can then move it."""
    if row % target.mv_unit:
        reason = (
            f"a row of an L2B, {row} long words, is no multiple of the unit of MVs, "
            f"{target.mv_unit}, so that values cannot move between L2Bs"
        )
        raise error("P0606", spec=target.name, reason=reason)


def _come_down(crossing: Sequence[tuple[_Run, int]], target: Target) -> Iterator[Line]:
    for run, pdm in crossing:
        if run.unit is None:
            everywhere = BlockOperand("l2bm", run.goal, run.words)
            yield Move("mvb", run.words, _pdm(pdm, run), everywhere)
        else:
            goal = _l2bm(run.unit, run.goal, run, target)
            yield Move("mvp", run.words, _pdm(pdm, run), goal)


def _runs(
    batch: Sequence[int],
    places: Sequence[int],
    up: Mapping[int, int],
    origins: Mapping[int, tuple[Origin | None, ...]],
    row: int,
    target: Target,
) -> Iterator[_Run]:
    """Yield the runs of L2BM. The rows of ``batch`` come to ``places``."""
    units = len(next(iter(origins.values())))
    for unit in range(units):
        home = unit // target.l2bs_per_group
        run: _Run | None = None
        for at, place in zip(batch, places, strict=True):
            origin = origins[at][unit]
            if origin is None:
                continue
            here = _Run(unit, home, origin[0], up[origin[1]], place, row)
            if run is not None and run.meets(here):
                run = replace(run, words=run.words + row)
                continue
            if run is not None:
                yield run
            run = here
        if run is not None:
            yield run


def _rows_up(value: Words, rows: Sequence[int], room: RowRoom, target: Target) -> Iterator[Line]:
    """Bring rows of all L1Bs to the begin of L2BM."""
    words = room.row * room.vector
    for start, part in vectors_of(rows, room):
        yield way_up(value, part, start * room.row, words)
    for lower, upper in pieces(len(rows), 0, 0, room, target):
        yield l2_step("l2bmd", lower, upper)


def _rows_down(
    value: Words,
    rows: Sequence[int],
    l2: int,
    room: RowRoom,
    target: Target,
    mask: PeOperand | None,
) -> Iterator[Line]:
    """Bring rows of all L1Bs back from ``l2`` of L2BM."""
    words = room.row * room.vector
    l1 = room.half * words
    for lower, upper in pieces(len(rows), l1, l2, room, target):
        yield l2_step("l2bmd", upper, lower)
    for start, part in vectors_of(rows, room):
        yield way_down(value, part, l1 + start * room.row, words, mask)
