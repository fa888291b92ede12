"""MNCoreStore: the new row of a value that stays in DRAM, written by address.

The machine writes DRAM through its address registers (DAR) as it reads it. The new value is in LM
as a whole. A row is what an axis has at one place: if the axis has digits in Addr, the row begins
at an address that depends on the place. Other digits of the axis are on units, so other rows have
the same addresses there. Only windows of addresses that hold the row go up, and into the words of
the old value; each is as long as a run of entries that the PEs of a MAB compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np

from ..code.lines import (
    BlockOperand,
    Literal,
    Move,
    Operand,
    PeOperand,
    Step,
    alu_step,
    single_step,
)
from ..code.nest import Nest, stages, whole_runs
from ..cost.sequence import waiting_steps
from ..graph.digits import parts
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import UNIT_LEVELS, Broadcast, Layout, Level
from ..machine import WORDS_PER_LONG, IntArray, Target
from ..pfvm.device_functions import STORE
from .base import Cut, Frame, Layer, Placement, layout_of, other_layouts
from .data_movement import MOVED
from .dram_transfer import uploaded
from .dram_transfer_plan import TransferPlan, plan_transfer
from .lookup.code import BEFORE, NOWHERE, WORK, entries, entry_offsets, registers
from .lookup.rows import entries_per_word
from .scratch import vector

_EVERYWHERE = Layout(((),), tuple(Broadcast(level) for level in (Level.W, *UNIT_LEVELS)))


#: A number that depends on the place. For each (bit, mask, factor), the place is shifted right by
#: ``bit``, and of that the bits of ``mask`` count ``factor`` times. The number behind is the most.
_Place = tuple[list[tuple[int, int, int]], int]


class _Windows(NamedTuple):
    """The windows of a row, of ``length`` addresses each.

    ``starts`` are their first addresses at place 0, ``word`` the words that the place adds.
    ``blocks`` are their first blocks in the value's words of DRAM at place 0, for each L2B of a
    group that sends, ``block`` what the place adds. An address has ``low`` long words in L1BM.
    """

    transfer: TransferPlan
    length: int
    starts: list[int]
    word: _Place
    blocks: list[list[int]]
    block: _Place
    low: int
    each: int


class Store(Layer):
    """The new value, of which only a row along ``axis`` differs from the old one."""

    op = STORE
    dtypes = MOVED
    attributes = frozenset({"axis"})
    in_dram = frozenset({0})

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Return a frame with the axes of the value."""
        shape = graph.values[node.inputs[0]].shape
        own = tuple(range(len(shape)))
        axes = (own, (None,), own, own)
        return Frame(shape, tuple(zip((*node.inputs, *node.outputs), axes, strict=True)))

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield all axes but the one along which a row is written."""
        return (cut for cut in super().cuts(node, graph) if cut.axes[0][1] != _axis(node))

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Read the new value in LM0, where the T register reaches it; leave the old one in DRAM."""
        banks = Location.DRAM, Location.LM1, Location.LM0
        return Placement(banks, (Location.DRAM,), mirrors=False)

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield wrong memories, different layouts, and a place that not all PEs have."""
        old, place, new, made = (graph.values[name] for name in (*node.inputs, *node.outputs))
        if (old.location, new.location) != (Location.DRAM, Location.LM0):
            yield "an old value outside of DRAM, or a new one outside of LM0"
        if not old.layout == new.layout == made.layout:
            yield f"`{old.name}` and `{new.name}` in different layouts"
        yield from other_layouts({place.name: _EVERYWHERE}, graph, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code that writes the row alone or, if that takes no more steps, all."""
        return _chosen(node, graph, target)[1]


def written_whole(graph: MNGraph, target: Target) -> dict[str, str]:
    """Return why new values are written as a whole, by old value."""
    stores = [node for node in graph.device_nodes() if node.op == STORE]
    whole = [node.inputs[0] for node in stores if not _chosen(node, graph, target)[0]]
    return dict.fromkeys(whole, "in its layout, its new row alone would take as many cycles")


def _axis(node: MNNode) -> int:
    return int(str(dict(node.attributes)["axis"]))


def _chosen(node: MNNode, graph: MNGraph, target: Target) -> tuple[bool, Nest]:
    """Return the code with the fewest steps, and whether that writes the row alone."""
    old, _, new = (graph.values[name] for name in node.inputs)
    ways: list[tuple[bool, Nest]] = [(False, list(uploaded(new, old, target)))]
    windows = _windows(layout_of(new), new.shape, _axis(node), target)
    if windows is not None:
        ways.append((True, list(_code(node, graph, windows, target))))
    return min(ways, key=lambda way: waiting_steps(stages(way[1], target), target))


@lru_cache(maxsize=1024)
def _windows(layout: Layout, shape: tuple[int, ...], axis: int, target: Target) -> _Windows | None:
    """Return the windows; None if the value is too small, or they depend on more than bits."""
    plan, block = plan_transfer(layout, target), target.mv_block
    if plan.across or plan.to_pe.turns * plan.to_l1.turns > 1 or layout.slices > 1:
        return None
    low = target.transfer(plan.to_pe.mnemonic, "to_pe").source_words // target.cycles
    above = target.transfer(plan.to_l1.mnemonic, "down")
    each = low * above.source_words // above.destination_words
    step, count = (lcm(each, n) // each for n in (block, block * entries_per_word(target)))
    first, rest = _addresses(layout, shape, axis)
    start = first // step * step
    starts: list[int] = []
    for at in np.unique(np.unique(first - start)[:, None] + rest).tolist():
        if not starts or at >= starts[-1] + count:
            starts.append(at // step * step)
    # The first block of each address, for each L2B of a group that sends.
    found = [np.arange(c.l2_words // each) * each + np.array(c.dram)[:, None] for c in plan.chunks]
    blocks = np.concatenate(found, axis=1) // block
    # The windows of the last rows may not reach beyond the value: they begin earlier.
    span = starts[-1] + count
    most = min(int(start.max()), blocks.shape[1] - span)
    room = min(target.dar_entries * block, target.words("l2bm") - target.dar_rows)
    apart = most < start.max() and span > len(starts) * count
    if most < 0 or most % step or apart or len(blocks) * len(starts) * count * each > room:
        return None
    begin = np.minimum(start, most)[:, None] + starts
    at, ends = blocks[:, begin], blocks[:, begin + count - 1]
    word, place = _bits(begin[:, 0] * WORDS_PER_LONG), _bits(at[0, :, 0])
    straight = (ends - at == (count - 1) * each // block).all()
    if not straight or (at - at[:1, :, :1] != at[:, :1]).any() or word is None or place is None:
        return None
    return _Windows(plan, count, starts, word, at[:, 0].tolist(), place, low, each)


def _addresses(layout: Layout, shape: tuple[int, ...], axis: int) -> tuple[IntArray, IntArray]:
    """Return the address that each place adds, and the addresses of the row at place 0."""
    places, rest = np.arange(shape[axis]), np.zeros(1, np.int64)
    first = np.zeros_like(places)
    for number, found in enumerate(parts(layout, shape)):
        for part in (part for part in found if part.level is Level.ADDR):
            if number == axis:
                first += places // part.lo % part.size * part.stride
            else:
                rest = (rest[:, None] + np.arange(part.size) * part.stride).reshape(-1)
    return first, rest


def _bits(values: IntArray) -> _Place | None:
    """Return ``values`` by place as a sum over bits of the place; None if they are no such sum."""
    places, total, terms = np.arange(len(values)), 0 * values, list[tuple[int, int, int]]()
    for bit in range((len(values) - 1).bit_length()):
        factor = int(values[1 << bit])
        total = total + (places >> bit & 1) * factor
        if terms and factor == terms[-1][2] << bit - terms[-1][0]:
            terms[-1] = (terms[-1][0], terms[-1][1] * 2 + 1, terms[-1][2])
        elif factor:
            terms.append((bit, 1, factor))
    most = int(values.max())
    return (terms, most) if (np.minimum(total, most) == values).all() else None


def _code(node: MNNode, graph: MNGraph, windows: _Windows, target: Target) -> Nest:
    old, place, new = (graph.values[name] for name in node.inputs)
    cycles, plan, low, block = target.cycles, windows.transfer, windows.low, target.mv_block
    asked, added = (vector(WORK, (at,) * cycles) for at in range(2))
    width = target.words("t") // cycles
    register = PeOperand("t", tuple(width * cycle for cycle in range(cycles)))
    yield from _by("uimin", vector(place, (0,) * cycles), old.shape[_axis(node)] - 1, asked)
    yield from _computed(windows.word, asked, register, target)
    yield from _computed(windows.block, asked, added, target)
    up = "l1bmm@0" if plan.to_pe.mnemonic == "l1bmm" else plan.to_pe.mnemonic
    rows = [start + at for start in windows.starts for at in range(windows.length)]
    for number, now in enumerate(whole_runs(rows, cycles)):
        source = PeOperand("lm0", tuple(now), new.name, indirect=True)
        goal = BlockOperand("l1bm", number * cycles * low, cycles * low)
        yield single_step("l1bm", up, (source,), goal)
    above = target.transfer(plan.to_l1.mnemonic, "down")
    way = "l2bm@0" if plan.to_l1.mnemonic == "l2bmb" else plan.to_l1.mnemonic
    for number in range(-(-len(rows) * low // above.destination_words)):
        sent = BlockOperand("l1bm", number * above.destination_words, above.destination_words)
        at = target.dar_rows + number * above.source_words
        yield single_step("l2bm", way, (sent,), BlockOperand("l2bm", at, above.source_words))
    each = windows.length * windows.each // block
    runs = range(0, each, entries_per_word(target))
    offsets = [first + run for own in windows.blocks for first in own for run in runs]
    yield from entry_offsets(old.name, offsets, 0, target)
    yield from entries([(added.offsets[0], at) for at in range(len(offsets))], cycles, target)
    count = len(windows.starts) * each
    yield from registers(count * len(windows.blocks), 1, target)
    for l2b in range(len(windows.blocks)):
        own = BlockOperand("dram", 0, plan.dram_words, old.name, entries=(l2b * count, count))
        sent = BlockOperand("l2bm", target.dar_rows, count * block, l2b=l2b)
        yield Move("mvp", count * block, sent, own)


def _computed(form: _Place, place: PeOperand, goal: PeOperand, target: Target) -> Iterator[Step]:
    """Yield the steps that compute what depends on the place."""
    part, total = (vector(WORK, (at,) * target.cycles) for at in (2, 3))
    yield alu_step("imm", (Literal(0),), total)
    terms, most = form
    for bit, mask, factor in terms:
        yield from _by("uilsr", place, bit, part)
        yield from _by("iand", part, mask, part)
        for shift in (one for one in range(factor.bit_length()) if factor >> one & 1):
            yield from _by("ilsl", part, shift, NOWHERE)
            yield alu_step("iadd", (BEFORE, total), total)
    yield from _by("uimin", total, most, goal)


def _by(mnemonic: str, source: PeOperand, number: int, goal: Operand) -> Iterator[Step]:
    yield alu_step("imm", (Literal(number),), NOWHERE)
    yield alu_step(mnemonic, (source, BEFORE), goal)


LAYERS: tuple[Layer, ...] = (Store(),)
