"""Turns between MABs that share what they read.

Long words that need the same turns go up to L1BM together. They come down once for each of these
turns. A turn by zero units needs no L1BM: the ALU copies, in the same step in which the long words
go up if possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...code.lines import BlockOperand, Step, alu_step, single_step
from ...machine import Target
from ..scratch import Words, vector
from .l1bm_vectors import l1bm_room, lift, shifts
from .unit_masks import MASK_STEPS, UnitMasks

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


def shared_steps(
    found: Sequence[Shares], masks: UnitMasks, source: Words, result: Words, target: Target
) -> Iterator[Step]:
    """Yield the code: for as many vectors as L1BM has room for, up, and down for every turn."""
    room, shift, size = l1bm_room(target), shifts(target), target.cycles
    # In one step the ALU cannot read one place of a memory and write another.
    apart = source.location.memory != result.location.memory
    work = [
        (shares.turns, shares.rows[start : start + size])
        for shares in found
        for start in range(0, len(shares.rows), size)
    ]
    for start in range(0, len(work), room.vectors):
        batch = work[start : start + room.vectors]
        down: dict[_Turn, list[tuple[int, tuple[int, ...], tuple[int, ...]]]] = defaultdict(list)
        for slot, (turns, part) in enumerate(batch):
            rows = part + (part[-1],) * (size - len(part))
            read = tuple(at for at, _ in rows)
            if not apart or any(by for by, _ in turns):
                yield lift(source, read, slot * room.words, room, target)
            for number, turn in enumerate(turns):
                down[turn].append((slot, read, tuple(results[number] for _, results in rows)))
        for (by, units), vectors in sorted(down.items(), key=_order):
            making: list[Step] = []
            mask = None if units is None else masks.use(units, making)
            yield from making
            for slot, read, written in vectors:
                there = vector(result, written, mask)
                if apart and by == 0:
                    yield alu_step("lpassa", (vector(source, read),), there)
                    continue
                at = BlockOperand("l1bm", slot * room.words, room.words)
                yield single_step("l1bm", f"l1bmd{shift[by]}", (at,), there)


def _order(entry: tuple[_Turn, object]) -> tuple[bool, int, int]:
    """Order turns by their masks, those that the ALU makes first."""
    (by, units), _ = entry
    return units is not None, 0 if units is None else units, by
