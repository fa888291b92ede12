"""Turns between MABs that share what they read.

Long words that need the same turns go up to L1BM together. They come down once for each of these
turns. A turn by zero units needs no L1BM: the ALU copies, in the same step in which the long words
go up if possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...code.lines import BlockOperand, Step, alu_step, single_step
from ...machine import Target
from ..scratch import Words, vector
from .l1bm_vectors import l1bm_room, lift, shifts
from .unit_masks import UnitMasks

#: By how many units a turn goes up, and the units that write, a bit for each; 0 means all.
_Turn = tuple[int, int]
#: Turns, and the address of each source with that of its result in each of the turns.
_Shares = tuple[tuple[_Turn, ...], list[tuple[int, list[int]]]]


def shared_steps(
    found: Sequence[_Shares], masks: UnitMasks, source: Words, result: Words, target: Target
) -> Iterator[Step]:
    """Yield the code: for as many vectors as L1BM has room for, up, and down for every turn."""
    room, shift, size = l1bm_room(target), shifts(target), target.cycles
    # In one step the ALU cannot read one place of a memory and write another.
    apart = source.location.memory != result.location.memory
    work = [
        (turns, rows[start : start + size])
        for turns, rows in found
        for start in range(0, len(rows), size)
    ]
    for start in range(0, len(work), room.vectors):
        batch = work[start : start + room.vectors]
        down: dict[_Turn, list[tuple[int, tuple[int, ...], tuple[int, ...]]]] = defaultdict(list)
        for slot, (turns, part) in enumerate(batch):
            rows = (*part, *part[-1:] * (size - len(part)))
            read = tuple(at for at, _ in rows)
            if not apart or any(by for by, _ in turns):
                yield lift(source, read, slot * room.words, room, target)
            for number, turn in enumerate(turns):
                down[turn].append((slot, read, tuple(results[number] for _, results in rows)))
        for (by, units), vectors in sorted(down.items(), key=_order):
            making: list[Step] = []
            mask = masks.use(units, making) if units else None
            yield from making
            for slot, read, written in vectors:
                there = vector(result, written, mask)
                if apart and by == 0:
                    yield alu_step("lpassa", (vector(source, read),), there)
                    continue
                at = BlockOperand("l1bm", slot * room.words, room.words)
                yield single_step("l1bm", f"l1bmd{shift[by]}", (at,), there)


def _order(entry: tuple[_Turn, object]) -> tuple[int, int]:
    """Order turns by their masks, those that the ALU makes first."""
    (by, units), _ = entry
    return units, by
