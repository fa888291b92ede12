"""How a value travels between DRAM and LM, and the order of its long words in DRAM.

The layout decides the instructions: :mod:`.dram_transfer_instructions` chooses them, and the copies
that DRAM need not hold. The plan lists the transfers with their addresses. The order in DRAM is not
written down anywhere; :mod:`.dram_transfer_order` follows it, word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import ceil, lcm
from typing import Literal, NamedTuple

from ..cost.moves import rate
from ..errors import PycompilerError, error
from ..graph.layout import Layout, Level
from ..machine import LONGS_PER_WIDE, IntArray, Target, TransferMap
from .dram_transfer_instructions import (
    StageInstruction,
    instructions_to_l1bs,
    instructions_to_pes,
    legal_set,
    members,
    same_in_all_groups,
)

Stage = Literal["mv", "l2bm", "l1bm"]


class Transfer(NamedTuple):
    """One transfer instruction of a plan.

    ``source`` and ``destination`` are the first long words in the memories of the stage: DRAM
    and L2BM, L2BM and L1BM, L1BM and the LM share, in the direction of ``mnemonic`` and ``form``.
    ``suffix`` follows the mnemonic in the text (``@0``). ``words`` is the size of an MV, in long
    words of L2BM; each DRAM gives or takes ``dram_words``. ``wide`` transfers move two long words
    per PE and cycle. ``mabs`` are the MABs that take the words, bit u
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
    dram_words: int = 0


class Chunk(NamedTuple):
    """A part of a value small enough for L1BM and one buffer of L2BM.

    ``lm`` and ``lm_steps``: first long word and steps of the LM share; ``l1_words``: long words
    of each L1BM; ``l1_filled``: so many of them pass through L2BM, and nobody needs the others;
    ``l2_words``: of each L2BM; ``dram``: where each L2B's part starts in the value's DRAM words.
    """

    lm: int
    lm_steps: int
    l1_words: int
    l1_filled: int
    l2_words: int
    dram: tuple[int, ...]


class Run(NamedTuple):
    """Steps of one stage and one width, for the same MABs; ``step(i)`` is the one of number i."""

    times: int
    mabs: int | None
    step: Callable[[int], Transfer]


@dataclass(frozen=True, eq=False)
class TransferPlan:
    """The transfers of one layout on one machine.

    ``dram_words`` is the number of long words of DRAM per group. ``across``: the groups hold
    copies, so each DRAM has a part of the words, and MVs across the groups bring them to all. L2BM
    is divided into ``buffers`` buffers. The arguments ``l2`` of methods are the long word of L2BM
    where the buffer of a chunk starts.
    """

    target: Target
    layout: Layout
    num_lw: int
    to_pe: StageInstruction
    to_l1: StageInstruction
    chunks: tuple[Chunk, ...]
    dram_words: int
    buffers: int
    across: bool

    @cached_property
    def kind(self) -> Hashable:
        """All that decides what the transfer takes: plans of one kind differ in addresses only."""
        sizes = [(c.lm_steps, c.l1_filled, c.l2_words, len(c.dram)) for c in self.chunks]
        return self.to_pe, self.to_l1, self.across, tuple(sizes)

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
    def mv_words(self) -> int:
        """The long words that the MVs of a download bring past the port of one group's DRAM.

        An MV across the groups takes as long as one that brings all words from the own DRAM.
        """
        parts = 1 if self.across else len(self.chunks[0].dram)
        return sum(parts * chunk.l2_words for chunk in self.chunks)

    @cached_property
    def mv_cycles(self) -> int:
        """The cycles for which the MVs of a download hold the DRAM of a group."""
        return sum(
            ceil(move.words / rate(self.target, move.mnemonic, move.form, **dict(move.parameters)))
            for chunk in self.chunks
            for move in self.moves_down(chunk, 0)
        )

    def moves_down(self, chunk: Chunk, l2: int) -> Iterator[Transfer]:
        """Yield the moves from DRAM to L2BM: one if L2Bs hold the same data."""
        per_group, words, start = self.target.l2bs_per_group, chunk.l2_words, chunk.dram[0]
        if self.across:
            size = _part_of_dram(words, self.target)
            yield Transfer("mv", "mvb4", "dram_to_l2bm", start, l2, words=words, dram_words=size)
        elif len(chunk.dram) == 1 and per_group > 1:
            yield Transfer("mv", "mvb2", "dram_to_l2bm", start, l2, words=words, dram_words=words)
        else:
            for l2b, start in enumerate(chunk.dram):
                yield _mv("dram_to_l2bm_parallel", start, l2, "dst_l2b", l2b, words)

    def steps_down(self, chunk: Chunk, l2: int) -> Iterator[Run]:
        """Yield the steps from L2BM to L1BM and on to LM."""
        yield Run(self._pieces(chunk), None, partial(self._piece_down, chunk, l2))
        for times, mabs, wide, at in self._parts(chunk):
            yield Run(times, mabs, partial(self._part_down, mabs, wide, at))

    def steps_up(self, chunk: Chunk, l2: int) -> Iterator[Run]:
        """Yield the steps from LM to L1BM and on to L2BM: the mirror of :meth:`steps_down`.

        Where units hold copies, the first unit sends.
        """
        for times, mabs, wide, at in self._parts(chunk):
            yield Run(times, None, partial(self._part_up, mabs, wide, at))
        yield Run(self._pieces(chunk), None, partial(self._piece_up, chunk, l2))

    def _piece_down(self, chunk: Chunk, l2: int, number: int) -> Transfer:
        at, l1, l1bs = self._piece(chunk, l2, number)
        if l1bs is None:
            return Transfer("l2bm", self.to_l1.mnemonic, "down", at, l1)
        suffix = "@" + ",".join(map(str, members(l1bs)))
        parameters = legal_set(l1bs, self.target)
        return Transfer("l2bm", self.to_l1.mnemonic, "down", at, l1, parameters, suffix)

    def _piece_up(self, chunk: Chunk, l2: int, number: int) -> Transfer:
        at, l1, l1bs = self._piece(chunk, l2, number)
        if self.to_l1.mnemonic != "l2bmb":
            return Transfer("l2bm", self.to_l1.mnemonic, "up", l1, at)
        first = 0 if l1bs is None else members(l1bs)[0]
        return Transfer("l2bm", "l2bm", "up", l1, at, (("l1b_number", first),), f"@{first}")

    def _part_down(self, mabs: int | None, wide: bool, at: _Places, number: int) -> Transfer:
        l1, lm = at(number)
        form = "to_pe_2" if wide else "to_pe"
        return Transfer("l1bm", self.to_pe.mnemonic, form, l1, lm, wide=wide, mabs=mabs)

    def _part_up(self, mabs: int | None, wide: bool, at: _Places, number: int) -> Transfer:
        l1, lm = at(number)
        first = 0 if mabs is None else members(mabs)[0]
        own, form = self.to_pe.mnemonic, "from_pe_2" if wide else "from_pe"
        one_mab = (("mab_number", first),), f"@{first}"
        chosen, suffix = one_mab if own == "l1bmm" else ((), "")
        return Transfer("l1bm", own, form, lm, l1, chosen, suffix, wide=wide)

    def _pieces(self, chunk: Chunk) -> int:
        """Return the number of steps between L2BM and L1BM."""
        l1_map = self.target.transfer(self.to_l1.mnemonic, "down")
        return self.to_l1.turns * (chunk.l1_filled // l1_map.destination_words)

    def _piece(self, chunk: Chunk, l2: int, number: int) -> tuple[int, int, int | None]:
        """Return the long word of L2BM, that of L1BM and the L1Bs of a step between the two."""
        l1_map = self.target.transfer(self.to_l1.mnemonic, "down")
        turn, piece = divmod(number, chunk.l1_filled // l1_map.destination_words)
        l1bs = self.to_l1.sets[turn] if self.to_l1.sets else None
        return l2 + number * l1_map.source_words, piece * l1_map.destination_words, l1bs

    def _parts(self, chunk: Chunk) -> Iterator[tuple[int, int | None, bool, _Places]]:
        """Yield the steps between L1BM and LM, by MABs and width: how many, and their places."""
        cycles = self.target.cycles
        width = self.target.transfer(self.to_pe.mnemonic, "to_pe").source_words
        for turn, mabs in enumerate(self.to_pe.sets or (None,)):
            for step, times, wide in _widths(chunk.lm_steps, self.to_pe):
                first = (turn * chunk.lm_steps + step) * width, chunk.lm + step * cycles
                each = LONGS_PER_WIDE if wide else 1
                yield times, mabs, wide, partial(_place, first, (each * width, each * cycles))

    def moves_up(self, chunk: Chunk, l2: int) -> Iterator[Transfer]:
        """Yield the moves from L2BM to DRAM."""
        if self.across:
            # The groups hold the same words, and `or` of the bits of equal words gives that word.
            words, start = chunk.l2_words, chunk.dram[0]
            size = _part_of_dram(words, self.target)
            yield Transfer(
                "mv", "mvr4lbor", "l2bm_to_dram", l2, start, words=words, dram_words=size
            )
            return
        for l2b, start in enumerate(chunk.dram):
            yield _mv("l2bm_to_dram_parallel", l2, start, "src_l2b", l2b, chunk.l2_words)


def _part_of_dram(words: int, target: Target) -> int:
    """Return the long words of each DRAM in ``words`` of every L2BM, for MVs across the groups."""
    return words * target.l2bs_per_group // target.groups


def _mv(form: str, source: int, destination: int, name: str, l2b: int, words: int) -> Transfer:
    return Transfer(
        "mv", "mvp", form, source, destination, ((name, l2b),), f"@.{l2b}", words, dram_words=words
    )


@lru_cache(maxsize=4096)
def plan_transfer(layout: Layout, target: Target) -> TransferPlan:
    """Return the plan for values of ``layout``, or for one time slice of them.

    P0606 if the machine's L1BM or L2BM is too small for one step of the transfer.
    """
    layout = layout.slice
    num_lw = layout.num_lw(target.cycles)
    plans: list[TransferPlan] = []
    problem: PycompilerError | None = None
    for to_pe in instructions_to_pes(layout, target):
        for to_l1 in instructions_to_l1bs(layout, target):
            try:
                plans.append(_plan(layout, num_lw, to_pe, to_l1, target))
            except PycompilerError as found:
                problem = problem or found
    if not plans:
        assert problem is not None
        raise problem
    return min(plans, key=_slowest)


def _plan(
    layout: Layout, num_lw: int, to_pe: StageInstruction, to_l1: StageInstruction, target: Target
) -> TransferPlan:
    per_group = target.l2bs_per_group
    apart = any(s.size > 1 and s.stride % per_group for s in layout.on(Level.L2B))
    # An MV across the groups brings whole blocks from each.
    whole = target.mv_unit % (target.mv_block * target.groups) == 0
    across = apart and whole and same_in_all_groups(layout, target)
    buffers = _buffers(target, to_pe, to_l1)
    most = _steps_per_chunk(target, to_pe, to_l1, buffers)
    parts = per_group if apart and not across else 1
    chunks: list[Chunk] = []
    dram, steps = 0, num_lw // target.cycles
    for first in range(0, steps, most):
        count = min(most, steps - first)
        l1_words, _ = _words_of_steps(count, target, to_pe, to_l1)
        rows = min(layout.num_lw(1) - first * target.cycles, count * target.cycles)
        l1_filled, l2_words = _words_of_rows(rows, count, target, to_pe, to_l1)
        size = _part_of_dram(l2_words, target) if across else l2_words
        starts = tuple(dram + part * size for part in range(parts))
        chunks.append(Chunk(first * target.cycles, count, l1_words, l1_filled, l2_words, starts))
        dram += parts * size
    # Values begin at multiples of the unit; parts of MVs across the groups may be smaller.
    dram = -(-dram // target.mv_unit) * target.mv_unit
    return TransferPlan(target, layout, num_lw, to_pe, to_l1, tuple(chunks), dram, buffers, across)


def _slowest(plan: TransferPlan) -> tuple[int, int]:
    """Return the steps of the busiest stage, then the steps of all stages: MV, L2BM and L1BM."""
    target = plan.target
    mv = plan.mv_cycles // target.cycles
    l2bm = sum(plan._pieces(chunk) for chunk in plan.chunks)
    l1bm = sum(times for chunk in plan.chunks for times, *_ in plan._parts(chunk))
    return max(mv, l2bm, l1bm), mv + l2bm + l1bm


def dram_words(layout: Layout, target: Target) -> int:
    """Return the long words per group that a value of ``layout`` takes with all time slices."""
    return layout.slices * plan_transfer(layout, target).dram_words


#: Downloads beside other nodes go round in the last words of L1BM: one part in so many.
RING_SHARE = 8
#: Buffers of L2BM for each direction: one is filled while the other is emptied.
BUFFERS = 4


def _buffer_words(target: Target, buffers: int) -> int:
    unit = lcm(target.mv_unit, target.l2bm_row)
    return target.words("l2bm") // buffers // unit * unit


def _buffers(target: Target, to_pe: StageInstruction, to_l1: StageInstruction) -> int:
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


def _words_of_steps(
    count: int, target: Target, to_pe: StageInstruction, to_l1: StageInstruction
) -> tuple[int, int]:
    """Return the long words of L1BM and of L2BM that ``count`` LM steps take."""
    pe_map, l1_map = _maps(target, to_pe, to_l1)
    l1_words = _round_up(count * to_pe.turns * pe_map.source_words, l1_map.destination_words)
    l2_words = l1_words // l1_map.destination_words * to_l1.turns * l1_map.source_words
    return l1_words, _round_up(l2_words, target.mv_unit)


@lru_cache(maxsize=1024)
def _words_of_rows(
    rows: int, count: int, target: Target, to_pe: StageInstruction, to_l1: StageInstruction
) -> tuple[int, int]:
    """Return the long words of L1BM and of L2BM that pass for the first ``rows`` of LM.

    ``count`` steps bring them, and more rows if the last one is not full.
    """
    _, l1_map = _maps(target, to_pe, to_l1)
    width = target.transfer(to_pe.mnemonic, "to_pe").source_words
    last = 0
    for first, times, wide in _widths(count, to_pe):
        found = target.transfer(to_pe.mnemonic, "to_pe_2" if wide else "to_pe")
        each, local = LONGS_PER_WIDE if wide else 1, local_words(found.destination, wide)
        # The last access that brings some of the rows reads furthest.
        number = min(times - 1, ((rows - 1) // target.cycles - first) // each)
        if number >= 0:
            step = first + number * each
            needed = step * target.cycles + local < rows
            last = max(last, step * width + int(found.source["addr"][needed].max()) + 1)
    last += (to_pe.turns - 1) * count * width
    filled = _round_up(last, l1_map.destination_words)
    l2_words = filled // l1_map.destination_words * to_l1.turns * l1_map.source_words
    return filled, _round_up(l2_words, target.mv_unit)


def local_words(side: Mapping[str, IntArray], wide: bool) -> IntArray:
    """Return the long word of LM, counted from the first, of every word that an access moves."""
    return side["cycle"] * LONGS_PER_WIDE + side["half"] if wide else side["cycle"]


#: Returns the long words of L1BM and of LM of a step.
_Places = Callable[[int], tuple[int, int]]


def _place(first: tuple[int, int], more: tuple[int, int], number: int) -> tuple[int, int]:
    return first[0] + number * more[0], first[1] + number * more[1]


def _widths(count: int, to_pe: StageInstruction) -> Iterator[tuple[int, int, bool]]:
    """Yield the first LM step, the number and the width of the accesses of one set, by width."""
    wide = count // LONGS_PER_WIDE if to_pe.wide else 0
    if wide:
        yield 0, wide, True
    if narrow := count - LONGS_PER_WIDE * wide:
        yield count - narrow, narrow, False


def _maps(
    target: Target, to_pe: StageInstruction, to_l1: StageInstruction
) -> tuple[TransferMap, TransferMap]:
    return target.transfer(to_pe.mnemonic, "to_pe"), target.transfer(to_l1.mnemonic, "down")


def _round_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _steps_per_chunk(
    target: Target, to_pe: StageInstruction, to_l1: StageInstruction, buffers: int
) -> int:
    """Find the most LM steps whose words fit L1BM and a buffer of L2BM; one always fits.

    They are whole units of MVs if that is possible: then nothing lies between chunks in DRAM.
    """
    pe_map, l1_map = _maps(target, to_pe, to_l1)
    by_l1 = target.words("l1bm") // l1_map.destination_words
    piece = to_l1.turns * l1_map.source_words
    words = min(by_l1, _buffer_words(target, buffers) // piece) * l1_map.destination_words
    step = to_pe.turns * pe_map.source_words
    whole = lcm(l1_map.destination_words, step)
    units = lcm(whole, lcm(piece, target.mv_unit) // piece * l1_map.destination_words)
    whole = units if units <= words else whole
    return max(1, words // whole * whole // step)
