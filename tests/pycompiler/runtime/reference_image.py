"""The slow, plain way to a DRAM image: all units follow all transfers, and all copies count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import numpy as np

from pycompiler.graph import Layout, Level, MNDtype
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.graph.verify import layout_ranges
from pycompiler.layers.dram_transfer_plan import Run, Transfer, TransferPlan, plan_transfer
from pycompiler.machine import LONGS_PER_WIDE, IntArray, Target


def held(
    layout: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> dict[tuple[int, int, int], set[int]]:
    """Return the elements that each word of DRAM stands for: by group, long word, word."""
    plan = plan_transfer(layout, target)
    sources = lm_words(plan)
    ranges = {**layout_ranges(target), Level.W: dtype.words_per_long, Level.TIME: 1, Level.ADDR: 1}
    copies = [c for c in layout.copies(ranges) if c.level in (*UNIT_LEVELS, Level.W)]
    digits = [[(c.level, k * c.stride) for k in range(c.size)] for c in copies]
    used = any(sub.size > 1 for sub in layout.on(Level.W)) or any(
        copy.level is Level.W for copy in copies
    )
    out: dict[tuple[int, int, int], set[int]] = {}
    for element, index in enumerate(np.ndindex(*shape)):
        own = {Level.TIME: 0, Level.ADDR: 0, Level.W: 0, **dict.fromkeys(UNIT_LEVELS, 0)}
        own |= {lv: int(at) for lv, at in layout.coordinates(*map(np.int64, index)).items()}
        for moved in product(*digits):
            at = dict(own)
            for level, step in moved:
                at[level] += step
            group, l2b = divmod(at[Level.L2B], target.l2bs_per_group)
            unit = group, l2b, at[Level.L1B], at[Level.MAB], at[Level.PE], at[Level.ADDR]
            above, word = divmod(int(sources[unit]), plan.dram_words)
            word += at[Level.TIME] * plan.dram_words
            for part in [at[Level.W]] if used else range(dtype.words_per_long):
                out.setdefault((above, word, part), set()).add(element)
    return out


def lm_words(plan: TransferPlan) -> IntArray:
    """Return where every long word of LM comes from: ``group * dram_words + address``.

    Shape: units from group to PE, then the rows of the layout. The words behind them, which only
    make vectors full, come from nowhere. The upload must bring each word back to its place.
    """
    target = plan.target
    groups = target.groups
    dram = np.arange(groups * plan.dram_words, dtype=np.int64).reshape(groups, plan.dram_words)
    memories = _Memories(target, dram, plan.num_lw)
    for chunk in plan.chunks:
        for transfer in (*plan.moves_down(chunk, 0), *_each(plan.steps_down(chunk, 0))):
            memories.run(transfer)
    lm = memories.lm.copy()
    back = _Memories(target, np.full_like(dram, -1), plan.num_lw)
    back.lm = lm
    for chunk in plan.chunks:
        for transfer in (*_each(plan.steps_up(chunk, 0)), *plan.moves_up(chunk, 0)):
            back.run(transfer)
    lm = lm[..., : plan.layout.num_lw(1)]
    used = np.unique(lm)
    assert used[0] >= 0
    assert (back.dram.reshape(-1)[used] == used).all()
    return lm


def _each(runs: Iterable[Run]) -> Iterator[Transfer]:
    return (run.step(number) for run in runs for number in range(run.times))


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
