"""Where every long word of LM lies in DRAM: the transfers of a plan, followed word by word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..errors import error
from ..machine import LONGS_PER_WIDE, IntArray, Target
from .dram_transfer_plan import Transfer, TransferPlan


def lm_words(plan: TransferPlan) -> IntArray:
    """Return where every long word of LM comes from: ``group * dram_words + address``.

    Shape: units from group to PE, then ``num_lw``. P0402 if the upload does not bring a long word
    back to the place that it came from.
    """
    target = plan.target
    groups = target.groups
    dram = np.arange(groups * plan.dram_words, dtype=np.int64).reshape(groups, plan.dram_words)
    memories = _Memories(target, dram, plan.num_lw)
    for chunk in plan.chunks:
        for transfer in (*plan.moves_down(chunk, 0), *plan.steps_down(chunk, 0)):
            memories.run(transfer)
    lm = memories.lm.copy()
    back = _Memories(target, np.full_like(dram, -1), plan.num_lw)
    back.lm = lm
    for chunk in plan.chunks:
        for transfer in (*plan.steps_up(chunk, 0), *plan.moves_up(chunk, 0)):
            back.run(transfer)
    used = np.zeros(dram.size, dtype=bool)
    used[lm[lm >= 0]] = True
    wrong = np.flatnonzero(used & (back.dram.reshape(-1) != dram.reshape(-1)))
    if wrong.size or (lm < 0).any():
        group, word = divmod(int(wrong[0]) if wrong.size else -1, plan.dram_words)
        raise error("P0402", layout=str(plan.layout), reason=f"word {word} of group {group}")
    return lm


def lm_words_of_l1b(plan: TransferPlan) -> IntArray:
    """Return the first address in DRAM of every long word of an L1B's LM, if all hold the same.

    Shape: MABs, PEs, ``num_lw``. Chunks of one size bring their words in one order.
    """
    counts = plan.target.counts
    out = np.empty((counts["mab"], counts["pe"], plan.num_lw), dtype=np.int64)
    orders: dict[int, IntArray] = {}
    for chunk in plan.chunks:
        words = chunk.lm_steps * plan.target.cycles
        if words not in orders:
            alone = replace(chunk, lm=0, dram=(0,))
            size = chunk.l2_words
            part = replace(plan, num_lw=words, chunks=(alone,), dram_words=size)
            orders[words] = lm_words(part)[0, 0, 0]
        out[..., chunk.lm : chunk.lm + words] = orders[words] + chunk.dram[0]
    return out


class _Memories:
    """Memories that hold word numbers in place of data; transfers run on all units at once."""

    def __init__(self, target: Target, dram: IntArray, num_lw: int):
        group, l2b, l1b, mab, pe = target.pe_shape
        self.target = target
        self.dram = dram
        self.l2bm = np.full((group, l2b, target.words("l2bm")), -1, dtype=np.int64)
        self.l1bm = np.full((group, l2b, l1b, target.words("l1bm")), -1, dtype=np.int64)
        self.lm = np.full((group, l2b, l1b, mab, pe, num_lw), -1, dtype=np.int64)

    def run(self, transfer: Transfer) -> None:
        parameters = dict(transfer.parameters)
        if transfer.stage == "mv":
            self._move(transfer, parameters)
            return
        found = self.target.transfer(transfer.mnemonic, transfer.form, **parameters)
        source, destination = found.source, found.destination
        if transfer.form == "down":
            words = self.l2bm[:, :, transfer.source + source["addr"]]
            at = transfer.destination + destination["addr"]
            self.l1bm[:, :, destination["l1b"], at] = words
        elif transfer.form == "up":
            words = self.l1bm[:, :, source["l1b"], transfer.source + source["addr"]]
            self.l2bm[:, :, transfer.destination + destination["addr"]] = words
        elif transfer.form.startswith("to_pe"):
            words = self.l1bm[:, :, :, transfer.source + source["addr"]]
            at = transfer.destination + _local(destination, transfer.wide)
            taken = np.ones(destination["mab"].shape, bool)
            if transfer.mabs is not None:
                taken = (transfer.mabs >> destination["mab"] & 1).astype(bool)
            unit = destination["mab"][taken], destination["pe"][taken]
            self.lm[:, :, :, *unit, at[taken]] = words[..., taken]
        else:
            at = transfer.source + _local(source, transfer.wide)
            words = self.lm[:, :, :, source["mab"], source["pe"], at]
            self.l1bm[:, :, :, transfer.destination + destination["addr"]] = words

    def _move(self, transfer: Transfer, parameters: dict[str, int]) -> None:
        found = self.target.transfer(transfer.mnemonic, transfer.form, **parameters)
        source, destination = found.source, found.destination
        down = transfer.form.startswith("dram")
        strides = found.strides or (transfer.words, transfer.words)
        # An MV's size counts long words of L2BM.
        count = transfer.words // strides[1 if down else 0]
        blocks = np.arange(count, dtype=np.int64)[:, None]
        start = transfer.source + source["addr"] + blocks * strides[0]
        at = transfer.destination + destination["addr"] + blocks * strides[1]
        if down:
            words = self.dram[source["group"], start]
            self.l2bm[destination["group"], destination["l2b"], at] = words
        else:
            words = self.l2bm[source["group"], source["l2b"], start]
            self.dram[destination["group"], at] = words


def _local(side: Mapping[str, IntArray], wide: bool) -> IntArray:
    """Return the long word of LM, counted from the first, of every moved word."""
    return side["cycle"] * LONGS_PER_WIDE + side["half"] if wide else side["cycle"]
