"""Sums over the units that share the contracted axis of a product: all L1Bs, all groups, or both.

The reduction network above L1BM adds up the L1Bs of an L2B. Groups meet in the DRAMs: an MV adds up
the L2Bs of all groups that have one number, and leaves a part of the sums in each DRAM. Another MV
brings all parts to each of these L2Bs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from ...code.lines import (
    BlockOperand,
    Forward,
    Line,
    Move,
    PeOperand,
    Special,
    alu_step,
    single_step,
)
from ...code.nest import Nest, alike, each, runs, whole_runs
from ...graph.dtypes import MNDtype
from ...graph.graph import MNValue
from ...machine import Target
from ..scratch import vector
from ..switch.l1bm_vectors import l1bm_room


@dataclass(frozen=True)
class Shared:
    """Which units share the terms, and the value in DRAM whose words their sums take on the way."""

    l1bs: bool
    groups: bool
    sums: str | None = None


def sum_units(
    value: MNValue, added: MNValue | None, rows: Mapping[int, int], over: Shared, target: Target
) -> Nest:
    """Replace the long words ``rows`` of ``value`` by their sums over the units, in every unit.

    ``rows`` maps each long word to the long word of ``added`` that is added to its sum once. All
    are singles, or all doubles.
    """
    vectors = [tuple(words) for words in whole_runs(sorted(rows), target.cycles)]
    way = _Way(value, added, rows, over, target)
    parts = runs(vectors, way.most)
    return alike(runs(parts, way.together), lambda own: tuple(map(len, own)), way.code)


def sums_words(count: int, dtype: MNDtype, over: Shared, target: Target) -> int:
    """Return how many long words of each DRAM the sums of ``count`` long words take on the way."""
    if not over.groups:
        return 0
    way = _Way(None, None, {}, over, target, _letter(dtype))
    parts = -(-count // (target.cycles * way.most))
    return min(parts, way.together) * way.part


def groups_meet(dtype: MNDtype, l1bs: bool, target: Target) -> bool:
    """Whether there are several groups, and L2BM has room for a vector of sums on its way."""
    over = Shared(l1bs, groups=True)
    return target.groups > 1 and _Way(None, None, {}, over, target, _letter(dtype)).possible


def _letter(dtype: MNDtype) -> str:
    return "d" if dtype is MNDtype.DOUBLE else "f"


class _Way:
    """The way up and down. Vectors go together: ``most`` make a part, which has one MV each way."""

    def __init__(
        self,
        value: MNValue | None,
        added: MNValue | None,
        rows: Mapping[int, int],
        over: Shared,
        target: Target,
        letter: str | None = None,
    ):
        self._value, self._added, self._rows = value, added, rows
        self._over, self._target = over, target
        self._letter = letter or _letter(value.dtype if value is not None else MNDtype.FLOAT)
        self._room = room = l1bm_room(target)
        self._up, self._down = (
            (f"l2bmr{self._letter}fadd", "l2bmb") if over.l1bs else ("l2bmd",) * 2
        )
        found = target.transfer(self._up, "up")
        #: long words of L1BM and of L2BM that an instruction between the two moves
        self._size = found.source_words, found.destination_words
        # Going up and coming down take half of L1BM each, and half of L2BM if MVs are between.
        half, below = target.half("l2bm"), lcm(self._size[0], room.row)
        unit = lcm(target.mv_unit, target.groups * target.mv_block, self._size[1])
        fits = target.half("l1bm") // below * below // room.words
        most = min(room.vectors // 2, fits, target.words("grf0") // target.cycles)
        if over.groups:
            pieces = half // unit * unit // self._size[1]
            most = min(most, pieces * self._size[0] // room.words)
        #: whether there is room for a vector
        self.possible = most > 0 or not over.groups
        self.most = max(1, most)
        self._below = -(-self.most * room.words // below) * below
        #: long words of L2BM, and of each DRAM, that a part takes
        self._words = -(-len(self._pieces(self.most)) * self._size[1] // unit) * unit
        self.part = self._words * target.l2bs_per_group // target.groups
        self.together = max(1, half // self._words) if over.groups else 1

    def _pieces(self, vectors: int) -> list[tuple[int, int]]:
        """Return the long words of L1BM and of L2BM where each instruction begins."""
        lower, upper = self._size
        count = -(-vectors * self._room.words // lower)
        return [(at * lower, at * upper) for at in range(count)]

    def code(self, parts: Sequence[Sequence[tuple[int, ...]]]) -> Nest:
        """Yield the code of parts that go up before the first of them comes down."""
        for number, vectors in enumerate(parts):
            yield from self._rise(number, vectors)
        for number, vectors in enumerate(parts):
            yield from self._fall(number, vectors)

    def _rise(self, number: int, vectors: Sequence[tuple[int, ...]]) -> Nest:
        base = number * self._words
        yield each(range(len(vectors)), lambda i: [self._lift(i, vectors[i])])
        yield each(
            self._pieces(len(vectors)),
            lambda at: [self._across(self._up, ("l1bm", at[0]), ("l2bm", base + at[1]))],
        )
        if self._over.groups:
            here, there = self._ends(number, base)
            yield Move(f"mvr4{self._letter}fadd", self._words, here, there)

    def _fall(self, number: int, vectors: Sequence[tuple[int, ...]]) -> Nest:
        base = number * self._words
        if self._over.groups:
            base += self.together * self._words
            here, there = self._ends(number, base)
            yield Move("mvb4", self._words, there, here)
        yield each(
            self._pieces(len(vectors)),
            lambda at: [
                self._across(self._down, ("l2bm", base + at[1]), ("l1bm", self._below + at[0]))
            ],
        )
        yield each(range(len(vectors)), lambda i: self._lower(i, vectors[i]))
        if self._added is not None:
            yield each(range(len(vectors)), lambda i: [self._kept(i, vectors[i])])

    def _ends(self, number: int, base: int) -> tuple[BlockOperand, BlockOperand]:
        """Return the words of L2BM and of the DRAMs between which an MV moves a part."""
        sums = BlockOperand("dram", number * self.part, self.part, self._over.sums)
        return BlockOperand("l2bm", base, self._words), sums

    def _lift(self, index: int, words: tuple[int, ...]) -> Line:
        assert self._value is not None
        goal = BlockOperand("l1bm", index * self._room.words, self._room.words)
        return single_step("l1bm", "l1bmd", (vector(self._value, words),), goal)

    def _across(self, mnemonic: str, source: tuple[str, int], goal: tuple[str, int]) -> Line:
        sizes = dict(zip(("l1bm", "l2bm"), self._size, strict=True))
        first, last = (BlockOperand(*one, sizes[one[0]]) for one in (source, goal))
        return single_step("l2bm", mnemonic, (first,), last)

    def _lower(self, index: int, words: tuple[int, ...]) -> Iterator[Line]:
        assert self._value is not None
        source = BlockOperand("l1bm", self._below + index * self._room.words, self._room.words)
        if self._added is None:
            yield single_step("l1bm", "l1bmd", (source,), vector(self._value, words))
            return
        more = vector(self._added, tuple(self._rows[word] for word in words))
        yield single_step("l1bm", "l1bmd", (source,), Special("nowrite"))
        # ``added`` may lie in the LM of the sums, which has one port.
        sum_ = (Forward("l1bm"), more)
        yield single_step("mau", f"{self._letter}vadd", sum_, self._register(index))

    def _kept(self, index: int, words: tuple[int, ...]) -> Line:
        assert self._value is not None
        return alu_step("lpassa", (self._register(index),), vector(self._value, words))

    def _register(self, index: int) -> PeOperand:
        first = index * self._target.cycles
        return PeOperand("grf0", tuple(range(first, first + self._target.cycles)))
