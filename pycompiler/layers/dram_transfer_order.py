"""The DRAM address of every long word of LM: simulates the transfers of a plan word by word.

All L2Bs run the same steps. So one L2B shows from which word of L2BM each word of LM comes. The MVs
show from which word of DRAM each word of L2BM comes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import PycompilerError, error
from ..machine import IntArray, Target
from .dram_transfer_plan import Chunk, Transfer, TransferPlan, local_words


@dataclass(frozen=True, eq=False)
class Order:
    """The order of a plan's long words, in two parts.

    ``local``, shape (L1Bs, MABs, PEs, ``num_lw``): which long word of its L2BM a long word of LM
    comes from; the words of all chunks are counted. ``above``, shape (L2Bs of the machine, those
    words): ``group * dram_words + address`` of each of them.
    """

    local: IntArray
    above: IntArray


def order_of(plan: TransferPlan, alike: bool = False) -> Order:
    """Return the order of all L1Bs and L2Bs; of the first ones if all are ``alike``.

    P0402 if the upload does not bring a long word back to the place that it came from.
    """
    counts = plan.target.counts
    l1bs, l2bs = (1, 1) if alike else (counts["l1b"], None)
    local = np.empty((l1bs, counts["mab"], counts["pe"], plan.num_lw), dtype=np.int64)
    above: list[IntArray] = []
    start = 0
    # Chunks of one size bring their words in one order, from their own first word of DRAM on.
    orders: dict[tuple[int, ...], tuple[IntArray, IntArray, IntArray]] = {}
    for chunk in plan.chunks:
        first = chunk.dram[0]
        moved = chunk._replace(dram=tuple(part - first for part in chunk.dram))
        size = chunk.lm_steps, chunk.l1_filled, chunk.l2_words, *moved.dram
        if size not in orders:
            order = _below(plan, chunk, l1bs)
            orders[size] = order, *_above(plan, moved, np.unique(order))
        order, group, at = orders[size]
        local[..., chunk.lm : chunk.lm + order.shape[-1]] = start + order
        above.append(group[:l2bs] * plan.dram_words + first + at[:l2bs])
        start += chunk.l2_words
    return Order(local, np.concatenate(above, axis=1))


def _below(plan: TransferPlan, chunk: Chunk, l1bs: int) -> IntArray:
    """Return the word of L2BM that each word of a chunk in LM comes from, for one L2B."""
    words = chunk.lm_steps * plan.target.cycles
    down = _L2b(plan.target, l1bs, words, chunk)
    down.l2bm = np.arange(chunk.l2_words, dtype=np.int64)
    for transfer in plan.steps_down(chunk, 0):
        down.run(transfer)
    back = _L2b(plan.target, l1bs, words, chunk)
    back.lm = down.lm
    for transfer in plan.steps_up(chunk, 0):
        back.run(transfer)
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

    def run(self, transfer: Transfer) -> None:
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
