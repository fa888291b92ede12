"""The DRAM address of every long word of LM: simulates the transfers of a plan word by word.

All L2Bs run the same steps. So one L2B shows from which word of L2BM each word of LM comes. The MVs
show from which word of DRAM each word of L2BM comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..errors import PycompilerError, error
from ..graph.layout import UNIT_LEVELS, Level
from ..machine import IntArray, Target
from .dram_transfer_plan import Chunk, Run, Transfer, TransferPlan, local_words


class ChunkOrder(NamedTuple):
    """The order of a chunk, whose words begin at ``lm`` in LM and at ``dram`` in DRAM.

    ``below``, shape (L1Bs, MABs, PEs, words of LM): which long word of the chunk in L2BM a word
    comes from. ``group`` and ``at``, shape (L2Bs of the machine, those words): where each of them
    lies in DRAM, counted from ``dram``. Chunks of one size share their arrays.
    """

    lm: int
    dram: int
    below: IntArray
    group: IntArray
    at: IntArray


@lru_cache(maxsize=16)
def orders_of(plan: TransferPlan, alike: bool = False) -> list[ChunkOrder]:
    """Return the order of all chunks; of the first L1B and L2B if all are ``alike``.

    P0402 if the upload does not bring a long word back to the place that it came from.
    """
    l1bs, l2bs = (1, 1) if alike else (plan.target.counts["l1b"], None)
    parts: list[ChunkOrder] = []
    # Chunks of one size bring their words in one order, from their own first word of DRAM on.
    orders: dict[tuple[int, ...], tuple[IntArray, IntArray, IntArray]] = {}
    for chunk in plan.chunks:
        first = chunk.dram[0]
        moved = chunk._replace(dram=tuple(part - first for part in chunk.dram))
        size = chunk.lm_steps, chunk.l1_filled, chunk.l2_words, *moved.dram
        if size not in orders:
            below = _below(plan, chunk, l1bs)
            group, at = _above(plan, moved, np.unique(below))
            orders[size] = below, group[:l2bs], at[:l2bs]
        parts.append(ChunkOrder(chunk.lm, first, *orders[size]))
    return parts


def words_at(
    plan: TransferPlan, parts: Sequence[ChunkOrder], at: Mapping[Level, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the group and the word of DRAM that long words of LM come from.

    ``at`` has their coordinates, 0 where a level is missing; they broadcast.
    """
    levels = (*UNIT_LEVELS, Level.ADDR, Level.TIME)
    found = np.broadcast_arrays(*(np.asarray(at.get(level, 0)) for level in levels))
    l2b, l1b, mab, pe, addr, time = (one.reshape(-1) for one in found)
    number = np.searchsorted([part.lm for part in parts], addr, "right") - 1
    group, word = np.empty_like(addr), time * plan.dram_words
    for one in np.unique(number):
        part, here = parts[one], number == one
        local = part.below[l1b[here], mab[here], pe[here], addr[here] - part.lm]
        group[here] = part.group[l2b[here], local]
        word[here] += part.dram + part.at[l2b[here], local]
    return group.reshape(found[0].shape), word.reshape(found[0].shape)


def _below(plan: TransferPlan, chunk: Chunk, l1bs: int) -> IntArray:
    """Return the word of L2BM that each word of a chunk in LM comes from, for one L2B."""
    words = chunk.lm_steps * plan.target.cycles
    down = _L2b(plan.target, l1bs, words, chunk)
    down.l2bm = np.arange(chunk.l2_words, dtype=np.int64)
    for run in plan.steps_down(chunk, 0):
        down.run(run)
    back = _L2b(plan.target, l1bs, words, chunk)
    back.lm = down.lm
    for run in plan.steps_up(chunk, 0):
        back.run(run)
    # Words behind the layout's rows come from nowhere, and hold nothing.
    rows = min(plan.layout.num_lw(1) - chunk.lm, words)
    down.lm[..., rows:] = down.lm[..., rows - 1 : rows]
    used = np.unique(down.lm)
    if used[0] < 0 or (back.l2bm[used] != used).any():
        raise _wrong(plan, "a word of L2BM")
    return down.lm


def _above(plan: TransferPlan, chunk: Chunk, used: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group and word of DRAM that each word of a chunk in L2BM comes from, for all L2Bs.

    The chunk's part of DRAM begins at word 0. ``used`` are the words of L2BM that go on to LM.
    """
    target = plan.target
    groups, l2bs = target.groups, target.l2bs_per_group
    down = list(plan.moves_down(chunk, 0))
    size = max(move.source + move.dram_words for move in down)
    dram = np.arange(groups * size, dtype=np.int64).reshape(groups, size)
    l2bm = np.full((groups, l2bs, chunk.l2_words), -1, dtype=np.int64)
    for transfer in down:
        _move(transfer, target, dram, l2bm)
    back = np.full_like(dram, -1)
    for transfer in plan.moves_up(chunk, 0):
        _move(transfer, target, back, l2bm)
    words = l2bm[:, :, used].reshape(-1)
    if (words < 0).any() or (back.reshape(-1)[words] != words).any():
        raise _wrong(plan, "a word of DRAM")
    group, at = np.divmod(l2bm.reshape(groups * l2bs, chunk.l2_words), size)
    return group, at


def _wrong(plan: TransferPlan, what: str) -> PycompilerError:
    reason = f"{what} does not come back to its place"
    return error("P0402", layout=str(plan.layout), reason=reason)


class _L2b:
    """The memories of an L2B, with numbers of words in place of data.

    ``lm`` has the words of one chunk, and of each L2BM only those of the chunk are there.
    """

    def __init__(self, target: Target, l1bs: int, words: int, chunk: Chunk):
        counts = target.counts
        self.target, self.first = target, chunk.lm
        self.l2bm = np.full(chunk.l2_words, -1, dtype=np.int64)
        self.l1bm = np.full((l1bs, chunk.l1_words), -1, dtype=np.int64)
        self.lm = np.full((l1bs, counts["mab"], counts["pe"], words), -1, dtype=np.int64)

    def run(self, run: Run) -> None:
        for number in range(run.times):
            self._step(run.step(number))

    def _step(self, transfer: Transfer) -> None:
        parameters = dict(transfer.parameters)
        found = self.target.transfer(transfer.mnemonic, transfer.form, **parameters)
        source, destination = found.source, found.destination
        if transfer.form == "down":
            here = destination["l1b"] < len(self.l1bm)
            words = self.l2bm[transfer.source + source["addr"][here]]
            at = transfer.destination + destination["addr"][here]
            self.l1bm[destination["l1b"][here], at] = words
        elif transfer.form == "up":
            here = source["l1b"] < len(self.l1bm)
            words = self.l1bm[source["l1b"][here], transfer.source + source["addr"][here]]
            self.l2bm[transfer.destination + destination["addr"][here]] = words
        elif transfer.form.startswith("to_pe"):
            words = self.l1bm[:, transfer.source + source["addr"]]
            at = transfer.destination - self.first + local_words(destination, transfer.wide)
            taken = np.ones(destination["mab"].shape, bool)
            if transfer.mabs is not None:
                taken = (transfer.mabs >> destination["mab"] & 1).astype(bool)
            unit = destination["mab"][taken], destination["pe"][taken]
            self.lm[:, *unit, at[taken]] = words[:, taken]
        else:
            at = transfer.source - self.first + local_words(source, transfer.wide)
            words = self.lm[:, source["mab"], source["pe"], at]
            self.l1bm[:, transfer.destination + destination["addr"]] = words


def _move(transfer: Transfer, target: Target, dram: IntArray, l2bm: IntArray) -> None:
    """Run an MV between DRAMs, shape (groups, words), and L2BMs, (groups, L2Bs, words)."""
    found = target.transfer(transfer.mnemonic, transfer.form, **dict(transfer.parameters))
    source, destination = found.source, found.destination
    down = transfer.form.startswith("dram")
    strides = found.strides or (transfer.words, transfer.words)
    # An MV's size counts long words of L2BM.
    count = transfer.words // strides[1 if down else 0]
    blocks = np.arange(count, dtype=np.int64)[:, None]
    start = transfer.source + source["addr"] + blocks * strides[0]
    at = transfer.destination + destination["addr"] + blocks * strides[1]
    if down:
        l2bm[destination["group"], destination["l2b"], at] = dram[source["group"], start]
    else:
        dram[destination["group"], at] = l2bm[source["group"], source["l2b"], start]
