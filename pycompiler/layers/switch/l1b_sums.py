"""Sums over all L1Bs of an L2B, by the reduction network above L1BM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...code.lines import BlockOperand, Forward, Line, PeOperand, Special, alu_step, single_step
from ...code.nest import Nest, alike, each, runs, whole_runs
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...machine import Target
from ..scratch import vector
from .l1bm_vectors import l1bm_room


def sum_l1bs(
    value: MNValue, added: MNValue | None, rows: Mapping[int, int], target: Target
) -> Nest:
    """Replace the long words ``rows`` of ``value`` by their sums over the L1Bs, in every L1B.

    ``rows`` maps each long word to the long word of ``added`` that is added to its sum once. All
    are singles, or all doubles.
    """
    room = l1bm_room(target)
    letter = "d" if value.dtype is MNDtype.DOUBLE else "f"
    size = target.transfer(f"l2bmr{letter}fadd", "up").source_words
    # Going up and coming down take half of L1BM each.
    most = max(1, min(room.vectors // 2, target.words("grf0") // target.cycles))
    below = most * room.words

    def batch(vectors: Sequence[tuple[int, ...]]) -> Nest:
        pieces = range(0, len(vectors) * room.words, size)
        yield each(range(len(vectors)), lambda i: [up(i, vectors[i])])
        yield each(pieces, lambda at: [across(f"l2bmr{letter}fadd", ("l1bm", at), ("l2bm", at))])
        yield each(pieces, lambda at: [across("l2bmb", ("l2bm", at), ("l1bm", below + at))])
        yield each(range(len(vectors)), lambda i: down(i, vectors[i]))
        if added is not None:
            yield each(range(len(vectors)), lambda i: [kept(i, vectors[i])])

    def up(index: int, words: tuple[int, ...]) -> Line:
        goal = BlockOperand("l1bm", index * room.words, room.words)
        return single_step("l1bm", "l1bmd", (vector(value, words),), goal)

    def across(mnemonic: str, source: tuple[str, int], goal: tuple[str, int]) -> Line:
        operands = (BlockOperand(*source, size),), BlockOperand(*goal, size)
        return single_step("l2bm", mnemonic, *operands)

    def down(index: int, words: tuple[int, ...]) -> Nest:
        source = BlockOperand("l1bm", below + index * room.words, room.words)
        if added is None:
            yield single_step("l1bm", "l1bmd", (source,), vector(value, words))
            return
        more = vector(added, tuple(rows[word] for word in words))
        yield single_step("l1bm", "l1bmd", (source,), Special("nowrite"))
        # ``added`` may lie in the LM of the sums, which has one port.
        sum_ = (Forward("l1bm"), more)
        yield single_step("mau", f"{letter}vadd", sum_, _register(index, target))

    def kept(index: int, words: tuple[int, ...]) -> Line:
        return alu_step("lpassa", (_register(index, target),), vector(value, words))

    vectors = [tuple(words) for words in whole_runs(sorted(rows), target.cycles)]
    return alike(runs(vectors, most), len, batch)


def _register(index: int, target: Target) -> PeOperand:
    first = index * target.cycles
    return PeOperand("grf0", tuple(range(first, first + target.cycles)))
