"""The code of MNCoreWeightGradient.

A MAB contracts its own pixels. For that they must lie across its words and PEs, where the channels
lie. A matrix register turns them: rows are written, columns are read. The gradients of a block of
pixels are turned once, and become the matrix of a product. The pixels are turned for each tap, and
become its vectors. The sums of all MABs are then joined like those of any reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from ...code.lines import (
    Forward,
    Instruction,
    Line,
    MatrixOperand,
    Operand,
    PeOperand,
    Step,
    alu_step,
)
from ...code.nest import Nest, alike, each, runs
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from ..products.addresses import axis_addresses
from ..products.pipelined import pipelined, product_of
from ..products.roles import Precision, precision_of, roles_of
from ..products.tiles import Pair, vector_operand
from ..scratch import Scratch, Words
from .layouts import CHANNELS, COLUMNS, TAPS


@dataclass(frozen=True)
class Work:
    """The addresses that a PE works on, in long words.

    ``pixels`` has for each pixel of a result its addresses in pixels and gradients. ``taps`` has
    for each tap what it adds to the address of pixels, and its address in the result. ``blocks``
    are the blocks of channels: address in pixels, and for each channel the address in the result.
    ``columns`` are the blocks of the gradients' channels: addresses in gradients and result.
    """

    pixels: tuple[tuple[int, int], ...]
    taps: tuple[tuple[int, int], ...]
    blocks: tuple[tuple[int, tuple[int, ...]], ...]
    columns: tuple[tuple[int, int], ...]


def work_of(node: MNNode, graph: MNGraph, target: Target) -> Work:
    """Return the addresses that a PE works on."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    ours, theirs, goal = (layout_of(graph.values[name]) for name in (*node.inputs, node.outputs[0]))
    kernel = dict(node.attributes)["kernel_shape"]
    assert isinstance(kernel, tuple)
    pixels, taps = [(0, 0)], [(0, 0)]
    axis = TAPS
    for index, (mine, their) in enumerate(zip(roles.a[0], roles.c[0], strict=True)):
        assert mine is not None
        here, there = axis_addresses(ours.axes[mine], 1), axis_addresses(theirs.axes[their], 1)
        window = roles.windows.get(index)
        stride = 1 if window is None else window.stride
        own = [(here[place * stride], at) for place, at in enumerate(there)]
        pixels = [(a + c, b + d) for a, b in pixels for c, d in own]
        if window is not None and kernel[window.axis - TAPS]:
            at = axis_addresses(goal.axes[axis], 1)
            more = [(here[tap * window.dilation] if tap else 0, at[tap]) for tap in range(len(at))]
            taps = [(a + c, b + d) for a, b in taps for c, d in more]
            axis += 1
    channels = axis_addresses(goal.axes[CHANNELS], 1)
    blocks = axis_addresses(ours.axes[roles.a[2]], kind.rows)
    assert roles.c[2] is not None
    columns = zip(
        axis_addresses(theirs.axes[roles.c[2]], kind.rows),
        axis_addresses(goal.axes[COLUMNS], kind.rows),
        strict=True,
    )
    return Work(
        tuple(pixels),
        tuple(taps),
        tuple(
            (at, tuple(channels[kind.rows * number : kind.rows * (number + 1)]))
            for number, at in enumerate(blocks)
            if kind.rows * number < roles.k
        ),
        tuple(columns),
    )


@dataclass(frozen=True)
class Parts:
    """How the work is cut so that it fits the register files.

    ``lanes`` pixels are contracted at once. ``turned`` blocks of pixels, for all columns, stay
    turned beside ``group`` blocks of taps and channels, whose sums fit for all columns.
    """

    lanes: int
    turned: int
    group: int


def parts_of(work: Work, kind: Precision, target: Target) -> Parts:
    """Return how the work is cut."""
    each, columns = kind.rows, len(work.columns)
    sums = target.words("grf0") // (each * kind.result)
    room = target.words("grf1") // each
    group = max(1, min(sums // columns, len(work.taps) * len(work.blocks), room // 2))
    blocks = -(-len(work.pixels) // each)
    # One block of long words is left for the end of the pixels.
    return Parts(each, max(1, min(blocks, (room - group - 1) // columns)), group)


def sums_code(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Yield the code that sums up the pixels of each MAB."""
    work, kind = work_of(node, graph, target), precision_of(node, target)
    one, other, goal = (graph.values[name] for name in (*node.inputs, node.outputs[0]))
    parts = parts_of(work, kind, target)
    blocks = runs(work.pixels, parts.lanes)
    groups = runs(list(product(work.taps, work.blocks)), parts.group)
    code = _Code(kind, work, parts, (one, other, goal), target)

    def chunk(number: int) -> Nest:
        own = chunks[number]
        yield from code.turn_gradients(own)
        group = partial(code.group, chunk=own, begin=number == 0)
        yield from alike(groups, lambda pairs: [len(channels) for _, (_, channels) in pairs], group)

    chunks = runs(blocks, parts.turned)
    return alike(range(len(chunks)), lambda n: (n == 0, [*map(len, chunks[n])]), chunk)


_PairOf = tuple[tuple[int, int], tuple[int, tuple[int, ...]]]
_Pixels = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class _Code:
    kind: Precision
    work: Work
    parts: Parts
    values: tuple[MNValue, MNValue, MNValue]
    target: Target

    @property
    def _dtype(self) -> MNDtype:
        return MNDtype.HALF if _at_once(self.kind) > 1 else MNDtype.FLOAT

    def _matrix(self, block: int, column: int) -> Scratch:
        """Return where the turned gradients of a block of pixels lie."""
        at = (self.parts.group + block * len(self.work.columns) + column) * self.kind.rows
        return Scratch("grf1", at, self._dtype)

    def turn_gradients(self, chunk: Sequence[_Pixels]) -> Nest:
        """Yield the lines that turn the gradients of all columns."""

        def column(number: int, place: int) -> Nest:
            rows = [at + self.work.columns[place][0] for _, at in chunk[number]]
            return self._turned(self.values[1], rows, self._matrix(number, place), 0)

        columns = range(len(self.work.columns))
        numbers = range(len(chunk))
        return alike(
            numbers, lambda n: len(chunk[n]), lambda n: [each(columns, partial(column, n))]
        )

    def group(self, pairs: Sequence[_PairOf], chunk: Sequence[_Pixels], *, begin: bool) -> Nest:
        """Yield the lines of some taps and blocks of channels for all columns."""
        words = _words(self.kind)

        def block(number: int) -> Nest:
            yield each(range(len(pairs)), lambda index: pixels(number, index))
            yield each(range(len(self.work.columns)), lambda place: column(number, place))

        def pixels(number: int, index: int) -> Nest:
            (tap, _), (at, _) = pairs[index]
            rows = [pixel + tap + at for pixel, _ in chunk[number]]
            into = Scratch("grf1", index * self.kind.rows, self._dtype)
            return self._turned(self.values[0], rows, into, 1)

        def column(number: int, place: int) -> Nest:
            yield each(range(words), lambda word: products(number, place, word))
            if len(chunk) == words == 1 and not begin:
                # Bring the sums of the column from the register file to LM.
                for _, _, register, held in self._held(pairs, place):
                    yield alu_step("lpassa", (register,), held)

        def products(number: int, place: int, word: int) -> Nest:
            fresh = number == word == 0
            last = number == len(chunk) - 1 and word == words - 1
            matrix = self._matrix(number, place)
            return self._products(pairs, place, matrix, word, fresh, last, begin)

        return alike(range(len(chunk)), lambda number: len(chunk[number]), block)

    def _products(
        self,
        pairs: Sequence[_PairOf],
        place: int,
        matrix: Scratch,
        word: int,
        fresh: bool,
        last: bool,
        begin: bool,
    ) -> Nest:
        """Yield the lines of the products by one word of a matrix; ``fresh``: the first sums."""
        bank = next(iter(self.target.banks))
        lines = self._load(matrix, bank, word)
        for index, rows, register, held in self._held(pairs, place):
            vectors = Scratch("grf1", index * self.kind.rows, self._dtype)
            sources: tuple[Operand, ...] = (MatrixOperand(bank), Forward("alu"))
            if not fresh:
                sources += (register,)
            elif not begin:
                sources += (held,)
            # LM has one port: a step reads the old sums or writes the new ones.
            direct = last and (begin or not fresh)
            made = product_of(self.kind, sources, held if direct else register, "")
            lines.append((vector_operand(self.kind, vectors, vectors.at(rows), word), made))
        return pipelined(lines, self.kind)

    def _held(
        self, pairs: Sequence[_PairOf], place: int
    ) -> Iterator[tuple[int, list[int], PeOperand, PeOperand]]:
        """Yield the vectors of sums: the pair, the rows, and their place in registers and in LM."""
        kind, cycles, memory = self.kind, self.target.cycles, self.values[2]
        width = WORDS_PER_LONG * kind.result
        for index, ((_, tap), (_, channels)) in enumerate(pairs):
            sums = (place * len(pairs) + index) * kind.rows * kind.result
            for first in range(0, len(channels), cycles):
                rows = [min(first + c, len(channels) - 1) for c in range(cycles)]
                base = tuple(sums + row * kind.result for row in rows)
                there = tuple(self.work.columns[place][1] + tap + channels[row] for row in rows)
                held = PeOperand(memory.location.memory, there, memory.name, words=width)
                yield index, rows, PeOperand("grf0", base, words=width), held

    def _turned(
        self, value: MNValue, rows: Sequence[int], into: Scratch, bank: int
    ) -> Iterator[Line]:
        """Yield the lines that turn long words ``rows``, and zeros behind them, to columns."""
        kind, cycles = self.kind, self.target.cycles
        name, each = tuple(self.target.banks)[bank], _at_once(kind)
        full = len(rows) // cycles * cycles if len(rows) < kind.rows else kind.rows
        source: Words = value
        if full < kind.rows:
            yield from self._filled(value, rows[full:], full)
        for first in range(0, kind.rows, cycles):
            if first < full:
                here = _row(kind, source, tuple(rows[first : first + cycles]))
            else:
                here = _row(kind, self._tail, self._tail.at(range(first, first + cycles)))
            write = Instruction(
                "mwrite", f"{kind.letter}mwrite", (here,), (MatrixOperand(name, first),)
            )
            yield Step((write,))
        for first in range(0, kind.rows, cycles * each):
            at = into.at(range(first, first + cycles * each, each))
            goal = PeOperand("grf1", at, words=each * WORDS_PER_LONG)
            read = MatrixOperand(name, first, each * WORDS_PER_LONG)
            yield Step((Instruction("mread", f"{kind.letter}mread", (read,), (goal,)),))

    @property
    def _tail(self) -> Scratch:
        """The last long words of the register file: rows of a block that the pixels do not fill."""
        return Scratch("grf1", self.target.words("grf1") - self.kind.rows, self._dtype)

    def _filled(self, value: MNValue, rows: Sequence[int], full: int) -> Iterator[Line]:
        """Yield the lines that copy ``rows`` behind the first ``full`` ones, and zeros."""
        kind, cycles, tail = self.kind, self.target.cycles, self._tail
        for first in range(full, kind.rows, cycles):
            goal = PeOperand("grf1", tail.at(range(first, first + cycles)))
            yield alu_step("zero", (), goal)
        if not rows:
            return
        chosen = [min(c, len(rows) - 1) for c in range(cycles)]
        here = _row(kind, value, tuple(rows[c] for c in chosen))
        goal = PeOperand("grf1", tail.at([full + c for c in chosen]))
        if here.reduce:
            # The MAU rounds singles to halves as it writes.
            moved = Instruction("mau", "hvpassar", (here,), (goal,))
            yield Step((moved,))
        else:
            yield alu_step("lpassa", (here,), goal)

    def _load(self, matrix: Scratch, bank: str, word: int) -> list[Pair]:
        """Return the pairs that fill the matrix register for a product."""
        kind, cycles, each = self.kind, self.target.cycles, _at_once(self.kind)
        out: list[Pair] = []
        for first in range(0, kind.rows, cycles * each):
            words = matrix.at(range(first, first + cycles * each, each))
            if each > 1:
                source = PeOperand("grf1", words, words=each * WORDS_PER_LONG)
                place = MatrixOperand(bank, first, each * WORDS_PER_LONG)
            else:
                source, place = (
                    vector_operand(kind, matrix, words, word),
                    MatrixOperand(bank, first),
                )
            write = Instruction("mwrite", f"{kind.letter}mwrite", (Forward("alu"),), (place,))
            out.append((source, (write,)))
        return out


def _at_once(kind: Precision) -> int:
    """Return the rows or columns of a matrix register that one access can take: two of halves."""
    return 2 if kind.words > WORDS_PER_LONG else 1


def _words(kind: Precision) -> int:
    """Return how many vectors a turned long word has: one for each word of singles."""
    return max(1, WORDS_PER_LONG // kind.words)


def _row(kind: Precision, value: Words, words: tuple[int, ...]) -> PeOperand:
    """Return the operand that reads one row per cycle; singles are rounded to halves for halves."""
    if _at_once(kind) > 1 and value.dtype is not MNDtype.HALF:
        return vector_operand(kind, value, words)
    return PeOperand(value.location.memory, words, value.name)
