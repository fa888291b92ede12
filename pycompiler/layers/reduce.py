"""Reductions over any axes: ReduceSum, ReduceProd, ReduceMax and ReduceMin.

The axes may lie on any level. A PE first reduces its own long words. Then it joins the words of
each long word. Then units are joined. The reduction network joins MABs where it can. Other units
are joined digit by digit: every unit takes the partial results of its partners. In the end all
units that held a part hold the result, so the result has copies on the reduced digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..code.lines import (
    Forward,
    Fragment,
    Instruction,
    Line,
    Literal,
    Operand,
    PeOperand,
    Special,
    Step,
    single_step,
)
from ..code.nest import expand, resources
from ..graph.digits import PrimeDigit
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode, MNValue
from ..graph.layout import Level
from ..machine import WORDS_PER_LONG, Target
from ..tolerance import MOVE, PRODUCT, SUM
from .base import Cut, Frame, Layer, OtherLm, layout_of, misfits, outside_lm
from .padding import fill_padding, no_bits
from .reduce_kinds import LEAST, MOST, PRODUCTS, SUMS, Joining
from .reduce_plan import CONSTANTS, Plan, plan
from .scratch import Scratch, vector
from .switch.l1b_passes import l1b_steps
from .switch.l2b_passes import l2b_lines
from .switch.mab_joins import count_join_steps, join_steps
from .switch.network_joins import across, count_mv_steps, count_steps, down, space, up
from .switch.pass_costs import move_steps
from .switch.pass_moves import Moves
from .switch.pe_mab_passes import mab_steps, pe_steps


@dataclass(frozen=True)
class Factor:
    """An operand whose long words are terms, or factors of terms.

    ``words`` has the long word of the operand for each long word of the first one, None if they are
    the same.
    """

    value: MNValue
    words: tuple[int, ...] | None = None

    def vector(self, at: Sequence[int]) -> PeOperand:
        """Return the operand for the first one's long words ``at``."""
        own = at if self.words is None else [self.words[word] for word in at]
        return vector(self.value, tuple(own))


class Reduce(OtherLm):
    """One reduction, with an instruction for each dtype."""

    attributes = frozenset({"axes", "keepdims", "noop_with_empty_axes"})
    #: inputs without the axes
    operands = 1

    def __init__(self, op: str, joining: Mapping[MNDtype, Joining], error: str):
        self.op, self.error = op, error
        self._joining = joining
        self.dtypes = frozenset(joining)

    def joining(self, node: MNNode, graph: MNGraph) -> Joining:
        """Return the instructions for the dtype of a node."""
        return self._joining[graph.values[node.inputs[0]].dtype]

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        if len(node.inputs) > self.operands:
            return f"{self.op} with axes that are no constant"
        return super().unsupported(node, graph, dtypes)

    def reduced(self, node: MNNode, graph: MNGraph) -> tuple[int, ...]:
        """Return the axes that disappear."""
        rank = len(graph.values[node.inputs[0]].shape)
        facts = dict(node.attributes)
        axes = facts.get("axes", ())
        if not axes:
            return () if facts.get("noop_with_empty_axes") else tuple(range(rank))
        assert isinstance(axes, tuple)
        return tuple(sorted(int(axis) % rank for axis in axes))

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Work over the input; reduced axes should have no padding."""
        shape = graph.values[node.inputs[0]].shape
        reduced = self.reduced(node, graph)
        whole: tuple[int | None, ...] = tuple(range(len(shape)))
        if dict(node.attributes).get("keepdims", 1):
            kept: tuple[int | None, ...] = tuple(None if a in reduced else a for a in whole)
        else:
            kept = tuple(a for a in whole if a not in reduced)
        return Frame(shape, ((node.inputs[0], whole), (node.outputs[0], kept)), reduced)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield all axes; the results of slices along a reduced axis are joined."""
        reduced, joins = self.reduced(node, graph), self.joining(node, graph).joins
        for cut in super().cuts(node, graph):
            lost = dict(cut.axes)[node.inputs[0]] in reduced
            yield replace(cut, joins=joins) if lost else cut

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands outside of LM, and layouts that do not agree."""
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        yield from outside_lm((source.name, result.name), graph)
        whole = layout_of(source)
        if no_bits(source, self.reduced(node, graph)):
            yield f"padding of `{source.name}` on units whose distance is no power of two"
        frame = self.frame(node, graph)
        problem = misfits(whole, layout_of(result), frame.values[1][1], target)
        if problem is not None:
            yield f"`{result.name}`: {problem}"

    def factors(self, node: MNNode, graph: MNGraph) -> tuple[Factor, ...]:
        """Return the operands whose long words make the terms."""
        return (Factor(graph.values[node.inputs[0]]),)

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Estimate the steps."""
        found = self._plan(node, graph, target)
        reduced, neutral = self.reduced(node, graph), self.joining(node, graph).neutral
        total = sum(
            resources(fill_padding(factor.value, reduced, neutral, target)).steps
            for factor in _distinct(self.factors(node, graph))
        )
        return total + count_lines(found, target)

    def _plan(self, node: MNNode, graph: MNGraph, target: Target) -> Plan:
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        axes = self.frame(node, graph).values[1][1]
        operation = self.joining(node, graph).network
        return plan(source, result, axes, self.reduced(node, graph), operation, target)

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the code."""
        found = self._plan(node, graph, target)
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        reduced, kind = self.reduced(node, graph), self.joining(node, graph)
        factors = self.factors(node, graph)
        lines: list[Line] = []
        for factor in _distinct(factors):
            lines += expand(fill_padding(factor.value, reduced, kind.neutral, target))
        if found.words:
            bits = source.dtype.bits
            for word, value in enumerate((0, bits)):
                lines.append(
                    single_step("alu", "imm", (Literal(value),), _word("grf1", 0, word, target))
                )
        for batch in found.batches(target):
            lines += batch_lines(found, kind, batch, factors, result, target)
        return Fragment(tuple(lines))


def count_lines(found: Plan, target: Target) -> int:
    """Estimate the steps of :func:`batch_lines` for all batches, with waits for MVs."""
    total, network = 0, found.network
    for batch in found.batches(target):
        for chunk in batch:
            total += len(chunk) // target.cycles * (1 + 3 * found.words)
            for outs in _vectors(chunk, target):
                folds = found.folds(outs)
                total += found.terms // folds + folds - 1
            if found.mabs is not None:
                total += count_join_steps(len(chunk), target)
            if network is not None:
                total += count_steps(network, len(chunk), target)
            for level, digit in found.units:
                if found.turns(level, digit):
                    total += len(chunk) // target.cycles * (digit.stride + 1)
                    continue
                for turn in range(1, digit.size):
                    moved = found.partners(level, digit, turn, len(chunk))
                    total += len(chunk) // target.cycles + move_steps(moved, level, target)
        if network is not None:
            words = sum(space(network, len(chunk), target) for chunk in batch)
            total += count_mv_steps(network, words, target)
    return total


def batch_lines(
    found: Plan,
    kind: Joining,
    batch: Sequence[Sequence[int]],
    sources: Sequence[Factor],
    result: MNValue,
    target: Target,
) -> Iterator[Line]:
    """Yield the code of chunks that go through the network together.

    A term is a long word of the only one of ``sources``, or a product of long words of all.
    """
    part, place, network = Scratch("grf0"), 0, found.network
    for chunk in batch:
        yield from _in_pes(found, kind, chunk, sources, target)
        if found.mabs is not None:
            yield from join_steps(found.mabs, part, len(chunk), target)
        yield from _over_units(found, found.below, kind, len(chunk), target)
        if network is not None:
            yield from up(network, part, len(chunk), place, target)
            place += space(network, len(chunk), target)
    if network is not None:
        yield from across(network, place, target)
    place = 0
    for chunk in batch:
        if network is not None:
            goal, at = (part, range(len(chunk))) if found.above else (result, chunk)
            yield from down(network, goal, at, place, target)
            place += space(network, len(chunk), target)
            if not found.above:
                continue
            yield from _over_units(found, found.above, kind, len(chunk), target)
        for start in range(0, len(chunk), target.cycles):
            at = tuple(range(start, start + target.cycles))
            to = vector(result, tuple(chunk[start : start + target.cycles]))
            yield single_step("alu", "lpassa", (vector(part, at),), to)


def _in_pes(
    found: Plan, kind: Joining, chunk: Sequence[int], sources: Sequence[Factor], target: Target
) -> Iterator[Line]:
    """Yield the lines that reduce long words, and the words of each, in every PE."""
    part = Scratch("grf0")
    for start, outs in zip(
        range(0, len(chunk), target.cycles), _vectors(chunk, target), strict=True
    ):
        into = vector(part, tuple(range(start, start + target.cycles)))
        folds = found.folds(outs)
        if folds == 1:
            yield from _own(kind, sources, [found.meets[out] for out in outs], (into,))
            continue
        few = len(dict.fromkeys(outs))
        cycles = range(target.cycles)
        shares = [
            found.meets[outs[min(c % few, few - 1)]][c // few % folds :: folds] for c in cycles
        ]
        parts = vector(Scratch("grf1", target.cycles), tuple(cycles))
        yield from _own(kind, sources, shares, (into, parts))
        here: Operand = replace(into, offsets=tuple(start + min(c, few - 1) for c in cycles))
        for turn in range(1, folds):
            at = tuple(turn * few + min(c, few - 1) for c in cycles)
            goal: Operand = into if turn == folds - 1 else Special("nowrite")
            yield _joined(kind, here, vector(Scratch("grf1", target.cycles), at), goal)
            here = Forward(kind.slot)
    if not found.words:
        return
    here = PeOperand("grf1", (0,) * target.cycles)
    for start in range(0, len(chunk), target.cycles):
        into = vector(part, tuple(range(start, start + target.cycles)))
        yield single_step("alu", "lbsl", (into, here), Special("nowrite"))
        yield _joined(kind, Forward("alu"), into, into)


def _over_units(
    found: Plan,
    units: Sequence[tuple[Level, PrimeDigit]],
    kind: Joining,
    words: int,
    target: Target,
) -> Iterator[Line]:
    """Yield the lines that join units, digit after digit."""
    part = Scratch("grf0")
    for level, digit in units:
        if found.turns(level, digit):
            yield from _turned(kind, digit.stride, part, words, target)
            continue
        # Fetch the results of all partners before the unit's own result changes.
        turns = range(1, digit.size)
        for turn in turns:
            moved = found.partners(level, digit, turn, words)
            other = Scratch("grf1", CONSTANTS + (turn - 1) * words)
            yield from _CODE[level](moved, part, other, target)
        for turn in turns:
            other = Scratch("grf1", CONSTANTS + (turn - 1) * words)
            for start in range(0, words, target.cycles):
                at = tuple(range(start, start + target.cycles))
                yield _joined(kind, vector(part, at), vector(other, at), vector(part, at))


def _distinct(factors: Sequence[Factor]) -> Iterable[Factor]:
    """Return one factor for each value: a square reads its value twice."""
    return {factor.value.name: factor for factor in factors}.values()


def _vectors(chunk: Sequence[int], target: Target) -> Iterator[Sequence[int]]:
    for start in range(0, len(chunk), target.cycles):
        yield chunk[start : start + target.cycles]


def _own(
    kind: Joining,
    sources: Sequence[Factor],
    terms: Sequence[Sequence[int]],
    into: tuple[PeOperand, ...],
) -> Iterator[Line]:
    """Yield the lines that reduce long words of a PE; ``terms`` lists them for each cycle."""
    before: Operand | None = None
    for index in range(len(terms[0])):
        at = [row[index] for row in terms]
        here: tuple[Operand, ...] = tuple(one.vector(at) for one in sources)
        goals = into if index == len(terms[0]) - 1 else (Special("nowrite"),)
        name = kind.take
        if before is not None:
            name, here = kind.more or kind.join, (*here, before)
        yield Step((Instruction(kind.slot, name, here, goals),))
        before = Forward(kind.slot)


def _joined(kind: Joining, one: Operand, other: Operand, goal: Operand) -> Step:
    return single_step(kind.slot, kind.join, (one, other), goal)


def _turned(kind: Joining, by: int, part: Scratch, words: int, target: Target) -> Iterator[Line]:
    """Yield the lines that join every PE's results with those of the PE ``by`` places away."""
    for start in range(0, words, target.cycles):
        own = vector(part, tuple(range(start, start + target.cycles)))
        here: Operand = own
        for _ in range(by):
            yield single_step("alu", "msl", (here,), Special("nowrite"))
            here = Forward("alu")
        yield _joined(kind, here, own, own)


_Code = Callable[[Moves, Scratch, Scratch, Target], Sequence[Line]]
_CODE: dict[Level, _Code] = {
    Level.PE: pe_steps,
    Level.MAB: mab_steps,
    Level.L1B: l1b_steps,
    Level.L2B: l2b_lines,
}


def _word(memory: str, at: int, word: int, target: Target) -> PeOperand:
    assert word < WORDS_PER_LONG
    return PeOperand(memory, (at,) * target.cycles, word=word)


LAYERS: tuple[Layer, ...] = (
    Reduce("ReduceSum", SUMS, SUM),
    Reduce("ReduceMax", MOST, MOVE),
    Reduce("ReduceMin", LEAST, MOVE),
    Reduce("ReduceProd", PRODUCTS, PRODUCT),
)
