"""Sums over all L1Bs of an L2B, by the reduction network above L1BM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...code.lines import BlockOperand, Forward, Line, PeOperand, Special, single_step
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...machine import Target
from ..scratch import vector
from .l1bm_vectors import l1bm_room


def sum_l1bs(
    value: MNValue, added: MNValue | None, rows: Mapping[int, int], target: Target
) -> Iterator[Line]:
    """Replace the long words ``rows`` of ``value`` by their sums over the L1Bs, in every L1B.

    ``rows`` maps each long word to the long word of ``added`` that is added to its sum once. All
    are singles, or all doubles.
    """
    room = l1bm_room(target)
    letter = "d" if value.dtype is MNDtype.DOUBLE else "f"
    wide = target.transfer(f"l2bmr{letter}fadd", "up")
    # Going up and coming down take half of L1BM each.
    most = max(1, min(room.vectors // 2, target.words("grf0") // target.cycles))
    ordered = sorted(rows)
    ordered += [ordered[-1]] * (-len(ordered) % target.cycles)
    vectors = [tuple(ordered[i : i + target.cycles]) for i in range(0, len(ordered), target.cycles)]
    for start in range(0, len(vectors), most):
        batch = vectors[start : start + most]
        below = most * room.words
        for index, words in enumerate(batch):
            up = BlockOperand("l1bm", index * room.words, room.words)
            yield single_step("l1bm", "l1bmd", (vector(value, words),), up)
        size = wide.source_words
        pieces = range(0, len(batch) * room.words, size)
        for piece in pieces:
            yield single_step(
                "l2bm",
                f"l2bmr{letter}fadd",
                (BlockOperand("l1bm", piece, size),),
                BlockOperand("l2bm", piece, size),
            )
        for piece in pieces:
            yield single_step(
                "l2bm",
                "l2bmb",
                (BlockOperand("l2bm", piece, size),),
                BlockOperand("l1bm", below + piece, size),
            )
        for index, words in enumerate(batch):
            down = BlockOperand("l1bm", below + index * room.words, room.words)
            if added is None:
                yield single_step("l1bm", "l1bmd", (down,), vector(value, words))
                continue
            more = vector(added, tuple(rows[word] for word in words))
            yield single_step("l1bm", "l1bmd", (down,), Special("nowrite"))
            # ``added`` may lie in the LM of the sums, which has one port.
            yield single_step(
                "mau", f"{letter}vadd", (Forward("l1bm"), more), _register(index, target)
            )
        if added is not None:
            for index, words in enumerate(batch):
                yield single_step(
                    "alu", "lpassa", (_register(index, target),), vector(value, words)
                )


def sum_steps(rows: int, target: Target, *, added: bool) -> int:
    """Count the steps of :func:`sum_l1bs` for ``rows`` long words of each PE."""
    room, size = l1bm_room(target), target.transfer("l2bmrffadd", "up").source_words
    vectors, pieces = -(-rows // target.cycles), -(-room.words // size)
    return vectors * (2 * pieces + (4 if added else 2))


def _register(index: int, target: Target) -> PeOperand:
    first = index * target.cycles
    return PeOperand("grf0", tuple(range(first, first + target.cycles)))
