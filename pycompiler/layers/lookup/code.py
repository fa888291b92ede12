"""The code of a lookup: entries of the address registers, MVs that use them, transfers to the PEs.

A row consists of consecutive blocks, with one entry each. Every PE of the first MAB computes two
entries of a row. The first L1B of each L2B sends them to L2BM, from where they are written to the
address registers of the group. Each L2B has its own part of these registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...code.lines import (
    BlockOperand,
    Forward,
    Instruction,
    Line,
    Literal,
    Move,
    PeOperand,
    Special,
    Step,
    alu_step,
    single_step,
)
from ...code.nest import Nest, alike, whole_runs
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from ..dram_transfer_instructions import legal_set, members
from ..dram_transfer_plan import dram_words
from ..scratch import Scratch, vector
from .rows import Batch, Load, RowShape, batches, entries_per_word, l1b_sets, row_shape, unit_words

NOWHERE, BEFORE = Special("nowrite"), Forward("alu")
#: The register files of constants, and of what is computed with them.
CONSTANTS, WORK = Scratch("grf1"), Scratch("grf0")
#: Words of a register file: the number of the last row, the shift that fills a long word, the
#: shifts of a product; behind them the offsets of the entries of a row.
_LAST, _FILL, _SHIFTS = 0, 1, 2


def lookup_code(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Yield the code, batch after batch."""
    table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
    row = row_shape(table.shape[1], table.dtype, target)
    sets = l1b_sets(layout_of(out), target)
    whole = dram_words(layout_of(table), target)

    def code(batch: Batch) -> Iterator[Line]:
        first = target.dar_rows
        for load in batch.loads:
            yield from _entries(load, index, row, target)
            count = len(load.asked) * row.blocks
            yield from registers(count, target.l2bs_per_group, target)
            words = len(load.asked) * row.words
            for l2b in range(target.l2bs_per_group):
                own = l2b * target.dar_entries, count
                source = BlockOperand("dram", 0, whole, table.name, entries=own)
                yield Move("mvp", words, source, BlockOperand("l2bm", first, words, l2b=l2b))
            first += words
        yield from _down(batch, sets, row, out, target)

    yield from _constants(table, index, row, target)
    found = batches(layout_of(out), layout_of(index), index.shape, row, target)
    yield from alike(found, _size, code)


def _size(batch: Batch) -> tuple[int, ...]:
    """Return the rows that the PEs get, and those of each load."""
    return len(batch.goals), *(len(load.asked) for load in batch.loads)


def _bits(number: int) -> list[int]:
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]


def _offsets(row: RowShape) -> int:
    """Return the first constant that holds the offsets of a row's entries."""
    return _SHIFTS + len(_bits(row.blocks))


def _constants(table: MNValue, index: MNValue, row: RowShape, target: Target) -> Iterator[Step]:
    """Yield the steps that fill the registers with what is the same for all rows."""

    def constant(at: int) -> PeOperand:
        return vector(CONSTANTS, (at,) * target.cycles)

    def fill(at: int, literal: Literal) -> Step:
        return alu_step("imm", (literal,), constant(at))

    yield fill(_LAST, Literal(table.shape[0] - 1))
    if index.dtype is MNDtype.LONG:
        yield fill(_FILL, Literal(MNDtype.LONG.bits // WORDS_PER_LONG))
    for number, bit in enumerate(_bits(row.blocks)):
        yield fill(_SHIFTS + number, Literal(bit))
    offsets = range(0, row.blocks, entries_per_word(target))
    yield from entry_offsets(table.name, offsets, _offsets(row), target)


def _entries(load: Load, index: MNValue, row: RowShape, target: Target) -> Iterator[Step]:
    """Yield the steps that compute the entries of a load, and bring them to L2BM."""
    cycles = target.cycles
    last, fill = (vector(CONSTANTS, (at,) * cycles) for at in (_LAST, _FILL))
    rows = -(-len(load.asked) // cycles) * cycles
    for turn, asked in enumerate(whole_runs(load.asked, cycles)):
        goal = vector(WORK, tuple(range(turn * cycles, (turn + 1) * cycles)))
        source = vector(index, tuple(asked))
        yield alu_step("uimin", (source, last), goal)
        if index.dtype is MNDtype.LONG:
            # Both words of a long word hold the index.
            yield alu_step("llsl", (goal, fill), NOWHERE)
            yield alu_step("lor", (BEFORE, goal), goal)
        yield from _times(goal, row, rows, target)
    pairs = [
        (place, _offsets(row) + number)
        for place in range(len(load.asked))
        for number in range(row.blocks // entries_per_word(target))
    ]
    yield from entries(pairs, rows + cycles, target)


def _times(number: PeOperand, row: RowShape, rows: int, target: Target) -> Iterator[Step]:
    """Yield the steps that multiply a register by the blocks of a row."""
    total = vector(WORK, tuple(range(rows, rows + target.cycles)))
    bits = _bits(row.blocks)
    for place in range(len(bits)):
        shift = vector(CONSTANTS, (_SHIFTS + place,) * target.cycles)
        only = len(bits) == 1
        yield alu_step("ilsl", (number, shift), number if only else NOWHERE if place else total)
        if place:
            last = place == len(bits) - 1
            yield alu_step("iadd", (BEFORE, total), number if last else total)


def _down(
    batch: Batch, sets: Sequence[int], row: RowShape, out: MNValue, target: Target
) -> Iterator[Step]:
    """Yield the steps that bring the rows of a batch from L2BM to the PEs."""
    words, each = len(batch.goals) * row.words, unit_words(target)
    size, start = target.transfer("l2bmb", "down").source_words, target.dar_rows
    for number, l1bs in enumerate(sets):
        chosen = members(l1bs)
        suffix = "" if len(chosen) == target.counts["l1b"] else "@" + ",".join(map(str, chosen))
        assert legal_set(l1bs, target)
        for at in range(0, words, size):
            above = BlockOperand("l2bm", start + number * words + at, size)
            yield single_step("l2bm", f"l2bmb{suffix}", (above,), BlockOperand("l1bm", at, size))
    for begin, goals in _vectors(batch, row, target):
        source = BlockOperand("l1bm", begin * each, target.cycles * each)
        yield single_step("l1bm", "l1bmd", (source,), vector(out, goals))


def _vectors(batch: Batch, row: RowShape, target: Target) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the vectors that go to the PEs: the first address among the rows, and the goals.

    Vectors without elements stay behind: the result has no room for those of its last row.
    """
    cycles = target.cycles
    goals = [goal + at for goal in batch.goals for at in range(row.addresses)]
    for first in range(0, len(goals), cycles):
        if all(at % row.addresses >= row.used for at in range(first, first + cycles)):
            continue
        # The last vector overlaps the one before it, so that it brings nothing else.
        begin = max(0, min(first, len(goals) - cycles))
        now = goals[begin : begin + cycles]
        now += range(now[-1] + 1, now[-1] + 1 + cycles - len(now))
        yield begin, tuple(now)


def entry_offsets(value: str, offsets: Sequence[int], first: int, target: Target) -> Iterator[Step]:
    """Yield the steps that put the entries of runs of blocks into constants from ``first`` on.

    Each run begins so many blocks behind the first one of ``value``. The first offset is 0.
    """

    def constant(at: int) -> PeOperand:
        return vector(CONSTANTS, (at,) * target.cycles)

    assert not offsets[0]
    # Where the value begins, and the place of this PE's two entries.
    begin, scratch = constant(first), vector(WORK, (0,) * target.cycles)
    yield alu_step("imm", (Literal((WORDS_PER_LONG - 1).bit_length()),), begin)
    yield alu_step("ipassa", (Special("subpeid"),), NOWHERE)
    yield alu_step("ilsl", (BEFORE, begin), scratch)
    yield alu_step("imm", (Literal(0, value, target.mv_block),), NOWHERE)
    yield alu_step("iadd", (BEFORE, scratch), begin)
    # The second word of a long word is the next entry.
    second = PeOperand(CONSTANTS.memory, begin.offsets, words=1, word=WORDS_PER_LONG - 1)
    yield alu_step("iinc", (second,), second)
    for number, offset in enumerate(offsets[1:], 1):
        yield alu_step("imm", (Literal(offset),), NOWHERE)
        yield alu_step("iadd", (BEFORE, begin), constant(first + number))


def entries(pairs: Sequence[tuple[int, int]], free: int, target: Target) -> Iterator[Step]:
    """Yield the steps that add pairs of a word of work and of a constant, and bring them to L2BM.

    Words of work from ``free`` on are not in use.
    """
    cycles = target.cycles
    turns = whole_runs(pairs, cycles)
    width = target.transfer("l1bmm", "from_pe", mab_number=0).destination_words
    for number, now in enumerate(turns):
        at = free + cycles * (number % 2)
        made = vector(WORK, tuple(range(at, at + cycles)))
        offsets = vector(CONSTANTS, tuple(offset for _, offset in now))
        yield alu_step("iadd", (vector(WORK, tuple(place for place, _ in now)), offsets), made)
        up = BlockOperand("l1bm", number * width, width)
        yield single_step("l1bm", "l1bmm@0", (made,), up)
    size = target.transfer("l2bm", "up", l1b_number=0).source_words
    for at in range(0, len(turns) * width, size):
        sent = BlockOperand("l1bm", at, size)
        yield single_step("l2bm", "l2bm@0", (sent,), BlockOperand("l2bm", at, size))


def registers(count: int, l2bs: int, target: Target) -> Iterator[Step]:
    """Yield the steps that fill ``count`` address registers of every group for each of its L2Bs."""
    cycles = target.cycles
    for l2b in range(l2bs):
        first = l2b * target.dar_entries
        words = BlockOperand("l2bm", 0, target.dar_load, l2b=l2b)
        buffer = BlockOperand("dar_buffer", 0, target.dar_load, implied=True)
        entry = BlockOperand("dar", first, 1)
        yield Step((Instruction("l2bm", "l2bmdars", (words,), (entry, buffer)),))
        for at in range(first, first + count, cycles):
            moved_to = BlockOperand("dar", at, cycles, implied=True)
            # It empties the buffer: no later filling may share its line.
            moved = Instruction("l2bmdarw", "l2bmdarw", (buffer,), (moved_to, buffer))
            yield Step((moved,))
