"""Passes between L1Bs, through L2BM, or :mod:`straight <.straight_rows>` if that is as short."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...code.lines import BlockOperand, PeOperand, Step
from ...graph.layout import Level
from ...machine import Target
from ..scratch import Words
from .pass_moves import Moves
from .rows import (
    Origin,
    RowRoom,
    l2_step,
    origins_of,
    rows_of_l1b,
    subsets,
    too_small,
    way_down,
    way_up,
)
from .straight_rows import straight_rows, straight_steps
from .unit_masks import choose_units


@dataclass(frozen=True)
class _Block:
    """Rows that come down together.

    ``origins`` has for each unit the unit and the rows that its data comes from, None if it takes
    none.
    """

    results: tuple[int, ...]
    origins: tuple[tuple[int, tuple[int, ...]] | None, ...]


def _blocks(origins: dict[int, tuple[Origin | None, ...]], size: int) -> list[_Block]:
    """Group result rows that take their data from the same units, ``size`` at a time."""
    alike: dict[tuple[int | None, ...], list[int]] = defaultdict(list)
    for at, row in sorted(origins.items()):
        alike[tuple(None if o is None else o[0] for o in row)].append(at)
    out: list[_Block] = []
    for units, rows in alike.items():
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            part += [part[-1]] * (size - len(part))
            found: list[tuple[int, tuple[int, ...]] | None] = []
            for unit, source in enumerate(units):
                if source is None:
                    found.append(None)
                    continue
                places = [origins[at][unit] for at in part]
                found.append((source, tuple(p[1] for p in places if p is not None)))
            out.append(_Block(tuple(part), tuple(found)))
    return out


def l1b_steps(
    found: Moves,
    source: Words,
    result: Words,
    target: Target,
    around: Mapping[Level, int] | None = None,
) -> list[Step]:
    """Return the code of a pass over the L1Bs of an L2B.

    Only the PEs of the units ``around`` write: it has a bit for each unit of a level.
    """
    room = rows_of_l1b(target)
    sent = straight_rows(found, target)
    if sent is not None:
        return straight_steps(sent, source, result, target, around or {})
    blocks = _blocks(origins_of(found, target.counts["l1b"]), room.block)
    out: list[Step] = []
    mask = choose_units(around, out, target) if around else None
    start = 0
    while start < len(blocks):
        batch = _batch(blocks, start, room, target)
        start += len(batch)
        out += _l1b_batch(batch, room, source, result, target, mask)
    return out


def _batch(blocks: Sequence[_Block], start: int, room: RowRoom, target: Target) -> list[_Block]:
    """Return the blocks from ``start`` on whose rows fit L1BM, going up and coming down, and L2BM.

    P0606 if the rows of one block do not fit L2BM.
    """
    most = room.half * room.vector // room.block
    size, capacity = room.row * room.block, target.words("l2bm")
    lifted: set[tuple[int, tuple[int, ...]]] = set()
    out: list[_Block] = []
    for block in blocks[start:]:
        more = lifted | {origin for origin in block.origins if origin is not None}
        reads = {rows for _, rows in more}
        if out and (len(reads) > most or len(out) == most or len(more) * size > capacity):
            break
        if len(more) * size > capacity:
            raise too_small(target, "L1Bs", len(more) * size, capacity)
        lifted = more
        out.append(block)
    return out


def _l1b_batch(
    batch: Sequence[_Block],
    room: RowRoom,
    source: Words,
    result: Words,
    target: Target,
    mask: PeOperand | None,
) -> Iterator[Step]:
    size = room.row * room.block
    reads = list(dict.fromkeys(o[1] for b in batch for o in b.origins if o is not None))
    slots = {rows: index * size for index, rows in enumerate(reads)}
    together = room.vector // room.block
    words = room.row * room.vector
    for start in range(0, len(reads), together):
        part = _filled(reads[start : start + together], together)
        yield way_up(source, part, slots[reads[start]], words)
    lifted: dict[tuple[int, tuple[int, ...]], int] = {}
    step = target.transfer("l2bm", "up", l1b_number=0)
    width = step.source_words
    for block in batch:
        for origin in block.origins:
            if origin is not None and origin not in lifted:
                unit, rows = origin
                lifted[origin] = len(lifted) * size
                for piece in range(0, size, width):
                    yield l2_step(
                        f"l2bm@{unit}",
                        BlockOperand("l1bm", slots[rows] + piece, width),
                        BlockOperand("l2bm", lifted[origin] + piece, width),
                    )
    below = room.half * words
    # Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    whole, spare = len(batch) // together * together, -len(batch) % together
    for index, block in enumerate(batch):
        place = index + (spare if index >= whole else 0)
        goes: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
        for unit, origin in enumerate(block.origins):
            if origin is not None:
                goes[origin].append(unit)
        for origin, units in goes.items():
            for subset in subsets(units, target.counts["l1b"]):
                for piece in range(0, size, width):
                    yield l2_step(
                        f"l2bmb{subset}",
                        BlockOperand("l2bm", lifted[origin] + piece, width),
                        BlockOperand("l1bm", below + place * size + piece, width),
                    )
    for start in range(0, len(batch), together):
        results = [block.results for block in batch[start : start + together]]
        results = [results[0]] * (together - len(results)) + results
        part = tuple(at for rows in results for at in rows)
        yield way_down(result, part, below + start * size, words, mask)


def _filled(rows: Sequence[tuple[int, ...]], count: int) -> tuple[int, ...]:
    padded = [*rows, *[rows[-1]] * (count - len(rows))]
    return tuple(at for row in padded for at in row)
