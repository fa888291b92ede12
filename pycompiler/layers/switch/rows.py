"""Rows, which passes between L1Bs and between L2Bs move.

A row is one long word of every PE of an L1B, or of an L2B. Rows go up in vectors, cross over, and
come down to their new addresses, which are the same in all units.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...code.lines import BlockOperand, Operand, PeOperand, Step, single_step
from ...errors import PycompilerError, error
from ...machine import Target
from ..scratch import Words, vector
from .l1bm_vectors import l1bm_room
from .pass_moves import Moves

Origin = tuple[int, int]  # unit and address


@dataclass(frozen=True)
class RowRoom:
    """The room for rows in L1BM, and how many rows go together.

    ``row`` is the size of a row in long words. ``block`` is the number of rows that one L2BM
    instruction moves, ``vector`` the number that one L1BM instruction moves. An L2BM instruction
    moves ``l2bm_words`` long words. The rows that come down begin behind ``half`` vectors.
    """

    row: int
    block: int
    vector: int
    l2bm_words: int
    half: int


@cache
def rows_of_l1b(target: Target) -> RowRoom:
    """Return the room for rows of an L1B.

    P0606 if L1BM is too small, or if an L2BM instruction moves more rows than a vector has.
    """
    room = l1bm_room(target)
    step = target.transfer("l2bm", "up", l1b_number=0).source_words
    block = max(1, step // room.row)
    if block > target.cycles:
        reason = (
            f"an L2BM instruction moves {block} rows at once, which are more than the "
            f"{target.cycles} of a vector"
        )
        raise error("P0606", spec=target.name, reason=reason)
    return RowRoom(room.row, block, target.cycles, step, (room.vectors + 1) // 2)


def origins_of(found: Moves, count: int) -> dict[int, tuple[Origin | None, ...]]:
    """Return for each result address the origin of each unit's row."""
    out: dict[int, list[Origin | None]] = defaultdict(lambda: [None] * count)
    rows = (found.result_at, found.result, found.source, found.source_at)
    for at, unit, source, source_at in zip(*(row.tolist() for row in rows), strict=True):
        out[at][unit] = source, source_at
    return {at: tuple(origins) for at, origins in out.items()}


def too_small(target: Target, units: str, words: int, capacity: int) -> PycompilerError:
    """Return P0606: rows of ``words`` long words exceed the room of L2BM."""
    reason = (
        f"a switch between {units} of one step needs {words} long words of l2bm, "
        f"there is room for {capacity}"
    )
    return error("P0606", spec=target.name, reason=reason)


def subsets(units: Sequence[int], count: int) -> list[str]:
    """Return the suffixes with which L2BM instructions together address the L1Bs ``units``."""
    if len(units) == count:
        return [""]
    found = set(units)
    free = 0
    for unit in units:
        free |= unit ^ units[0]
    if len(found) == 1 << free.bit_count():
        base = units[0] & ~free
        return [f"@{base}/{free}" if free else f"@{base}"]
    return [f"@{unit}" for unit in units]


def vectors_of(rows: Sequence[int], room: RowRoom) -> Iterator[tuple[int, list[int]]]:
    """Yield the rows a vector at a time, each with the number of its first row."""
    for start in range(0, len(rows), room.vector):
        part = [*rows[start : start + room.vector]]
        yield start, part + [part[-1]] * (room.vector - len(part))


def pieces(
    rows: int, l1: int, l2: int, room: RowRoom, target: Target
) -> Iterator[tuple[BlockOperand, BlockOperand]]:
    """Yield the long words of L1BM and of L2BM that one L2BM instruction moves."""
    found = target.transfer("l2bmd", "up")
    for piece in range(0, -(-rows // room.vector) * room.vector * room.row, found.source_words):
        high = l2 + piece // found.source_words * found.destination_words
        lower = BlockOperand("l1bm", l1 + piece, found.source_words)
        yield lower, BlockOperand("l2bm", high, found.destination_words)


def way_up(value: Words, rows: Sequence[int], at: int, words: int) -> Step:
    """Return the step that brings a vector of rows to L1BM."""
    above = BlockOperand("l1bm", at, words)
    return single_step("l1bm", "l1bmd", (vector(value, tuple(rows)),), above)


def way_down(
    value: Words, rows: Sequence[int], at: int, words: int, mask: PeOperand | None
) -> Step:
    """Return the step that brings a vector of rows from L1BM to its addresses."""
    local = vector(value, tuple(rows), mask)
    return single_step("l1bm", "l1bmd", (BlockOperand("l1bm", at, words),), local)


def l2_step(mnemonic: str, source: Operand, destination: Operand) -> Step:
    """Return a step that moves words between L1BM and L2BM."""
    return single_step("l2bm", mnemonic, (source,), destination)
