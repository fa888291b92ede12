"""Reductions over any axes: ReduceSum, ReduceProd, ReduceMax and ReduceMin.

The axes may lie on any level. A PE first reduces its own long words. Then it joins the words of
each long word. Then units are joined. The reduction network joins MABs where it can. Other units
are joined digit by digit: every unit takes the partial results of its partners. In the end all
units that held a part hold the result, so the result has copies on the reduced digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from ..code.lines import (
    Forward,
    Instruction,
    Line,
    Literal,
    Operand,
    PeOperand,
    Special,
    Step,
    alu_step,
    single_step,
)
from ..code.nest import Nest, Repeat, alike
from ..cost.hazards import pass_hazards
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
from .switch.mab_joins import join_steps
from .switch.network_joins import across, down, space, up
from .switch.pass_code import move_code


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

    def _plan(self, node: MNNode, graph: MNGraph, target: Target) -> Plan:
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        axes = self.frame(node, graph).values[1][1]
        operation = self.joining(node, graph).network
        return plan(source, result, axes, self.reduced(node, graph), operation, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Yield the code: padding becomes harmless, then chunk after chunk of the result."""
        found = self._plan(node, graph, target)
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        reduced, kind = self.reduced(node, graph), self.joining(node, graph)
        factors = self.factors(node, graph)
        for factor in _distinct(factors):
            yield from fill_padding(factor.value, reduced, kind.neutral, target)
        if found.words:
            for word, bits in enumerate((0, source.dtype.bits)):
                yield alu_step("imm", (Literal(bits),), _word("grf1", 0, word, target))
        yield from join_terms(found, kind, factors, result, target)

    def hazards(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the steps that hazards take around passes between units."""
        found = self._plan(node, graph, target)
        passes = sum(not found.turns(*unit) for unit in found.units)
        return passes * sum(1 for _ in found.chunks(target)) * pass_hazards(target)


#: Long words of the result, and where in L2BM they lie when the network joins them.
_Chunk = tuple[Sequence[int], int]


def join_terms(
    found: Plan, kind: Joining, sources: Sequence[Factor], result: MNValue, target: Target
) -> Nest:
    """Yield the code of all chunks; those of a batch go through the network together.

    A term is a long word of the only one of ``sources``, or a product of long words of all.
    """
    network = found.network

    def batch(chunks: Sequence[Sequence[int]]) -> Nest:
        sizes = [space(network, len(chunk), target) if network else 0 for chunk in chunks]
        work = list(zip(chunks, accumulate(sizes, initial=0), strict=False))
        yield from alike(work, lambda one: _few(one[0]), up_to_l2bm)
        if network is not None:
            yield from across(network, sum(sizes), target)
        yield from alike(work, lambda one: _few(one[0]), down_to_lm)

    def up_to_l2bm(one: _Chunk) -> Nest:
        chunk, place = one
        yield from _in_pes(found, kind, chunk, sources, target)
        if found.mabs is not None:
            yield from join_steps(found.mabs, Scratch("grf0"), len(chunk), target)
        yield from _over_units(found, found.below, kind, len(chunk), target)
        if network is not None:
            yield from up(network, Scratch("grf0"), len(chunk), place, target)

    def down_to_lm(one: _Chunk) -> Nest:
        (chunk, place), part = one, Scratch("grf0")
        if network is not None:
            goal, at = (part, range(len(chunk))) if found.above else (result, chunk)
            yield from down(network, goal, at, place, target)
            if not found.above:
                return
            yield from _over_units(found, found.above, kind, len(chunk), target)
        yield from _each_vector(
            len(chunk),
            target,
            lambda at: alu_step(
                "lpassa", (vector(part, at),), vector(result, tuple(chunk[a] for a in at))
            ),
        )

    batches = list(found.batches(target))
    return alike(batches, lambda chunks: tuple(map(_few, chunks)), batch)


def _few(outs: Sequence[int]) -> int:
    """Return how many different long words there are: chunks and vectors repeat their last one."""
    return len(dict.fromkeys(outs))


def _each_vector(words: int, target: Target, *lines: Callable[[tuple[int, ...]], Line]) -> Nest:
    """Yield lines for each vector of the first ``words`` long words of a register file."""
    cycles = target.cycles

    def body(number: int) -> Iterator[Line]:
        at = tuple(range(number * cycles, (number + 1) * cycles))
        return (line(at) for line in lines)

    yield Repeat(words // cycles, body)


def _in_pes(
    found: Plan, kind: Joining, chunk: Sequence[int], sources: Sequence[Factor], target: Target
) -> Nest:
    """Yield the code that reduces long words, and the words of each, in every PE."""
    part, cycles = Scratch("grf0"), target.cycles

    def own(start: int) -> Nest:
        outs = chunk[start : start + cycles]
        into = vector(part, tuple(range(start, start + cycles)))
        folds, few = found.folds(outs), _few(outs)
        if folds == 1:
            yield from _own(kind, sources, [found.meets[out] for out in outs], (into,))
            return
        own = [(min(c % few, few - 1), c // few % folds) for c in range(cycles)]
        shares = [found.meets[outs[out]][fold::folds] for out, fold in own]
        parts = vector(Scratch("grf1", cycles), tuple(range(cycles)))
        yield from _own(kind, sources, shares, (into, parts))
        last = [min(c, few - 1) for c in range(cycles)]
        here: Operand = into._replace(offsets=tuple(start + c for c in last))
        for turn in range(1, folds):
            at = tuple(turn * few + c for c in last)
            goal: Operand = into if turn == folds - 1 else Special("nowrite")
            yield _joined(kind, here, vector(Scratch("grf1", cycles), at), goal)
            here = Forward(kind.slot)

    starts = range(0, len(chunk), cycles)
    yield from alike(starts, lambda start: _few(chunk[start : start + cycles]), own)
    if found.words:
        bits = PeOperand("grf1", (0,) * cycles)
        yield from _each_vector(
            len(chunk),
            target,
            lambda at: alu_step("lbsl", (vector(part, at), bits), Special("nowrite")),
            partial(_with_last, kind, part),
        )


def _over_units(
    found: Plan,
    units: Sequence[tuple[Level, PrimeDigit]],
    kind: Joining,
    words: int,
    target: Target,
) -> Nest:
    """Yield the code that joins units, digit after digit."""
    part = Scratch("grf0")
    for level, digit in units:
        if found.turns(level, digit):
            moved = [partial(_moved_on, part, first=not turn) for turn in range(digit.stride)]
            yield from _each_vector(words, target, *moved, partial(_with_last, kind, part))
            continue
        # Fetch the results of all partners before the unit's own result changes.
        others = [Scratch("grf1", CONSTANTS + turn * words) for turn in range(digit.size - 1)]
        for turn, other in enumerate(others, 1):
            partners = found.partners(level, digit, turn, words)
            yield from move_code([(partners, {})], level, part, other, target)
        for other in others:
            yield from _each_vector(words, target, partial(_with_other, kind, part, other))


def _moved_on(part: Scratch, at: tuple[int, ...], *, first: bool) -> Step:
    """Move a vector, or what came last, by one PE."""
    here = vector(part, at) if first else Forward("alu")
    return alu_step("msl", (here,), Special("nowrite"))


def _with_last(kind: Joining, part: Scratch, at: tuple[int, ...]) -> Step:
    """Join a vector with what came last from the ALU."""
    return _joined(kind, Forward("alu"), vector(part, at), vector(part, at))


def _with_other(kind: Joining, part: Scratch, other: Scratch, at: tuple[int, ...]) -> Step:
    return _joined(kind, vector(part, at), vector(other, at), vector(part, at))


def _distinct(factors: Sequence[Factor]) -> Iterable[Factor]:
    """Return one factor for each value: a square reads its value twice."""
    return {factor.value.name: factor for factor in factors}.values()


def _own(
    kind: Joining,
    sources: Sequence[Factor],
    terms: Sequence[Sequence[int]],
    into: tuple[PeOperand, ...],
) -> Nest:
    """Yield the lines that reduce long words of a PE; ``terms`` lists them for each cycle."""
    times = len(terms[0])

    def term(index: int) -> Iterator[Line]:
        here: tuple[Operand, ...] = tuple(
            one.vector([row[index] for row in terms]) for one in sources
        )
        goals = into if index == times - 1 else (Special("nowrite"),)
        name = kind.more or kind.join if index else kind.take
        before = (Forward(kind.slot),) if index else ()
        yield Step((Instruction(kind.slot, name, (*here, *before), goals),))

    yield Repeat(times, term)


def _joined(kind: Joining, one: Operand, other: Operand, goal: Operand) -> Step:
    return single_step(kind.slot, kind.join, (one, other), goal)


def _word(memory: str, at: int, word: int, target: Target) -> PeOperand:
    assert word < WORDS_PER_LONG
    return PeOperand(memory, (at,) * target.cycles, word=word)


LAYERS: tuple[Layer, ...] = (
    Reduce("ReduceSum", SUMS, SUM),
    Reduce("ReduceMax", MOST, MOVE),
    Reduce("ReduceMin", LEAST, MOVE),
    Reduce("ReduceProd", PRODUCTS, PRODUCT),
)
