"""Reductions over any axes: ReduceSum, ReduceProd, ReduceMax and ReduceMin.

The axes may lie on any level. A PE first reduces its own long words. Then it joins the words of
each long word. Then units are joined. The reduction network joins MABs where it can. Other units
are joined digit by digit: every unit takes the partial results of its partners. In the end all
units that held a part hold the result, so the result has copies on the reduced digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..graph.digits import PrimeDigit, primes
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..graph.layout import UNIT_LEVELS, Layout, Level
from ..machine import WORDS_PER_LONG, Target
from ..tolerance import MOVE, PRODUCT, SUM
from .base import Cut, Frame, Layer, OtherLm, digits, layout_of, misfits
from .fragment import (
    Forward,
    Fragment,
    Line,
    Literal,
    Operand,
    PeOperand,
    Special,
    Step,
    single_step,
)
from .padding import fill_padding, no_bits
from .reduce_kinds import LEAST, MOST, PRODUCTS, SUMS, Joining
from .scratch import Scratch, vector
from .switch.l1b_passes import l1b_steps
from .switch.l2b_passes import l2b_lines
from .switch.mab_joins import Join, count_join_steps, join_steps, joins
from .switch.pass_costs import move_steps
from .switch.pass_moves import Moves
from .switch.pe_mab_passes import mab_steps, pe_steps

_CHUNK = 64  # long words of the result that are computed at once
_CONSTANTS = 1  # long words of the second register file that hold constants


class Reduce(OtherLm):
    """One reduction, with an instruction for each dtype."""

    attributes = frozenset({"axes", "keepdims", "noop_with_empty_axes"})

    def __init__(self, op: str, joining: Mapping[MNDtype, Joining], error: str):
        self.op, self.error = op, error
        self._joining = joining
        self.dtypes = frozenset(joining)

    def joining(self, node: MNNode, graph: MNGraph) -> Joining:
        """Return the instructions for the dtype of a node."""
        return self._joining[graph.values[node.inputs[0]].dtype]

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        if len(node.inputs) > 1:
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
        banks = (Location.LM0, Location.LM1)
        if source.location not in banks or result.location not in banks:
            yield "an operand that is not in LM"
        whole = layout_of(source)
        if no_bits(source, self.reduced(node, graph)):
            yield f"padding of `{source.name}` on units whose distance is no power of two"
        frame = self.frame(node, graph)
        problem = misfits(whole, layout_of(result), frame.values[1][1], target)
        if problem is not None:
            yield f"`{result.name}`: {problem}"

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Estimate the steps."""
        plan = _plan(self, node, graph, target)
        source, reduced = graph.values[node.inputs[0]], self.reduced(node, graph)
        neutral = self.joining(node, graph).neutral
        total = sum(1 for _ in fill_padding(source, reduced, neutral, target))
        for chunk in plan.chunks(target):
            total += len(chunk) // target.cycles * (plan.terms + 1 + 3 * plan.words)
            if plan.mabs is not None:
                total += count_join_steps(len(chunk), target)
            for level, digit in plan.units:
                if plan.turns(level, digit):
                    total += len(chunk) // target.cycles * (digit.stride + 1)
                    continue
                for turn in range(1, digit.size):
                    found = plan.partners(level, digit, turn, len(chunk))
                    total += len(chunk) // target.cycles + move_steps(found, level, target)
        return total

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the code."""
        plan = _plan(self, node, graph, target)
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        here = PeOperand("grf1", (0,) * target.cycles)
        reduced, kind = self.reduced(node, graph), self.joining(node, graph)
        lines: list[Line] = list(fill_padding(source, reduced, kind.neutral, target))
        if plan.words:
            bits = source.dtype.bits
            for word, value in enumerate((0, bits)):
                lines.append(
                    single_step("alu", "imm", (Literal(value),), _word("grf1", 0, word, target))
                )
        for chunk in plan.chunks(target):
            part = Scratch("grf0")
            for start in range(0, len(chunk), target.cycles):
                at = tuple(range(start, start + target.cycles))
                into = vector(part, at)
                terms = [plan.meets[out] for out in chunk[start : start + target.cycles]]
                lines += _own(kind, source, terms, into)
            if plan.words:
                for start in range(0, len(chunk), target.cycles):
                    into = vector(part, tuple(range(start, start + target.cycles)))
                    lines.append(single_step("alu", "lbsl", (into, here), Special("nowrite")))
                    lines.append(_joined(kind, Forward("alu"), into, into))
            if plan.mabs is not None:
                lines += join_steps(plan.mabs, part, len(chunk), target)
            for level, digit in plan.units:
                if plan.turns(level, digit):
                    lines += _turned(kind, digit.stride, part, len(chunk), target)
                    continue
                # Fetch the results of all partners before the unit's own result changes.
                turns = range(1, digit.size)
                for turn in turns:
                    found = plan.partners(level, digit, turn, len(chunk))
                    other = Scratch("grf1", _CONSTANTS + (turn - 1) * len(chunk))
                    lines += _CODE[level](found, part, other, target)
                for turn in turns:
                    other = Scratch("grf1", _CONSTANTS + (turn - 1) * len(chunk))
                    for start in range(0, len(chunk), target.cycles):
                        at = tuple(range(start, start + target.cycles))
                        lines.append(
                            _joined(kind, vector(part, at), vector(other, at), vector(part, at))
                        )
            for start in range(0, len(chunk), target.cycles):
                at = tuple(range(start, start + target.cycles))
                goal = vector(result, tuple(chunk[start : start + target.cycles]))
                lines.append(single_step("alu", "lpassa", (vector(part, at),), goal))
        return Fragment(tuple(lines))


def _own(
    kind: Joining, source: MNValue, terms: Sequence[Sequence[int]], into: PeOperand
) -> Iterator[Line]:
    """Yield the lines that reduce long words of a PE; ``terms`` lists them for each cycle."""
    before: Operand | None = None
    for index in range(len(terms[0])):
        here = vector(source, tuple(row[index] for row in terms))
        goal: Operand = into if index == len(terms[0]) - 1 else Special("nowrite")
        if before is None:
            yield single_step(kind.slot, kind.take, (here,), goal)
        else:
            yield single_step(kind.slot, kind.join, (here, before), goal)
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


@dataclass(frozen=True)
class _Plan:
    """The work of a reduction.

    ``meets``: the input long words of each output long word. ``terms``: their number. ``words``:
    whether the words of a long word are joined. ``mabs``: how the network joins MABs; None if it
    does not. ``units``: the other unit digits to reduce over. ``counts``: the units of each level.
    ``size``: output long words of a chunk.
    """

    meets: dict[int, list[int]]
    terms: int
    words: bool
    mabs: Join | None
    units: tuple[tuple[Level, PrimeDigit], ...]
    round: frozenset[tuple[Level, PrimeDigit]]
    counts: dict[Level, int]
    size: int

    def turns(self, level: Level, digit: PrimeDigit) -> bool:
        """Whether the ALU turns results round the PEs, and joins them as they come."""
        return level is Level.PE and digit.size == 2 and (level, digit) in self.round

    def partners(self, level: Level, digit: PrimeDigit, turn: int, words: int) -> Moves:
        """Return the moves that bring every unit all words of a partner.

        The digit of the partner is ``turn`` higher, modulo the size of the digit.
        """
        (stride, size), count = digit, self.counts[level]
        unit = np.arange(count, dtype=np.int64)
        if (level, digit) in self.round:
            partner = (unit + turn * stride) % count
        else:
            partner = unit + ((unit // stride + turn) % size - unit // stride % size) * stride
        at = np.tile(np.arange(words, dtype=np.int64), count)
        return Moves(np.repeat(unit, words), at, np.repeat(partner, words), at)

    def chunks(self, target: Target) -> Iterator[list[int]]:
        """Yield chunks of output long words: whole vectors that fit the register files."""
        outs = sorted(self.meets)
        for start in range(0, len(outs), self.size):
            part = outs[start : start + self.size]
            yield part + [part[-1]] * (-len(part) % target.cycles)


def _plan(layer: Reduce, node: MNNode, graph: MNGraph, target: Target) -> _Plan:
    source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
    whole, own = layout_of(source), layout_of(result)
    reduced = layer.reduced(node, graph)
    axes = layer.frame(node, graph).values[1][1]
    kept = {axis: index for index, axis in enumerate(axes) if axis is not None}
    at, meets = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for number, subs in enumerate(whole.axes):
        theirs = digits(own.axes[kept[number]]) if number in kept else None
        for index, sub in enumerate(digits(subs)):
            if sub.level is not Level.ADDR:
                continue
            digit = np.arange(sub.size, dtype=np.int64)
            stride = theirs[index].stride if theirs is not None else 0
            at = (at[:, None] + digit * sub.stride).reshape(-1)
            meets = (meets[:, None] + digit * stride).reshape(-1)
    found: dict[int, list[int]] = {}
    for word, out in zip(at.tolist(), meets.tolist(), strict=True):
        found.setdefault(out, []).append(word)
    units = tuple(_digits_of(whole, reduced))
    # The network joins MABs that differ in digits which are all reduced, and takes two steps.
    over = {digit for level, digit in units if level is Level.MAB}
    network = layer.joining(node, graph).network
    ways = joins(network, target) if network is not None else ()
    mabs = next((one for one in ways if one.digits <= over), None)
    if mabs is not None:
        units = tuple(
            (level, digit)
            for level, digit in units
            if level is not Level.MAB or digit not in mabs.digits
        )
    packed = any(s.level is Level.W for axis in reduced for s in digits(whole.axes[axis]))
    counts = {level: target.level_range[level.value] for level in UNIT_LEVELS}
    # Chunks are whole vectors, and the partners' results fit beside the constants.
    most = max((size - 1 for _, (_, size) in units), default=1)
    room = (target.words("grf1") - 2 * target.cycles) // most
    size = max(target.cycles, min(_CHUNK, room // target.cycles * target.cycles))
    terms = len(next(iter(found.values())))
    return _Plan(found, terms, packed, mabs, units, frozenset(_round(units, counts)), counts, size)


def _digits_of(layout: Layout, reduced: Sequence[int]) -> Iterator[tuple[Level, PrimeDigit]]:
    """Return the unit digits of reduced axes, inner levels first, of each level from the top."""
    for level in reversed(UNIT_LEVELS):
        found = [
            PrimeDigit(sub.stride * stride, size)
            for axis in reduced
            for sub in digits(layout.axes[axis])
            if sub.level is level
            for stride, size in primes(sub.size)
        ]
        yield from ((level, digit) for digit in sorted(found, reverse=True))


def _round(
    units: Sequence[tuple[Level, PrimeDigit]], counts: Mapping[Level, int]
) -> Iterator[tuple[Level, PrimeDigit]]:
    """Yield the digits above which all digits of the level are reduced before.

    Units that differ only in higher digits then hold the same, so a turn of all units brings each
    of them what its partner has.
    """
    below = dict(counts)
    for level, digit in units:
        if digit.stride * digit.size == below[level]:
            below[level] = digit.stride
            yield level, digit


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
