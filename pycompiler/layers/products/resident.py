"""The schedule in which every MAB holds its operands: vectors and matrix both come from LM.

The ALU converts a vector to block float while the MAU multiplies the vector of the step before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial

from ...code.lines import Forward, Instruction, MatrixOperand, Operand, PeOperand, alu_step
from ...code.nest import Nest, Repeat, alike, each, runs, whole_runs
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Layouts
from ...graph.plan import Resident
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from .addresses import Batch, Work, work_of
from .layouts import l1bs_of, l2bs_of, wanted_layouts
from .overlapped import Overlapped
from .pipelined import pipelined, product_of, vector_registers
from .roles import Precision, bias_of, precision_of, roles_of
from .schedule import Schedule
from .tails import Tails
from .tiles import Pair, tile_pairs, tile_steps, vector_operand
from .unit_sums import Shared, sum_units, sums_words

#: Numbers of terms whose vectors are converted together, at most.
_AHEAD = 4


def shared_by(node: MNNode, graph: MNGraph) -> Shared | None:
    """Return the units that share the contracted axis; None if it lies in each MAB."""
    terms = layout_of(graph.values[node.inputs[0]]).axes[roles_of(node, graph).a[2]]
    over = l1bs_of(terms) > 1, l2bs_of(terms) > 1
    return Shared(*over, node.outputs[1] if len(node.outputs) > 1 else None) if any(over) else None


def _most_vectors(kind: Precision, target: Target) -> int:
    """Return the number of vectors whose sums fit the register file."""
    return target.words("grf0") // kind.result // target.cycles * target.cycles


def _wanted(node: MNNode, graph: MNGraph, target: Target) -> Layouts | str:
    """Return layouts that keep the units of the result."""
    found = wanted_layouts(node, graph, target)
    none = "the contracted axis on some units, or terms that do not fill all of them"
    return none if found is None else found


def _code(node: MNNode, graph: MNGraph, target: Target) -> tuple[Nest, Nest]:
    return _products(node, graph, target), _sums(node, graph, target)


def _products(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Yield the code of the products of each L1B."""
    work, kind = work_of(node, graph, target), precision_of(node, target)
    one, other, out = (graph.values[n] for n in (*node.inputs[:2], node.outputs[0]))
    name = bias_of(node)
    bias = None if name is None or shared_by(node, graph) else graph.values[name]
    halves = {value.name for value in (one, other) if value.dtype is MNDtype.HALF}
    ragged = {count for *_, count in work.sums if count < kind.block}
    tails = Tails(kind, halves, ragged, target)
    yield from tails.ready((one, other))
    most = _most_vectors(kind, target)

    def blocks(
        batch: Batch, vectors: Sequence[tuple[int, int]], tiles: Sequence[tuple[int, int, int]]
    ) -> Nest:
        values = one, other, out, bias
        return _Blocks(kind, work, batch, vectors, tiles, values, tails, target).code()

    def group(batch: Batch, vectors: Sequence[tuple[int, int]]) -> Nest:
        several = _blocks_together(work, kind, len(vectors), target)
        return alike(runs(work.tiles, several), len, partial(blocks, batch, vectors))

    yield each(work.batches, lambda b: alike(runs(work.vectors, most), len, partial(group, b)))


def _counted(node: MNNode, graph: MNGraph, target: Target) -> Hashable:
    """Return what decides the number of lines of a product."""
    work, kind = work_of(node, graph, target), precision_of(node, target)
    vectors = {len(own) for own in runs(work.vectors, _most_vectors(kind, target))}
    together = [(n, _blocks_together(work, kind, n, target)) for n in sorted(vectors)]
    return (
        (kind, tuple(together), work.row, work.width, work.taps, len(work.sums)),
        tuple(count for *_, count in work.sums if count < kind.block),
        (len(work.batches), len(work.vectors), len(work.tiles), bias_of(node) is None),
        tuple(graph.values[name].dtype for name in node.inputs[:2]),
        shared_by(node, graph),
    )


def _sums(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Return the code that adds up the results of units which share the contracted axis."""
    over, name = shared_by(node, graph), bias_of(node)
    if over is None:
        return ()
    bias = None if name is None else graph.values[name]
    rows = _summed(node, graph, target)
    return sum_units(graph.values[node.outputs[0]], bias, rows, over, target)


def dram_words(node: MNNode, graph: MNGraph, target: Target) -> int:
    """Return how many long words of each DRAM the sums of a product take on their way."""
    over, dtype = shared_by(node, graph), graph.values[node.outputs[0]].dtype
    count = len(_summed(node, graph, target)) if over is not None and over.groups else 0
    return sums_words(count, dtype, over, target) if over is not None else 0


def _summed(node: MNNode, graph: MNGraph, target: Target) -> dict[int, int]:
    """Return the long words of the result, each with that of the bias that is added to it."""
    work = work_of(node, graph, target)
    return {
        at_c + c + tile[1] + part: at_bias + tile[2] + part
        for _, _, at_c, at_bias in work.batches
        for _, c in work.vectors
        for tile in work.tiles
        for part in range(work.width // WORDS_PER_LONG)
    }


def _blocks_together(work: Work, kind: Precision, vectors: int, target: Target) -> int:
    """Return how many blocks of rows are worked on together.

    If the matrix lies block behind block, as many as there are sums in the register file. Then its
    words are read in the order of their addresses, in which downloads bring them. So those of the
    next matrix may take their places one after the other. Otherwise two, which share their vectors.
    """
    if len(work.tiles) < 2:
        return 1
    groups = -(-vectors // target.cycles)
    room = max(1, _most_vectors(kind, target) // (groups * target.cycles))
    blocks = [tile[0] for tile in work.tiles]
    sums = [one[1] for one in work.sums]
    if len(sums) > 1 and blocks[0] < blocks[1] < blocks[0] + sums[1] - sums[0]:
        return room
    return min(room, 2) if _ahead(kind, groups, target) else 1


def _ahead(kind: Precision, groups: int, target: Target) -> int:
    """Return how many times so many groups of vectors may wait in registers beside as many.

    None may if there is one bank: nothing is written to it while the MAU multiplies.
    """
    return len(vector_registers(kind, target)) // (2 * groups) if len(target.banks) > 1 else 0


class _Blocks:
    """The code that computes the results of some blocks of rows for all vectors of a batch.

    Their sums lie in the register file side by side.
    """

    def __init__(
        self,
        kind: Precision,
        work: Work,
        batch: Batch,
        vectors: Sequence[tuple[int, int]],
        tiles: Sequence[tuple[int, int, int]],
        values: tuple[MNValue, MNValue, MNValue, MNValue | None],
        tails: Tails,
        target: Target,
    ):
        self.kind, self.work, self.batch, self.tiles = kind, work, batch, tiles
        self.values, self.tails, self.target = values, tails, target
        self._vectors = whole_runs(vectors, target.cycles)
        self.places, self.groups = len(tiles), len(self._vectors)
        #: whether the bias and the result need the port of one memory at once
        self._copies = len(work.sums) == 1 and values[3] is not None

    def code(self) -> Nest:
        """Yield the lines. Where blocks are ragged, those of each tap have an end of their own."""
        count = len(self.work.sums)
        turns = self.work.taps if self.tails.counts else 1
        own = count // turns

        def tap(first: int) -> Nest:
            numbers = range(first, first + own)
            whole = [n for n in numbers if self.work.sums[n][3] == self.kind.block]
            if whole:
                yield from self._whole(numbers[: len(whole)])
            for number in numbers[len(whole) :]:
                yield Repeat(self.places, partial(self._ragged, number))

        yield each(range(0, count, own), tap)
        if self._copies:
            yield Repeat(self.places * self.groups, self._copy)

    def _whole(self, numbers: range) -> Nest:
        """Yield the lines of whole blocks of terms."""
        registers = vector_registers(self.kind, self.target)
        height = tile_steps(self.kind, self.values[1], self.work.row, self.target)
        ahead = min(_AHEAD, _ahead(self.kind, self.groups, self.target))
        # Sums of one register must not follow each other at once: it is read later.
        banks = 1 if self.places * self.groups == 1 else len(self.target.banks)
        # A product waits for a line in each turn, or at the end for all vectors of a tile.
        if ahead and (self.places > 1 or self.groups < len(numbers) // banks):
            # Where the MAU is busier than the ALU, it would wait for the next tiles.
            ahead = 1 if self.groups > height else ahead
            yield from Overlapped(self, numbers, height, ahead, registers).code()
            return
        tiles = [list(runs([(n, place) for place in range(self.places)], banks)) for n in numbers]
        if self.places == 1:
            tiles = [[[turn for ((turn,),) in some]] for some in runs(tiles, banks)]
        yield from alike(tiles, lambda own: tuple(map(len, own)), self._turns)

    def _turns(self, turns: Sequence[Sequence[tuple[int, int]]]) -> Nest:
        return alike(turns, len, self._turn)

    def _turn(self, tiles: Sequence[tuple[int, int]]) -> Nest:
        """Return the lines of tiles that are written one behind the other, each to its bank.

        After them come the vectors of all of them. So the memories of both operands have pauses
        that are long enough for a write, and downloads of the next operands come at the same time.
        """
        pairs = [pair for tile in tiles for pair in self.rows(*tile)]
        pairs += [pair for tile in tiles for pair in self._products(*tile)]
        return pipelined(pairs, self.kind, vector_registers(self.kind, self.target))

    def _ragged(self, number: int, place: int) -> Nest:
        pairs = [*self.rows(number, place), *self._products(number, place)]
        return self.tails.lines(pairs, self.work.sums[number][3])

    def rows(self, number: int, place: int) -> list[Pair]:
        """Return the pairs that write a tile to its bank."""
        _, sum_b, word, count = self.work.sums[number]
        at, alone = self.batch[1] + self.tiles[place][0] + sum_b, count < self.kind.block
        bank = self._bank(number, place)
        return tile_pairs(
            self.kind, self.values[1], at, self.work.row, bank, self.target, word, alone=alone
        )

    def _bank(self, number: int, place: int) -> str:
        banks = tuple(self.target.banks)
        return banks[(number * self.places + place) % len(banks)]

    def vector(self, number: int, group: int) -> PeOperand:
        """Return the operand that reads a group of vectors."""
        sum_a, _, word, _ = self.work.sums[number]
        words = tuple(self.batch[0] + a + sum_a for a, _ in self._vectors[group])
        return vector_operand(self.kind, self.values[0], words, word)

    def _products(self, number: int, place: int) -> Iterator[Pair]:
        for group in range(self.groups):
            made = self.product(number, place, group, Forward("alu"))
            yield self.vector(number, group), made

    def product(
        self, number: int, place: int, group: int, vector: Operand
    ) -> tuple[Instruction, ...]:
        """Return the instructions that multiply a group of converted vectors by a tile."""
        goal: Operand = self._register(place, group)
        sources: tuple[Operand, ...] = (MatrixOperand(self._bank(number, place)), vector)
        bias, last = self.values[3], number == len(self.work.sums) - 1
        if number:
            sources += (goal,)
        elif bias is not None:
            words = (self.batch[3] + self.tiles[place][2],) * self.target.cycles
            width = WORDS_PER_LONG * self.kind.result
            sources += (PeOperand(bias.location.memory, words, bias.name, words=width),)
        if last and not self._copies:
            goal = self._result(place, group)
        ending = "r" if last and self.work.rounded else ""
        return product_of(self.kind, sources, goal, ending)

    def _register(self, place: int, group: int) -> PeOperand:
        """Return the registers of the sums of a group."""
        cycles, long = self.target.cycles, self.kind.result
        first = (place * self.groups + group) * cycles
        words = tuple((first + c) * long for c in range(cycles))
        return PeOperand("grf0", words, words=WORDS_PER_LONG * long)

    def _result(self, place: int, group: int) -> PeOperand:
        out = self.values[2]
        words = tuple(self.batch[2] + c + self.tiles[place][1] for _, c in self._vectors[group])
        return PeOperand(out.location.memory, words, out.name, words=self.work.width)

    def _copy(self, number: int) -> Nest:
        place, group = divmod(number, self.groups)
        part = self._register(place, group)._replace(words=self.work.width)
        return [alu_step("lpassa", (part,), self._result(place, group))]


RESIDENT = Schedule(Resident, _wanted, _counted, _code)
