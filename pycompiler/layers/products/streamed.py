"""The schedule for vectors that come through L1BM.

Every MAB keeps its columns of the matrix in LM1 for the whole contracted axis. The vectors lie in
LM0, each in one MAB only: the units of a share have different rows. They are collected in L1BM
(:mod:`.route`) and brought to all MABs while the MAU works: `l1bmm`, block float and product of
three following vectors stand on one line. A tile of the matrix meets all rows for which the
register files can sum up, then the next one is written to the other bank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Layout, Level
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from ..fragment import BlockOperand, Instruction, Line, Operand, PeOperand, Special, Step
from .layouts import (
    SubDigit,
    UnitDigit,
    inner_digits,
    lay_out,
    result_digits,
    unit_digits,
    units_of,
)
from .roles import Precision, bias_of, precision_of, roles_of
from .route import Route, route
from .tiles import NOWHERE, convert, tile_pairs, tile_steps

_FILES = ("grf0", "grf1")


@dataclass(frozen=True)
class Split:
    """How a product is spread over the units.

    ``along`` is the batch axis that rows are spread on, None for m. ``n`` are the digits of the
    columns: MABs, L1Bs of a share, L2Bs; ``rows`` those of the rows: other L1Bs, other L2Bs.
    """

    along: int | None
    n: tuple[UnitDigit, ...]
    rows: tuple[UnitDigit, ...]

    @property
    def share(self) -> int:
        """L1Bs that take the same vectors."""
        return prod(size for level, _, size in self.n if level is Level.L1B)


@dataclass(frozen=True)
class Shape:
    """Counts of a streamed product in one share, and distances of its operands in LM.

    ``own``: units that send; ``each``: rows of the spread axis in one of them; ``rows``: rows in
    one unit; ``tiles`` and ``sums``: blocks of columns and of the contracted axis in one MAB;
    ``limit``: rows of the spread axis that exist in a share. ``vector`` and ``row``: long words of
    a vector in A and of a row of a tile in B.
    """

    own: int
    each: int
    rows: int
    tiles: int
    sums: int
    limit: int
    vector: int
    row: int


def suits(node: MNNode, graph: MNGraph, target: Target) -> bool:
    """Whether the schedule can do this product at all."""
    roles, kind = roles_of(node, graph), precision_of(node)
    whole = None not in (roles.a[1], roles.b[2], roles.c[1], roles.c[2])
    return (
        whole
        and kind.words > WORDS_PER_LONG
        and node.inputs[0] != node.inputs[1]
        and all(axis is None for axis in roles.b[0])
        and all(axis is not None for axis in roles.a[0])
        and roles.k % kind.block(target) == 0
    )


def streams(node: MNNode, graph: MNGraph) -> bool:
    """Whether the operands' layouts are those of this schedule."""
    return graph.values[node.inputs[0]].layout is not None and _along(node, graph) is not None


def _row_axes(node: MNNode, graph: MNGraph) -> list[tuple[int | None, int, int]]:
    """Return the row axes of A and C with the batch axis they are (None: m)."""
    roles = roles_of(node, graph)
    if roles.a[1] is None or roles.c[1] is None:
        return []
    pairs = zip(roles.a[0], roles.c[0], strict=True)
    batch = [(i, a, c) for i, (a, c) in enumerate(pairs) if a is not None]
    return [*batch, (None, roles.a[1], roles.c[1])]


def _along(node: MNNode, graph: MNGraph) -> tuple[int | None, int] | None:
    """Return the row axis whose vectors lie in different MABs, and its axis of C."""
    one, out = (layout_of(graph.values[n]) for n in (node.inputs[0], node.outputs[0]))
    for axis, in_a, in_c in _row_axes(node, graph):
        sent = {digit for digit in unit_digits(one, in_a) if digit[0] is Level.MAB}
        if sent - set(unit_digits(out, in_c)):
            return axis, in_c
    return None


def wanted_layouts(node: MNNode, graph: MNGraph, target: Target) -> dict[str, Layout]:
    """Return the layouts of all operands that go with the result's."""
    found = _along(node, graph)
    assert found is not None
    out, roles = layout_of(graph.values[node.outputs[0]]), roles_of(node, graph)
    n, rows = unit_digits(out, roles.c[2]), unit_digits(out, found[1])
    return layouts(node, graph, Split(found[0], tuple(n), tuple(rows)), target)


def shape_of(node: MNNode, graph: MNGraph, split: Split, target: Target) -> Shape:
    """Return the counts of a product that is spread so."""
    roles, kind = roles_of(node, graph), precision_of(node)
    own = target.counts["mab"] * split.share
    size = roles.m if split.along is None else roles.batch[split.along]
    each = -(-size // (own * prod(digit[2] for digit in split.rows)))
    others = [roles.batch[i] for i in range(len(roles.batch)) if i != split.along]
    if split.along is not None:
        others.append(roles.m)
    columns = kind.rows(target) * prod(digit[2] for digit in split.n)
    one, other = (graph.values[name].dtype.words_per_long for name in node.inputs[:2])
    return Shape(
        own,
        each,
        each * prod(others),
        -(-roles.n // columns),
        roles.k // kind.block(target),
        min(own * each, size),
        kind.words // one,
        kind.words // other,
    )


def layouts(node: MNNode, graph: MNGraph, split: Split, target: Target) -> dict[str, Layout]:
    """Return the layouts of a product that is spread so."""
    roles, kind = roles_of(node, graph), precision_of(node)
    shape = shape_of(node, graph, split, target)
    values = [graph.values[name] for name in (*node.inputs[:2], node.outputs[0])]
    one, other = values[:2]
    tile = kind.rows(target) * shape.row

    def contracted(value: MNValue, stride: int) -> list[SubDigit]:
        return [*inner_digits(kind, value.dtype, target), (shape.sums, Level.ADDR, stride)]

    def columns(first: Sequence[SubDigit], stride: int) -> list[SubDigit]:
        low = [digit for digit in split.n if digit[0] is not Level.L2B]
        high = [digit for digit in split.n if digit[0] is Level.L2B]
        blocks = (shape.tiles, Level.ADDR, stride)
        return [*first, *units_of(low), blocks, *units_of(high)]

    # A: vector, rows, contracted axis. C: result, rows, blocks of columns.
    a: dict[int, list[SubDigit]] = {roles.a[2]: contracted(one, shape.vector * shape.rows)}
    result = result_digits(kind, target)
    rows = shape.own * shape.rows
    assert roles.b[2] is not None
    assert roles.c[2] is not None
    c: dict[int, list[SubDigit]] = {roles.c[2]: columns(result, kind.result * rows)}
    own = [digit for digit in split.n if digit[0] is not Level.L2B]
    beyond = shape.each
    for axis, in_a, in_c in _row_axes(node, graph):
        if axis == split.along:
            a[in_a] = [*units_of(own), (shape.each, Level.ADDR, shape.vector)]
            c[in_c] = [(shape.own * shape.each, Level.ADDR, kind.result)]
            for subs in (a[in_a], c[in_c]):
                subs += units_of(split.rows)
            continue
        size = roles.m if axis is None else roles.batch[axis]
        a[in_a] = [(size, Level.ADDR, shape.vector * beyond)]
        c[in_c] = [(size, Level.ADDR, kind.result * shape.own * beyond)]
        beyond *= size
    b = {
        roles.b[1]: contracted(other, tile),
        roles.b[2]: columns([(kind.rows(target), Level.ADDR, shape.row)], tile * shape.sums),
    }
    for axis, size in enumerate(other.shape):
        if size == 1:
            b.setdefault(axis, [])
    found = {
        value.name: lay_out(len(value.shape), subs, list(subs), value.dtype, target)
        for value, subs in zip(values, (a, b, c), strict=True)
    }
    bias = bias_of(node)
    if bias is not None:
        added = graph.values[bias]
        last = len(added.shape) - 1
        row = {last: columns(result, kind.result)}
        found[bias] = lay_out(len(added.shape), row, [last], added.dtype, target)
    return found


@dataclass(frozen=True)
class _Group:
    """Vectors of one step: where they lie in L1BM, their rows in a unit, and who sent them."""

    at: int
    sender: tuple[int, ...]
    cycle: int


@dataclass(frozen=True)
class _Job:
    """Vectors that are collected together.

    ``sent`` are block of the contracted axis and row of each sent long word. They belong to block
    ``tile`` of the columns, to rows from ``first`` on, and to pass ``turn`` over the matrix.
    """

    turn: int
    tile: int
    first: int
    sent: tuple[tuple[int, int], ...]


class _Code:
    """The code of one product."""

    def __init__(self, node: MNNode, graph: MNGraph, target: Target):
        self.target, self.kind = target, precision_of(node)
        found, roles = _along(node, graph), roles_of(node, graph)
        assert found is not None
        out = layout_of(graph.values[node.outputs[0]])
        n, rows = unit_digits(out, roles.c[2]), unit_digits(out, found[1])
        split = Split(found[0], tuple(n), tuple(rows))
        self.shape = shape_of(node, graph, split, target)
        self.route = route(split.share, target)
        self.one, self.other, self.out = (
            graph.values[name] for name in (*node.inputs[:2], node.outputs[0])
        )
        bias = bias_of(node)
        self.bias = None if bias is None else graph.values[bias]
        self.groups = tuple(self._groups(self.route))
        #: sending steps that are collected together
        self.burst = burst(self.route, target)
        self.jobs = list(self._jobs())
        self._convert = Step((convert(self.kind, Special("lbf")),))
        self._brought: dict[int, Step] = {}
        self._sums: dict[tuple[str, int], Step] = {}

    def _groups(self, found: Route) -> Iterator[_Group]:
        cycles, pes = self.target.cycles, self.target.counts["pe"]
        for start in range(0, len(found.order), cycles):
            vectors = found.order[start : start + cycles]
            assert len({cycle for _, cycle in vectors}) == 1
            yield _Group(start * pes, tuple(sender for sender, _ in vectors), vectors[0][1])

    def _jobs(self) -> Iterator[_Job]:
        shape = self.shape
        most = rows_at_once(shape, self.kind, self.target)
        size = self.burst * self.target.cycles
        passes = product(range(0, shape.rows, most), range(shape.tiles))
        for turn, (first, tile) in enumerate(passes):
            rows = range(first, min(first + most, shape.rows))
            words = [(block, row) for block in range(shape.sums) for row in rows]
            for start in range(0, len(words), size):
                yield _Job(turn, tile, first, tuple(words[start : start + size]))

    def lines(self) -> Iterator[Line]:
        """Yield all lines; what the next vectors need comes before the work on these."""
        yield from self._collect(0)
        for number in range(len(self.jobs)):
            if number + 1 < len(self.jobs):
                yield from self._collect(number + 1)
            yield from self._work(number)

    def _buffers(self) -> tuple[int, int]:
        """Return how many collections L1BM holds beside those on their way, and where they lie."""
        found, words = self.route, self.target.words("l1bm")
        if not found.above:
            return words // (found.sent * self.burst), 0
        first = 2 * found.sent * self.burst
        return (words - first) // (found.landed * self.burst), first

    def _landing(self, number: int) -> int:
        count, first = self._buffers()
        return first + number % count * self.route.landed * self.burst

    def _collect(self, number: int) -> Iterator[Line]:
        found, job = self.route, self.jobs[number]
        cycles = self.target.cycles
        memory = self.one.location.memory
        shape = self.shape
        for turn in range(-(-len(job.sent) // cycles)):
            words = list(job.sent[turn * cycles : (turn + 1) * cycles])
            words += [words[-1]] * (cycles - len(words))
            at = tuple(shape.vector * (row + shape.rows * block) for block, row in words)
            landing = self._landing(number) + turn * found.landed
            half = number % 2 * self.burst + turn
            below = half * found.sent if found.above else landing
            source: Operand = PeOperand(memory, at, self.one.name)
            if self.one.dtype is not MNDtype.HALF:
                wide = PeOperand(memory, at, self.one.name, words=self.kind.words, reduce=True)
                letter = self.kind.letter
                yield Step((Instruction("alu", f"{letter}passa", (wide,), NOWHERE),))
                source = Special("aluf")
            goal = BlockOperand("l1bm", below, found.sent)
            yield Step((Instruction("l1bm", "l1bmd", (source,), (goal,)),))
        for turn in range(-(-len(job.sent) // cycles)):
            half = number % 2 * self.burst + turn
            yield from found.climb(half * found.sent, half * found.above)
        for turn in range(-(-len(job.sent) // cycles)):
            half = number % 2 * self.burst + turn
            landing = self._landing(number) + turn * found.landed
            yield from found.land(half * found.above, landing)

    def _work(self, number: int) -> Iterator[Line]:
        job, shape, cycles = self.jobs[number], self.shape, self.target.cycles
        steps: dict[int, list[tuple[int, int, int]]] = {}
        for index, (block, row) in enumerate(job.sent):
            steps.setdefault(block, []).append((row, *divmod(index, cycles)))
        for block, sent in steps.items():
            bank = "xy"[(job.turn * shape.sums + block) % 2]
            if sent[0][0] == job.first:
                tile = self.kind.rows(self.target) * shape.row
                at = tile * (block + shape.sums * job.tile)
                for source, write in tile_pairs(
                    self.kind, self.other, at, shape.row, bank, self.target
                ):
                    yield Step((convert(self.kind, source),))
                    yield Step((write,))
            for row, turn, cycle in sent:
                landing = self._landing(number) + turn * self.route.landed
                for place, group in enumerate(g for g in self.groups if g.cycle == cycle):
                    if any(self._exists(row, sender) for sender in group.sender):
                        yield from self._vectors(job, block, bank, row, place, group, landing)

    def _exists(self, row: int, sender: int) -> bool:
        return sender + self.shape.own * (row % self.shape.each) < self.shape.limit

    def _vectors(
        self, job: _Job, block: int, bank: str, row: int, place: int, group: _Group, landing: int
    ) -> Iterator[Line]:
        """Bring, convert and multiply the vectors of one step."""
        per_row = len(self.groups) // self.target.cycles
        number = (row - job.first) * per_row + place
        yield self._bring(landing + group.at)
        yield self._convert
        if 0 < block < self.shape.sums - 1:
            # Most lines are alike but for their addresses: each is made once.
            key = bank, number
            if key not in self._sums:
                register = self._register(number)
                self._sums[key] = self._product(bank, register, register)
            yield self._sums[key]
            return
        yield from self._ends(job, block, bank, row, number, group)

    def _bring(self, at: int) -> Step:
        if at not in self._brought:
            words = self.target.transfer("l1bmm", "to_pe").source_words
            source = BlockOperand("l1bm", at, words)
            self._brought[at] = Step((Instruction("l1bm", "l1bmm", (source,), NOWHERE),))
        return self._brought[at]

    def _ends(
        self, job: _Job, block: int, bank: str, row: int, number: int, group: _Group
    ) -> Iterator[Step]:
        """Yield the product of the first block, or of the last, whose result goes to LM."""
        shape, kind = self.shape, self.kind
        width = WORDS_PER_LONG * kind.result
        register = self._register(number)
        added: Operand | None = register if block else None
        if not block and self.bias is not None:
            at = (kind.result * job.tile,) * self.target.cycles
            added = PeOperand(self.bias.location.memory, at, self.bias.name, words=width)
        if block < shape.sums - 1:
            yield self._product(bank, added, register)
            return
        at = tuple(
            kind.result * (sender + shape.own * (row + shape.rows * job.tile))
            for sender in group.sender
        )
        goal = PeOperand(self.out.location.memory, at, self.out.name, words=width)
        if isinstance(added, PeOperand) and added.memory == goal.memory:
            # What is added lies where the result goes, and that memory has one port.
            yield self._product(bank, added, register)
            yield Step((Instruction("alu", "lpassa", (register,), (goal,)),))
        else:
            yield self._product(bank, added, goal)

    def _product(self, bank: str, added: Operand | None, goal: Operand) -> Step:
        factors: tuple[Operand, ...] = (Special(f"l{bank}"), Special("aluf"))
        name = self.kind.letter + ("mmul" if added is None else "mfma")
        sources = factors if added is None else (*factors, added)
        return Step((Instruction("mau", name, sources, (goal,)),))

    def _register(self, index: int) -> PeOperand:
        """Return the registers that sum up the vectors of a step."""
        long = self.kind.result
        width = WORDS_PER_LONG * long
        cycles = self.target.cycles
        each = self.target.words(_FILES[0]) // (long * cycles)
        file, at = divmod(index, each)
        words = tuple((at * cycles + cycle) * long for cycle in range(cycles))
        return PeOperand(_FILES[file], words, words=width)


def rows_at_once(shape: Shape, kind: Precision, target: Target) -> int:
    """Return for how many rows of every unit the register files can sum up; 0 if for none."""
    vectors = sum(target.words(file) for file in _FILES) // kind.result
    return vectors // shape.own


def burst(found: Route, target: Target) -> int:
    """Return how many sending steps are collected together: many, but a quarter of L1BM."""
    return max(1, min(target.cycles, target.words("l1bm") // (4 * found.landed)))


def steps_of(shape: Shape, share: int, node: MNNode, graph: MNGraph, target: Target) -> int:
    """Count about the steps of a product of this shape."""
    kind, found = precision_of(node), route(share, target)
    fill = tile_steps(kind, graph.values[node.inputs[1]], shape.row, target)
    most = rows_at_once(shape, kind, target)
    blocks = -(-shape.rows // most)
    rows = shape.rows // shape.each * shape.limit
    work = shape.sums * (blocks * fill + -(-rows // target.cycles))
    sends = -(-shape.sums * shape.rows // target.cycles)
    # Sending keeps L1BM from giving for some steps.
    gap = 3 * -(-sends // burst(found, target)) + sends
    return shape.tiles * max(work + gap, sends * found.steps)


def cost(node: MNNode, graph: MNGraph, target: Target) -> int:
    """Count about the steps."""
    found = _along(node, graph)
    assert found is not None
    out, roles = layout_of(graph.values[node.outputs[0]]), roles_of(node, graph)
    n, rows = unit_digits(out, roles.c[2]), unit_digits(out, found[1])
    split = Split(found[0], tuple(n), tuple(rows))
    return steps_of(shape_of(node, graph, split, target), split.share, node, graph, target)


def emit(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Line]:
    """Yield the code."""
    yield from _Code(node, graph, target).lines()
