"""MNCoreDownload (DRAM to LM) and MNCoreUpload (LM to DRAM), the transfers of the graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

from ..code.lines import BlockOperand, Move, Operand, PeOperand, Step, single_step
from ..code.nest import Nest, Repeat, stages
from ..cost.sequence import Stage
from ..graph.graph import Location, MNGraph, MNNode, MNValue, TensorType
from ..graph.layout import Layout, Level
from ..machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from .base import Layer, Placement, SameAxes, layout_of
from .dram_transfer_plan import BUFFERS, Run, Transfer, TransferPlan, plan_transfer
from .switch.unit_masks import NUMBERS, UnitMasks

DOWNLOAD, UPLOAD = "MNCoreDownload", "MNCoreUpload"
#: The attribute that names the buffer of L2BM that a transfer begins with.
TURN = "turn"


class _TransferLayer(SameAxes):
    def __init__(self, op: str):
        self.op = op
        self.down = op == DOWNLOAD

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        banks = (Location.DRAM,), (Location.LM0,)
        return Placement(*(banks if self.down else banks[::-1]))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        dram, local = (source, result) if self.down else (result, source)
        if dram.location is not Location.DRAM:
            yield f"`{dram.name}` is not in DRAM"
        if local.location not in (Location.LM0, Location.LM1):
            yield f"`{local.name}` is not in LM"
        if (source.layout, source.dtype) != (result.layout, result.dtype):
            yield "a transfer changes neither layout nor dtype"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        plan = plan_transfer(layout_of(source), target)
        first = int(str(dict(node.attributes).get(TURN, 0)))
        return _code(plan, source, result, first, down=self.down)

    def scattered(self, node: MNNode) -> bool:
        return True


def download(layout: Layout, target: Target) -> list[Stage]:
    """Return what a download of a value in ``layout`` takes."""
    plan = plan_transfer(layout, target)
    known = _downloads(target)
    if plan.kind not in known:
        source, result = (
            MNValue("", TensorType("", ()), location=at) for at in (Location.DRAM, Location.LM0)
        )
        known[plan.kind] = stages(_code(plan, source, result, 0, down=True), target)
    return known[plan.kind]


@lru_cache(maxsize=16)
def _downloads(target: Target) -> dict[Hashable, list[Stage]]:
    """Return what downloads take, by the kind of their plans."""
    return {}


def uploaded(source: MNValue, result: MNValue, target: Target) -> Nest:
    """Yield the code of an upload."""
    return _code(plan_transfer(layout_of(source), target), source, result, 0, down=False)


def _code(plan: TransferPlan, source: MNValue, result: MNValue, first: int, *, down: bool) -> Nest:
    """Yield the code of a transfer that begins with buffer ``first``."""
    masks = UnitMasks(NUMBERS[Level.MAB], plan.target)
    steps = plan.steps_down if down else plan.steps_up
    for turn, chunk in enumerate(plan.chunks, first):
        l2 = plan.buffer(down, turn)
        if down:
            yield from (_move(plan, t, source.name) for t in plan.moves_down(chunk, l2))
        for run in steps(chunk, l2):
            making: list[Step] = []
            mask = None if run.mabs is None else masks.use(run.mabs, making)
            yield from making
            yield Repeat(run.times, partial(_step, plan, run, result if down else source, mask))
        if not down:
            yield from (_move(plan, t, result.name) for t in plan.moves_up(chunk, l2))


def take_turns(graph: MNGraph, target: Target) -> MNGraph:
    """Give every transfer its first buffer of L2BM, so that neighbours use different buffers.

    A transfer then need not wait until the one before it has emptied its buffer.
    """
    turns = {DOWNLOAD: 0, UPLOAD: 0}
    nodes: list[MNNode] = []
    for node in graph.nodes:
        if node.op in turns:
            chunks = plan_transfer(layout_of(graph.values[node.inputs[0]]), target).chunks
            node = replace(node, attributes=((TURN, turns[node.op] % BUFFERS),))
            turns[node.op] += len(chunks)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _move(plan: TransferPlan, transfer: Transfer, value: str) -> Move:
    l2b = dict(transfer.parameters)
    words = transfer.words
    if transfer.form.startswith("dram"):
        source = BlockOperand("dram", transfer.source, transfer.dram_words, value)
        target = BlockOperand("l2bm", transfer.destination, words, l2b=l2b.get("dst_l2b"))
    else:
        source = BlockOperand("l2bm", transfer.source, words, l2b=l2b.get("src_l2b"))
        target = BlockOperand("dram", transfer.destination, transfer.dram_words, value)
    return Move(transfer.mnemonic, words, source, target)


def _step(
    plan: TransferPlan,
    run: Run,
    value: MNValue,
    mask: PeOperand | None,
    number: int,
) -> Iterator[Step]:
    transfer = run.step(number)
    target, wide = plan.target, transfer.wide
    found = target.transfer(transfer.mnemonic, transfer.form, **dict(transfer.parameters))
    names = {"down": ("l2bm", "l1bm"), "up": ("l1bm", "l2bm")}
    operands: list[Operand] = []
    if transfer.form in names:
        upper, lower = names[transfer.form]
        operands.append(BlockOperand(upper, transfer.source, found.source_words))
        operands.append(BlockOperand(lower, transfer.destination, found.destination_words))
    else:
        down = transfer.form.startswith("to_pe")
        at = transfer.destination if down else transfer.source
        each = LONGS_PER_WIDE if wide else 1
        cycles = tuple(range(at, at + each * target.cycles, each))
        words = each * WORDS_PER_LONG
        local = PeOperand(value.location.memory, cycles, value.name, words=words, mask=mask)
        if down:
            above = BlockOperand("l1bm", transfer.source, found.source_words, wide=wide)
            operands += [above, local]
        else:
            size = found.destination_words
            operands += [local, BlockOperand("l1bm", transfer.destination, size, wide=wide)]
    mnemonic = transfer.mnemonic + transfer.suffix
    yield single_step(transfer.stage, mnemonic, (operands[0],), operands[1])


LAYERS: tuple[Layer, ...] = (_TransferLayer(DOWNLOAD), _TransferLayer(UPLOAD))
