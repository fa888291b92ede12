"""MNCoreDownload (DRAM to LM) and MNCoreUpload (LM to DRAM), the transfers of the graph."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..machine import Target
from ..tolerance import MOVE
from .base import Frame, Layer, Placement, layout_of
from .fragment import BlockOperand, Fragment, Instruction, Line, Move, Operand, PeOperand, Step
from .transfer_plan import Transfer, TransferPlan, plan_transfer

DOWNLOAD, UPLOAD = "MNCoreDownload", "MNCoreUpload"


class _TransferLayer(Layer):
    dtypes = frozenset(MNDtype) - {MNDtype.UNKNOWN}
    error = MOVE

    def __init__(self, op: str):
        self.op = op
        self.down = op == DOWNLOAD

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        shape = graph.values[node.inputs[0]].shape
        axes = tuple(range(len(shape)))
        return Frame(shape, ((node.inputs[0], axes), (node.outputs[0], axes)))

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

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        plan = plan_transfer(layout_of(graph.values[node.inputs[0]]), target)
        return sum(len(list(plan.steps_down(chunk))) for chunk in plan.chunks)

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        plan = plan_transfer(layout_of(source), target)
        lines = _download(plan, source, result) if self.down else _upload(plan, source, result)
        return Fragment(tuple(lines))


def _download(plan: TransferPlan, source: MNValue, result: MNValue) -> Iterator[Line]:
    """Issue the DRAM transfers of a chunk before the steps of the chunk before it."""
    ahead = [*plan.chunks[1:], None]
    yield from (_move(plan, t, source.name) for t in plan.moves_down(plan.chunks[0]))
    for chunk, following in zip(plan.chunks, ahead, strict=True):
        if following is not None:
            yield from (_move(plan, t, source.name) for t in plan.moves_down(following))
        yield from (_step(plan, t, result) for t in plan.steps_down(chunk))


def _upload(plan: TransferPlan, source: MNValue, result: MNValue) -> Iterator[Line]:
    for chunk in plan.chunks:
        yield from (_step(plan, t, source) for t in plan.steps_up(chunk))
        yield from (_move(plan, t, result.name) for t in plan.moves_up(chunk))


def _move(plan: TransferPlan, transfer: Transfer, value: str) -> Move:
    l2b = dict(transfer.parameters)
    words = transfer.words
    if transfer.form.startswith("dram"):
        source = BlockOperand("dram", transfer.source, words, value)
        target = BlockOperand("l2bm", transfer.destination, words, l2b=l2b.get("dst_l2b"))
    else:
        source = BlockOperand("l2bm", transfer.source, words, l2b=l2b["src_l2b"])
        target = BlockOperand("dram", transfer.destination, words, value)
    return Move(transfer.mnemonic, words, source, target)


def _step(plan: TransferPlan, transfer: Transfer, value: MNValue) -> Step:
    target = plan.target
    found = target.transfer(transfer.mnemonic, transfer.form, **dict(transfer.parameters))
    names = {"down": ("l2bm", "l1bm"), "up": ("l1bm", "l2bm")}
    operands: list[Operand] = []
    if transfer.form in names:
        upper, lower = names[transfer.form]
        operands.append(BlockOperand(upper, transfer.source, found.source_words))
        operands.append(BlockOperand(lower, transfer.destination, found.destination_words))
    else:
        down = transfer.form == "to_pe"
        at = transfer.destination if down else transfer.source
        cycles = tuple(range(at, at + target.cycles))
        local = PeOperand(value.location.memory, cycles, value.name)
        if down:
            operands += [BlockOperand("l1bm", transfer.source, found.source_words), local]
        else:
            words = found.destination_words
            operands += [local, BlockOperand("l1bm", transfer.destination, words)]
    mnemonic = transfer.mnemonic + transfer.suffix
    return Step((Instruction(transfer.stage, mnemonic, (operands[0],), (operands[1],)),))


LAYERS: tuple[Layer, ...] = (_TransferLayer(DOWNLOAD), _TransferLayer(UPLOAD))
