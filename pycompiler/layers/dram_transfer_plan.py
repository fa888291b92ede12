"""How a value travels between DRAM and LM, and the order of its long words in DRAM.

The layout decides the instructions: :mod:`.dram_transfer_ways` chooses them, and the copies that
DRAM need not hold. The plan lists the transfers with their addresses. The order in DRAM is not
written down anywhere. It follows from the index maps of the download, word by word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import Literal

import numpy as np

from ..errors import PycompilerError, error
from ..graph.layout import Layout, Level
from ..machine import LONGS_PER_WIDE, IntArray, Target, TransferMap
from .dram_transfer_ways import Way, legal_set, members, ways_to_l1bs, ways_to_pes

Stage = Literal["mv", "l2bm", "l1bm"]


@dataclass(frozen=True)
class Transfer:
    """One transfer instruction of a plan.

    ``source`` and ``destination`` are the first long words in the memories of the stage: DRAM
    and L2BM, L2BM and L1BM, L1BM and the LM share, in the direction of ``mnemonic`` and ``form``.
    ``suffix`` follows the mnemonic in the text (``@0``). ``words`` is the size of an MV. ``wide``
    transfers move two long words per PE and cycle. ``mabs`` are the MABs that take the words, bit u
    for MAB u; None is all.
    """

    stage: Stage
    mnemonic: str
    form: str
    source: int
    destination: int
    parameters: tuple[tuple[str, int], ...] = ()
    suffix: str = ""
    words: int = 0
    wide: bool = False
    mabs: int | None = None


@dataclass(frozen=True)
class Chunk:
    """A part of a value small enough for L1BM and one buffer of L2BM.

    ``lm`` and ``lm_steps``: first long word and steps of the LM share; ``l1_words``: long words
    of each L1BM; ``l2_words``: of each L2BM; ``dram``: where each L2B's part starts in the value's
    DRAM words.
    """

    lm: int
    lm_steps: int
    l1_words: int
    l2_words: int
    dram: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TransferPlan:
    """The transfers of one layout on one machine.

    ``dram_words`` is the number of long words of DRAM per group. L2BM is divided into ``buffers``
    buffers. The arguments ``l2`` of methods are the long word of L2BM where the buffer of a chunk
    starts.
    """

    target: Target
    layout: Layout
    num_lw: int
    to_pe: Way
    to_l1: Way
    chunks: tuple[Chunk, ...]
    dram_words: int
    buffers: int

    def buffer(self, down: bool, turn: int) -> int:
        """Return where buffer ``turn`` (any number) of L2BM starts for downloads or uploads.

        Downloads use the first half of the buffers, uploads the other half. A single buffer serves
        both.
        """
        if self.buffers == 1:
            return 0
        half = self.buffers // 2
        return ((0 if down else half) + turn % half) * _buffer_words(self.target, self.buffers)

    @property
    def shared_l2b(self) -> bool:
        """Whether the L2Bs of a group hold the same data."""
        return len(self.chunks[0].dram) == 1

    def moves_down(self, chunk: Chunk, l2: int) -> Iterator[Transfer]:
        """Yield the moves from DRAM to L2BM: one if the L2Bs of a group hold the same data."""
        if self.shared_l2b and self.target.l2bs_per_group > 1:
            start = chunk.dram[0]
            yield Transfer("mv", "mvb2", "dram_to_l2bm", start, l2, words=chunk.l2_words)
            return
        for l2b in range(self.target.l2bs_per_group):
            start = chunk.dram[l2b % len(chunk.dram)]
            yield _mv("dram_to_l2bm_parallel", start, l2, "dst_l2b", l2b, chunk.l2_words)

    @property
    def transfer_steps(self) -> int:
        """The steps between L2BM and LM in one direction, without those that make masks."""
        return sum(
            len(list(self._parts(chunk))) + len(list(self._pieces(chunk, 0)))
            for chunk in self.chunks
        )

    def steps_down(self, chunk: Chunk, l2: int) -> Iterator[Transfer]:
        """Yield the steps from L2BM to L1BM and on to LM."""
        for at, l1, l1bs in self._pieces(chunk, l2):
            if l1bs is None:
                yield Transfer("l2bm", self.to_l1.mnemonic, "down", at, l1)
            else:
                suffix = "@" + ",".join(map(str, members(l1bs)))
                parameters = legal_set(l1bs, self.target)
                yield Transfer("l2bm", self.to_l1.mnemonic, "down", at, l1, parameters, suffix)
        for lm, l1, wide, mabs in self._parts(chunk):
            form = "to_pe_2" if wide else "to_pe"
            yield Transfer("l1bm", self.to_pe.mnemonic, form, l1, lm, wide=wide, mabs=mabs)

    def steps_up(self, chunk: Chunk, l2: int) -> Iterator[Transfer]:
        """Yield the steps from LM to L1BM and on to L2BM: the mirror of :meth:`steps_down`.

        Where units hold copies, the first unit sends.
        """
        one_mab = self.to_pe.mnemonic == "l1bmm"
        for lm, l1, wide, mabs in self._parts(chunk):
            first = 0 if mabs is None else members(mabs)[0]
            chosen = (("mab_number", first),) if one_mab else ()
            suffix = f"@{first}" if one_mab else ""
            form = "from_pe_2" if wide else "from_pe"
            yield Transfer("l1bm", self.to_pe.mnemonic, form, lm, l1, chosen, suffix, wide=wide)
        for at, l1, l1bs in self._pieces(chunk, l2):
            if self.to_l1.mnemonic == "l2bmb":
                first = 0 if l1bs is None else members(l1bs)[0]
                yield Transfer("l2bm", "l2bm", "up", l1, at, (("l1b_number", first),), f"@{first}")
            else:
                yield Transfer("l2bm", self.to_l1.mnemonic, "up", l1, at)

    def _pieces(self, chunk: Chunk, l2: int) -> Iterator[tuple[int, int, int | None]]:
        """Yield the long word of L2BM, that of L1BM and the L1Bs of each step between the two."""
        l1_map = self.target.transfer(self.to_l1.mnemonic, "down")
        pieces = chunk.l1_words // l1_map.destination_words
        for turn, l1bs in enumerate(self.to_l1.sets or (None,)):
            for piece in range(pieces):
                at = l2 + (turn * pieces + piece) * l1_map.source_words
                yield at, piece * l1_map.destination_words, l1bs

    def _parts(self, chunk: Chunk) -> Iterator[tuple[int, int, bool, int | None]]:
        """Yield the long word of LM and of L1BM, the width and the MABs of each step between."""
        cycles = self.target.cycles
        width = self.target.transfer(self.to_pe.mnemonic, "to_pe").source_words
        l1 = 0
        for mabs in self.to_pe.sets or (None,):
            step = 0
            while step < chunk.lm_steps:
                wide = self.to_pe.wide and step + LONGS_PER_WIDE <= chunk.lm_steps
                yield chunk.lm + step * cycles, l1, wide, mabs
                taken = LONGS_PER_WIDE if wide else 1
                step += taken
                l1 += taken * width

    def moves_up(self, chunk: Chunk, l2: int) -> Iterator[Transfer]:
        """Yield the moves from L2BM to DRAM."""
        for l2b, start in enumerate(chunk.dram):
            yield _mv("l2bm_to_dram_parallel", l2, start, "src_l2b", l2b, chunk.l2_words)

    def lm_words(self) -> IntArray:
        """Return where every long word of LM comes from: ``group * dram_words + address``.

        Shape: units from group to PE, then ``num_lw``. P0402 if the upload does not bring a long
        word back to the place that it came from.
        """
        return _lm_words(self)

    def lm_words_of_l1b(self) -> IntArray:
        """Return the first address in DRAM of every long word of an L1B's LM, if all hold the same.

        Shape: MABs, PEs, ``num_lw``. Chunks of one size bring their words in one order.
        """
        counts = self.target.counts
        out = np.empty((counts["mab"], counts["pe"], self.num_lw), dtype=np.int64)
        orders: dict[int, IntArray] = {}
        for chunk in self.chunks:
            words = chunk.lm_steps * self.target.cycles
            if words not in orders:
                alone = replace(chunk, lm=0, dram=(0,))
                size = chunk.l2_words
                orders[words] = replace(
                    self, num_lw=words, chunks=(alone,), dram_words=size
                ).lm_words()[0, 0, 0]
            out[..., chunk.lm : chunk.lm + words] = orders[words] + chunk.dram[0]
        return out


def _mv(form: str, source: int, destination: int, name: str, l2b: int, words: int) -> Transfer:
    return Transfer("mv", "mvp", form, source, destination, ((name, l2b),), f"@.{l2b}", words)


@lru_cache(maxsize=4096)
def plan_transfer(layout: Layout, target: Target) -> TransferPlan:
    """Return the plan for values of ``layout``, or for one time slice of them.

    P0606 if the machine's L1BM or L2BM is too small for one step of the transfer.
    """
    layout = layout.slice
    num_lw = layout.num_lw(target.cycles)
    per_group = target.l2bs_per_group
    apart = any(s.size > 1 and s.stride % per_group for s in layout.on(Level.L2B))
    parts = per_group if apart else 1
    plans: list[TransferPlan] = []
    problem: PycompilerError | None = None
    for to_pe in ways_to_pes(layout, target):
        for to_l1 in ways_to_l1bs(layout, target):
            try:
                plans.append(_plan(layout, num_lw, to_pe, to_l1, parts, target))
            except PycompilerError as found:
                problem = problem or found
    if not plans:
        assert problem is not None
        raise problem
    return min(plans, key=_slowest)


def _plan(
    layout: Layout, num_lw: int, to_pe: Way, to_l1: Way, parts: int, target: Target
) -> TransferPlan:
    buffers = _buffers(target, to_pe, to_l1)
    most = _steps_per_chunk(target, to_pe, to_l1, buffers)
    chunks: list[Chunk] = []
    dram, steps = 0, num_lw // target.cycles
    for first in range(0, steps, most):
        count = min(most, steps - first)
        l1_words, l2_words = _words_of_steps(count, target, to_pe, to_l1)
        starts = tuple(dram + part * l2_words for part in range(parts))
        chunks.append(Chunk(first * target.cycles, count, l1_words, l2_words, starts))
        dram += parts * l2_words
    return TransferPlan(target, layout, num_lw, to_pe, to_l1, tuple(chunks), dram, buffers)


def _slowest(plan: TransferPlan) -> tuple[int, int]:
    """Return the steps of the busiest stage, then the steps of all stages: MV, L2BM and L1BM."""
    target = plan.target
    mv = plan.dram_words // (target.mv_block * target.cycles)
    l2bm = sum(len(list(plan._pieces(chunk, 0))) for chunk in plan.chunks)
    l1bm = sum(len(list(plan._parts(chunk))) for chunk in plan.chunks)
    return max(mv, l2bm, l1bm), mv + l2bm + l1bm


def dram_words(layout: Layout, target: Target) -> int:
    """Return the long words per group that a value of ``layout`` takes with all time slices."""
    return layout.slices * plan_transfer(layout, target).dram_words


#: Buffers of L2BM for each direction: one is filled while the other is emptied.
BUFFERS = 2


def _buffer_words(target: Target, buffers: int) -> int:
    unit = lcm(target.mv_unit, target.l2bm_row)
    return target.words("l2bm") // buffers // unit * unit


def _buffers(target: Target, to_pe: Way, to_l1: Way) -> int:
    """Find the most buffers of L2BM of which each has room for one step.

    Both directions have :data:`BUFFERS` buffers, or one, or they share one. P0606 if L2BM or L1BM
    has no room for a step.
    """
    l1_words, l2_words = _words_of_steps(1, target, to_pe, to_l1)
    capacity = target.words("l1bm")
    if l1_words > capacity:
        raise _too_small(target, f"{l1_words} long words of l1bm, which has {capacity}")
    for buffers in (2 * BUFFERS, 2, 1):
        capacity = _buffer_words(target, buffers)
        if l2_words <= capacity:
            return buffers
    raise _too_small(target, f"{l2_words} long words of l2bm, a buffer has {capacity}")


def _too_small(target: Target, reason: str) -> PycompilerError:
    return error("P0606", spec=target.name, reason=f"a transfer of one step needs {reason}")


def _words_of_steps(count: int, target: Target, to_pe: Way, to_l1: Way) -> tuple[int, int]:
    """Return the long words of L1BM and of L2BM that ``count`` LM steps take."""
    pe_map, l1_map = _maps(target, to_pe, to_l1)
    l1_words = _round_up(count * to_pe.turns * pe_map.source_words, l1_map.destination_words)
    l2_words = l1_words // l1_map.destination_words * to_l1.turns * l1_map.source_words
    return l1_words, _round_up(l2_words, target.mv_unit)


def _maps(target: Target, to_pe: Way, to_l1: Way) -> tuple[TransferMap, TransferMap]:
    return target.transfer(to_pe.mnemonic, "to_pe"), target.transfer(to_l1.mnemonic, "down")


def _round_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _steps_per_chunk(target: Target, to_pe: Way, to_l1: Way, buffers: int) -> int:
    """Find the most LM steps whose words fit L1BM and a buffer of L2BM; one always fits."""
    pe_map, l1_map = _maps(target, to_pe, to_l1)
    by_l1 = target.words("l1bm") // l1_map.destination_words
    piece = _round_up(to_l1.turns * l1_map.source_words, target.mv_unit)
    words = min(by_l1, _buffer_words(target, buffers) // piece) * l1_map.destination_words
    step = to_pe.turns * pe_map.source_words
    whole = lcm(l1_map.destination_words, step)
    return max(1, words // whole * whole // step)


def _lm_words(plan: TransferPlan) -> IntArray:
    """Follow word numbers through the download, and back through the upload."""
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
        blocks = np.arange(transfer.words // self.target.mv_unit, dtype=np.int64)[:, None]
        strides = found.strides or (0, 0)
        start = transfer.source + source["addr"] + blocks * strides[0]
        at = transfer.destination + destination["addr"] + blocks * strides[1]
        if transfer.form.startswith("dram"):
            words = self.dram[source["group"], start]
            self.l2bm[destination["group"], destination["l2b"], at] = words
        else:
            words = self.l2bm[source["group"], source["l2b"], start]
            self.dram[destination["group"], at] = words


def _local(side: Mapping[str, IntArray], wide: bool) -> IntArray:
    """Return the long word of LM, counted from the first, of every moved word."""
    return side["cycle"] * LONGS_PER_WIDE + side["half"] if wide else side["cycle"]
