"""The code of one pass.

The crate ``switches`` decides which way the words take, and names the lines. Here they become
instructions, one method for each name: rows go up to L1BM and L2BM, cross over, and come down.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from emu2 import _core

from ...code.lines import (
    BlockOperand,
    Forward,
    Literal,
    Move,
    Operand,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
    single_step,
)
from ...code.nest import Nest, alike
from ...errors import error
from ...graph.graph import MNNode, MNValue
from ...graph.layout import Level
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from ..base import layout_of
from ..scratch import Scratch, Words, vector
from .facts import ADDRESSED_BITS, NUMBER, facts
from .l1bm_vectors import l1bm_room, shifts
from .pass_moves import LayoutChange, Moves
from .pass_search import moves
from .unit_masks import NUMBERS, UnitMasks, choose_units

_CONSTANTS, _SUM = "grf1", "grf0"
_FORWARD, _NOWHERE = Forward("alu"), Special("nowrite")


def pass_code(
    source: MNValue, result: MNValue, level: Level, target: Target, aside: str | None = None
) -> Nest:
    """Return the code that brings ``source`` into the layout of ``result``, both in LM.

    ``aside`` is the value in DRAM whose words may be used on the way.
    """
    change = LayoutChange(layout_of(source), layout_of(result), source.shape, source.dtype)
    whole: Mapping[Level, int] = {}
    parts = [(moves(change, level, target), whole)]
    return move_code(parts, level, source, result, target, aside=aside)


def move_code(
    parts: Sequence[tuple[Moves, Mapping[Level, int]]],
    level: Level,
    source: Words,
    result: Words,
    target: Target,
    *,
    aside: str | None = None,
) -> Nest:
    """Return the code of moves over the units, or words, of ``level``.

    With the moves of each part stand the units whose PEs write: a bit for each unit of a level; of
    other levels, all do. No part reads what another writes. ``aside`` is the value in DRAM whose
    words may be used on the way between L2Bs. P0606 if rows that must go together exceed L1BM or
    L2BM, or if no MV can move a row of an L2B.
    """
    known = facts(source.dtype, target)
    row = known.row * target.counts["l1b"]
    far = level is Level.L2B and any((found.source != found.result).any() for found, _ in parts)
    if far and row % target.mv_unit:
        reason = (
            f"a row of an L2B, {row} long words, is no multiple of the unit of MVs, "
            f"{target.mv_unit}, so that values cannot move between L2Bs"
        )
        raise error("P0606", spec=target.name, reason=reason)
    apart = source.location.memory != result.location.memory
    place = _is_even(source), _is_even(result), apart, aside is not None
    given = []
    for found, units in parts:
        chosen = units.get(Level.L1B, 0)
        alone = chosen and chosen & (chosen - 1) == 0 and known.row % target.mv_unit == 0
        columns = (found.result, found.result_at, found.source, found.source_at)
        given.append((columns, bool(units), chosen.bit_length() - 1 if alone else None))
    lines, missing = _core.move_lines(given, known, NUMBER[level], place)
    if missing is not None:
        memory, words, room = missing
        reason = (
            f"a switch between {level.value}s of one step needs {words} long words of {memory}, "
            f"there is room for {room}"
        )
        raise error("P0606", spec=target.name, reason=reason)
    around = [units for _, units in parts]
    code = _Code(level, source, result, target, around, aside)
    return alike(lines, _taken, lambda line: getattr(code, line[0])(*line[1:]))


def aside_of(node: MNNode) -> str:
    """Return the value in DRAM whose words a node that crosses L2Bs uses on the way.

    A rewrite makes it the second result of the node when layouts are known.
    """
    return node.outputs[1] if len(node.outputs) > 1 else f"{node.outputs[0]}.aside"


def aside_words(target: Target) -> int:
    """Return the long words of each DRAM that a pass between L2Bs uses at most.

    `crossing.rs` sends so many before the first of them come down.
    """
    return target.l2bs_per_group * target.words("l2bm") // 2


def _taken(line: tuple[Any, ...]) -> Hashable:
    """Return a key that is the same for lines that take the same slots and memories."""
    if line[0] in ("choose", "mv", "mv_all"):
        return line
    return line[0], *(one if isinstance(one, bool) else type(one) for one in line[1:])


def _is_even(place: Words) -> bool:
    """Whether the words of a place begin at an even address; values begin at whole vectors."""
    return not isinstance(place, Scratch) or place.base % LONGS_PER_WIDE == 0


class _Code:
    """Makes the lines that the crate names: see ``Line`` in its ``code.rs``."""

    def __init__(
        self,
        level: Level,
        source: Words,
        result: Words,
        target: Target,
        around: Sequence[Mapping[Level, int]],
        aside: str | None,
    ):
        self._level, self._around, self._target = level, around, target
        self._source, self._result, self._aside = source, result, aside
        self._masks = UnitMasks(NUMBERS[level], target) if level in NUMBERS else None
        self._shift = shifts(target)
        self._words = l1bm_room(target).words

    # -- masks and operands ------------------------------------------------------------------

    def choose(self, part: int, units: int, register: int) -> Nest:
        if self._around[part]:
            chosen = dict(self._around[part])
            if units:
                chosen[self._level] = chosen.get(self._level, units) & units
            made: list[Step] = []
            choose_units(chosen, made, self._target, register)
            return made
        return () if self._masks is None else self._masks.make(units, register)

    def _from(self, read: Sequence[int] | None) -> Operand:
        return _FORWARD if read is None else vector(self._source, tuple(read))

    def _to(self, write: Sequence[int] | None, register: int = 0) -> Operand:
        if write is None:
            return _NOWHERE
        mask = mask_register(register, self._target) if register else None
        return vector(self._result, tuple(write), mask)

    def _goal(self, goal: bool | Sequence[int]) -> Operand:
        if goal is True:
            return PeOperand(_SUM, tuple(range(self._target.cycles)))
        return self._to(goal or None)

    def _constant(self, at: int, word: int | None = None) -> PeOperand:
        return PeOperand(_CONSTANTS, (at,) * self._target.cycles, word=word)

    # -- lines of the ALU --------------------------------------------------------------------

    def copy(self, read: Sequence[int] | None, write: Sequence[int], register: int) -> Nest:
        yield alu_step("lpassa", (self._from(read),), self._to(write, register))

    def turn(
        self, upwards: bool, read: Sequence[int] | None, write: Sequence[int] | None, register: int
    ) -> Nest:
        name = "msl" if upwards else "msr"
        yield alu_step(name, (self._from(read),), self._to(write, register))

    def words(self, read: Sequence[tuple[int, int]], write: Sequence[tuple[int, int]]) -> Nest:
        source, result = (
            PeOperand(value.location.memory, at, value.name, word=word)
            for value, places in ((self._source, read), (self._result, write))
            for at, word in [zip(*places, strict=True)]
        )
        yield alu_step("ipassa", (source,), result)

    def constant(self, number: int, at: int) -> Nest:
        for word in range(WORDS_PER_LONG):
            bits = number >> (WORDS_PER_LONG - 1 - word) * ADDRESSED_BITS
            literal = Literal(bits & ((1 << ADDRESSED_BITS) - 1))
            yield alu_step("imm", (literal,), self._constant(at, word))

    def rotate(self, read: Sequence[int], by: int) -> Nest:
        yield alu_step("lbsl", (self._from(read), self._constant(by)), _NOWHERE)

    def keep(self, read: Sequence[int] | None, bits: int, goal: bool | Sequence[int]) -> Nest:
        sources = self._from(read), self._constant(bits)
        yield alu_step("land", sources, self._goal(goal))

    def join(self, goal: bool | Sequence[int]) -> Nest:
        yield alu_step("lor", (_FORWARD, self._goal(True)), self._goal(goal))

    # -- lines to and from L1BM --------------------------------------------------------------

    def lift(self, read: Sequence[int], at: int) -> Nest:
        above = BlockOperand("l1bm", at, self._words)
        yield single_step("l1bm", "l1bmd", (self._from(read),), above)

    def lower(self, at: int, by: int, write: Sequence[int], register: int) -> Nest:
        name, above = f"l1bmd{self._shift[by]}", BlockOperand("l1bm", at, self._words)
        yield single_step("l1bm", name, (above,), self._to(write, register))

    def cast(self, at: int, write: Sequence[int], register: int, wide: bool) -> Nest:
        form = self._target.transfer("l1bmm", "to_pe_2" if wide else "to_pe")
        above = BlockOperand("l1bm", at, form.source_words, wide=wide)
        there = _widened(self._to(write, register), wide)
        yield single_step("l1bm", "l1bmm", (above,), there)

    def fill(self, unit: int, read: Sequence[int], at: int, wide: bool) -> Nest:
        way = "from_pe_2" if wide else "from_pe"
        form = self._target.transfer("l1bmm", way, mab_number=unit)
        above = BlockOperand("l1bm", at, form.destination_words, wide=wide)
        here = _widened(self._from(read), wide)
        yield single_step("l1bm", f"l1bmm@{unit}", (here,), above)

    # -- lines to and from L2BM, and MVs -----------------------------------------------------

    def to_l2bm(self, unit: int, l1bm: int, l2bm: int, words: int) -> Nest:
        return self._between(f"l2bm@{unit}", ("l1bm", l1bm, words), ("l2bm", l2bm, words))

    def from_l2bm(self, units: tuple[int, int] | None, l1bm: int, l2bm: int, words: int) -> Nest:
        name = f"l2bmb{_suffix(*units) if units else ''}"
        return self._between(name, ("l2bm", l2bm, words), ("l1bm", l1bm, words))

    def inside(self, first: int, free: int, start: int, goal: int, words: int) -> Nest:
        name = f"l2bmi{_suffix(first, free)}"
        return self._between(name, ("l1bm", start, words), ("l1bm", goal, words))

    def spread(self, upwards: bool, l1bm: int, l2bm: int) -> Nest:
        form = self._target.transfer("l2bmd", "up")
        lower = "l1bm", l1bm, form.source_words
        upper = "l2bm", l2bm, form.destination_words
        return self._between("l2bmd", *((lower, upper) if upwards else (upper, lower)))

    def _between(self, name: str, source: tuple[str, int, int], goal: tuple[str, int, int]) -> Nest:
        operands = (BlockOperand(*source),), BlockOperand(*goal)
        yield single_step("l2bm", name, *operands)

    def mv(self, upwards: bool, unit: int, home: int, l2bm: int, at: int, words: int) -> Nest:
        group, l2b = divmod(unit, self._target.l2bs_per_group)
        upper = BlockOperand("pdm", at, words, group=home)
        if home >= self._target.groups:
            upper = BlockOperand("dram", at, words, self._aside, group=home - self._target.groups)
        lower = BlockOperand("l2bm", l2bm, words, l2b=l2b, group=group)
        ends = (lower, upper) if upwards else (upper, lower)
        yield Move("mvp", words, *ends)

    def mv_all(self, home: int, l2bm: int, pdm: int, words: int) -> Nest:
        upper = BlockOperand("pdm", pdm, words, group=home)
        yield Move("mvb", words, upper, BlockOperand("l2bm", l2bm, words))


def _widened(operand: Operand, wide: bool) -> Operand:
    if wide and isinstance(operand, PeOperand):
        return operand._replace(words=WORDS_PER_LONG * LONGS_PER_WIDE)
    return operand


def _suffix(first: int, free: int) -> str:
    """Return the suffix that names units: those whose number is ``first`` but for bits ``free``."""
    return f"@{first}/{free}" if free else f"@{first}"
