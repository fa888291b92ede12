"""The code of products whose vectors come through L1BM (:mod:`.streamed`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from ...code.lines import (
    BlockOperand,
    Forward,
    Line,
    MatrixOperand,
    Operand,
    PeOperand,
    Step,
    alu_step,
    single_step,
)
from ...code.nest import Nest, alike, runs, whole_runs
from ...graph.dtypes import MNDtype
from ...graph.graph import Location, MNGraph, MNNode
from ...graph.plan import Streamed
from ...machine import REGISTER_FILES, WORDS_PER_LONG, Target
from .layouts import l1bs_of
from .roles import bias_of, precision_of
from .route import Route, route
from .schedule import Schedule
from .streamed import burst, landings, plan_of, rows_at_once, shape_of, wanted, ways
from .tiles import NOWHERE, convert, tile_pairs


@dataclass(frozen=True)
class _Group:
    """The vectors of one step: their place in L1BM, the units and the cycle that sent them."""

    at: int
    sender: tuple[int, ...]
    cycle: int


#: The block of the contracted axis and the row of each sent long word.
_Sent = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class _Job:
    """Vectors that are collected together.

    They belong to block ``tile`` of the columns, to the rows from ``first`` on, and to pass
    ``turn`` over the matrix. Job ``number`` is collected while the one before it is worked on.
    """

    number: int
    turn: int
    tile: int
    first: int
    sent: _Sent


class _Code:
    """The code of one product."""

    def __init__(self, node: MNNode, graph: MNGraph, plan: Streamed, target: Target):
        self.target, self.kind = target, precision_of(node, target)
        self.shape = shape_of(node, graph, plan, target)
        self.route = route(l1bs_of(plan.columns), target)
        self.one, self.other, self.out = (
            graph.values[name] for name in (*node.inputs[:2], node.outputs[0])
        )
        bias = bias_of(node)
        self.bias = None if bias is None else graph.values[bias]
        self.banks = tuple(target.banks)
        self.groups = tuple(self._groups(self.route))
        #: number of sending steps that are collected together
        self.burst = burst(self.route, target)
        #: where vectors lie in L2BM: at its end, because downloads begin at its start
        room = target.words("l2bm") - 2 * self.burst * self.route.above
        self.above = room // max(1, self.route.above) * self.route.above
        self.landings = landings(self.route, target)
        self._convert = Step((convert(self.kind, Forward("l1bm")),))
        self._brought: dict[int, Step] = {}
        self._sums: dict[tuple[str, int], Step] = {}

    def _groups(self, found: Route) -> Iterator[_Group]:
        pes = self.target.counts["pe"]
        for start in found.steps_of_vectors(self.target.cycles):
            vectors = found.order[start : start + self.target.cycles]
            yield _Group(start * pes, tuple(sender for sender, _ in vectors), vectors[0][1])

    def code(self) -> Nest:
        """Yield all lines; the next vectors are collected before the work on these begins."""
        shape = self.shape
        most = rows_at_once(self.route, self.kind, self.target)
        passes = [
            [(block, row) for block in range(shape.sums) for row in rows]
            for rows in runs(range(shape.rows), most)
        ]
        size = self.burst * self.target.cycles
        jobs, number = [runs(words, size) for words in passes], 0
        yield from self._collect(0, jobs[0][0])
        for index, sent in enumerate(jobs):
            behind = jobs[index + 1][0] if index + 1 < len(jobs) else ()
            start = _Job(number, index * shape.tiles, 0, index * most, ())
            yield from self._passes(start, sent, behind)
            number += shape.tiles * len(sent)

    def _passes(self, start: _Job, sent: Sequence[_Sent], behind: _Sent) -> Nest:
        """Yield the lines of some rows for all blocks of columns; ``behind`` is sent after them."""
        tiles, last = self.shape.tiles, self.shape.sums - 1
        # Jobs with the same rows take the same, but for the products of the last block.
        rows = [tuple((row, block == last) for block, row in own) for own in sent]

        def tile(number: int) -> Nest:
            after = [*sent[1:], sent[0] if number < tiles - 1 else behind]

            def job(place: int) -> Nest:
                at = start.number + number * len(sent) + place
                yield from self._collect(at + 1, after[place])
                yield from self._work(
                    _Job(at, start.turn + number, number, start.first, sent[place])
                )

            return alike(range(len(sent)), lambda place: (rows[place], len(after[place])), job)

        return alike(range(tiles), lambda number: number == tiles - 1, tile)

    def _landing(self, number: int) -> int:
        count, first = self.landings
        return first + number % count * self.route.landed * self.burst

    def _collect(self, number: int, sent: _Sent) -> Iterator[Line]:
        """Collect long words in L1BM, and let their vectors land there."""
        found = self.route
        cycles = self.target.cycles
        memory = self.one.location.memory
        shape = self.shape
        for turn, words in enumerate(whole_runs(sent, cycles)):
            at = tuple(shape.vector * (row + shape.rows * block) for block, row in words)
            landing = self._landing(number) + turn * found.landed
            half = number % 2 * self.burst + turn
            below = half * found.sent if found.above else landing
            source: Operand = PeOperand(memory, at, self.one.name)
            if self.one.dtype is not MNDtype.HALF:
                wide = PeOperand(memory, at, self.one.name, words=self.kind.words, reduce=True)
                letter = self.kind.letter
                yield alu_step(f"{letter}passa", (wide,), NOWHERE)
                source = Forward("alu")
            goal = BlockOperand("l1bm", below, found.sent)
            yield single_step("l1bm", "l1bmd", (source,), goal)
        for turn in range(-(-len(sent) // cycles)):
            half = number % 2 * self.burst + turn
            yield from found.climb(half * found.sent, self.above + half * found.above)
        for turn in range(-(-len(sent) // cycles)):
            half = number % 2 * self.burst + turn
            landing = self._landing(number) + turn * found.landed
            yield from found.land(self.above + half * found.above, landing)

    def _work(self, job: _Job) -> Iterator[Line]:
        """Write tiles, and bring, convert and multiply vectors."""
        shape, cycles = self.shape, self.target.cycles
        steps: dict[int, list[tuple[int, int, int]]] = {}
        for index, (block, row) in enumerate(job.sent):
            steps.setdefault(block, []).append((row, *divmod(index, cycles)))
        for block, sent in steps.items():
            bank = self.banks[(job.turn * shape.sums + block) % len(self.banks)]
            if sent[0][0] == job.first:
                tile = self.kind.rows * shape.row
                at = tile * (block + shape.sums * job.tile)
                for source, (write,) in tile_pairs(
                    self.kind, self.other, at, shape.row, bank, self.target
                ):
                    yield Step((convert(self.kind, source),))
                    yield Step((write,))
            for row, turn, cycle in sent:
                landing = self._landing(job.number) + turn * self.route.landed
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
            # Products of inner blocks depend only on bank and register: each is made once.
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
            self._brought[at] = single_step("l1bm", "l1bmm", (source,), NOWHERE)
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
            # The bias lies in the memory of the result, and that memory has one port.
            yield self._product(bank, added, register)
            yield alu_step("lpassa", (register,), goal)
        else:
            yield self._product(bank, added, goal)

    def _product(self, bank: str, added: Operand | None, goal: Operand) -> Step:
        factors: tuple[Operand, ...] = (MatrixOperand(bank), Forward("alu"))
        name = self.kind.letter + ("mmul" if added is None else "mfma")
        sources = factors if added is None else (*factors, added)
        return single_step("mau", name, sources, goal)

    def _register(self, index: int) -> PeOperand:
        """Return the registers that hold the sums of the vectors of a step."""
        long = self.kind.result
        width = WORDS_PER_LONG * long
        cycles = self.target.cycles
        each = self.target.words(REGISTER_FILES[0]) // (long * cycles)
        file, at = divmod(index, each)
        words = tuple((at * cycles + cycle) * long for cycle in range(cycles))
        return PeOperand(REGISTER_FILES[file], words, words=width)


def _code(node: MNNode, graph: MNGraph, target: Target) -> tuple[Nest, Nest]:
    return _Code(node, graph, plan_of(node), target).code(), ()


def _counted(node: MNNode, graph: MNGraph, target: Target) -> Hashable:
    plan, name = plan_of(node), bias_of(node)
    return (
        (shape_of(node, graph, plan, target), l1bs_of(plan.columns), precision_of(node, target)),
        tuple(graph.values[name].dtype for name in node.inputs[:2]),
        name is not None and graph.values[name].location == graph.values[node.outputs[0]].location,
    )


STREAMED = Schedule(Streamed, wanted, _counted, _code, ways, Location.LM0, scattered=True)
