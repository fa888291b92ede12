"""Masks that stay in registers: the memories are those of the lines that made each mask again."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_lines import final

from pycompiler.code.lines import (
    Fragment,
    Instruction,
    Line,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
)
from pycompiler.emit.concat import concatenate
from pycompiler.emit.kept_masks import with_kept_masks
from pycompiler.graph.layout import Level
from pycompiler.layers.switch.unit_masks import UnitMasks, choose_units
from pycompiler.machine import Target, load_target

TARGET = load_target("mini")
REGISTERS = TARGET.masks["entries"] - 1


def words(memory: str, first: int, mask: PeOperand | None = None) -> PeOperand:
    return PeOperand(memory, tuple(range(first, first + TARGET.cycles)), mask=mask)


def copy(at: int, mask: PeOperand | None) -> Step:
    """Copy four words of LM0 to LM1 under a mask."""
    return alu_step("lpassa", (words("lm0", at),), words("lm1", at, mask))


def of_sets(sets: list[int], unit: str = "mabid", target: Target = TARGET) -> Fragment:
    """A node that copies words under the mask of each set of units."""
    masks, steps = UnitMasks(unit, target), list[Step]()
    for number, units in enumerate(sets):
        mask = masks.use(units, steps)
        steps.append(copy(TARGET.cycles * number, mask))
    return Fragment(tuple(steps), packed=True)


def of_data(register: int, at: int) -> Fragment:
    """A node whose mask is the sign of words of LM0; it also flushes with it."""
    mask = mask_register(register, TARGET)
    makes = alu_step("frelu", (words("lm0", at), words("lm0", at)), mask)
    flushes = Instruction("alu", "lpassa", (words("lm0", 0),), (words("lm1", 60),), mask)
    return Fragment((makes, copy(at, mask), Step((flushes,))), packed=True)


def of_levels(at: int) -> Fragment:
    """A node with a mask of units of two levels."""
    steps: list[Step] = []
    mask = choose_units({Level.MAB: 1, Level.PE: 6}, steps, TARGET)
    return Fragment((*steps, copy(at, mask)), packed=True)


def made(fragments: list[Fragment]) -> int:
    """Count the lines that make masks."""
    return sum(
        isinstance(one, PeOperand) and one.memory == TARGET.masks["memory"]
        for fragment in fragments
        for line in fragment.lines
        if isinstance(line, Step)
        for instruction in line.instructions
        for one in instruction.destinations
    )


def lines_of(fragments: list[Fragment]) -> int:
    return sum(len(fragment.lines) for fragment in fragments)


def agree(before: list[Fragment], after: list[Fragment], seed: int = 1) -> None:
    """LM is the same after both; registers are not, because nobody reads them any more."""
    found = []
    for fragments in (before, after):
        nodes = [(f"n{at}", f"n{at}", one) for at, one in enumerate(fragments)]
        code = concatenate(nodes, {}, TARGET)
        assert TARGET.assemble(code.text, "x.vsm").report()["cycles"] == code.cycles
        found.append(final(code.text, seed, TARGET)[0])
    for memory in ("lm0", "lm1"):
        assert np.array_equal(found[0][memory], found[1][memory]), memory


@pytest.mark.parametrize(
    ("nodes", "masks", "what"),
    [
        ([of_sets([1, 2]), of_sets([1, 2])], 2, "equal nodes make their masks once"),
        ([of_sets([1, 2]), of_sets([2, 3])], 3, "the other way round, and one more"),
        ([of_sets([1]), of_sets([1], "subpeid")], 2, "the same number of another unit"),
        ([of_sets([1]), of_data(1, 4), of_sets([1])], 2, "a mask of data takes no other register"),
        ([of_data(1, 4), of_data(1, 4)], 2, "masks of data are made each time"),
        ([of_levels(0), of_levels(4)], 1, "units of several levels"),
        ([of_sets(list(range(1, 1 + REGISTERS)))] * 2, REGISTERS, "all registers"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_mask_is_made_once(nodes: list[Fragment], masks: int, what: str) -> None:
    kept = with_kept_masks(nodes, TARGET)
    assert made(kept) == masks, what
    agree(nodes, kept)
    # The lines that led to a mask go with it.
    assert lines_of(nodes) - lines_of(kept) >= 2 * (made(nodes) - masks), what


def test_a_mask_that_is_needed_later_loses_its_register() -> None:
    """With more masks than registers, that one goes which is needed again last."""
    most = of_sets(list(range(1, REGISTERS + 1)))
    other, soon, late = of_sets([REGISTERS + 1]), of_sets([1, 2]), of_sets([3])
    nodes = [most, other, soon, late]
    kept = with_kept_masks(nodes, TARGET)
    assert [made([one]) for one in kept] == [REGISTERS, 1, 0, 0]
    agree(nodes, kept)


def test_masks_that_nobody_needs_again_leave_their_registers_alone() -> None:
    """Each mask has a register of its own, so its lines need not wait for those of the others."""
    (kept,) = with_kept_masks([of_sets([1, 2, 3, 4])], TARGET)
    registers = [
        one.offsets
        for line in kept.lines
        if isinstance(line, Step)
        for one in line.instructions[0].destinations
        if isinstance(one, PeOperand) and one.memory == TARGET.masks["memory"]
    ]
    assert len(set(registers)) == 4


def test_a_mask_from_outside_changes_nothing() -> None:
    reads = Fragment((copy(0, mask_register(1, TARGET)),), packed=True)
    nodes = [of_sets([1]), reads, of_sets([1])]
    assert with_kept_masks(nodes, TARGET) == nodes


def test_words_that_another_node_reads_stay() -> None:
    """A node that reads the word with the number of the unit finds it there."""
    last = (TARGET.words("grf1") - 1,) * TARGET.cycles
    reads = Fragment((alu_step("lpassa", (PeOperand("grf1", last),), words("lm1", 8)),))
    nodes = [of_sets([1]), of_sets([1]), reads]
    kept = with_kept_masks(nodes, TARGET)
    assert made(kept) == 1
    agree(nodes, kept)


def test_nodes_with_the_same_lines_still_share_them() -> None:
    node = of_sets([1, 2])
    kept = with_kept_masks([node] * 4, TARGET)
    assert kept[1].lines is kept[2].lines is kept[3].lines


def drawn(rng: np.random.Generator) -> Fragment:
    kind = rng.integers(6)
    if kind == 0:
        return of_data(int(rng.integers(1, 4)), 4 * int(rng.integers(8)))
    if kind == 1:
        return of_levels(4 * int(rng.integers(8)))
    unit = ("mabid", "subpeid")[int(kind == 2)]
    return of_sets([int(n) for n in rng.integers(1, 24, rng.integers(1, 9))], unit)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(40))
def test_drawn_nodes_leave_the_same_words(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes: list[Fragment] = [drawn(rng) for _ in range(int(rng.integers(2, 9)))]
    kept = with_kept_masks(nodes, TARGET)
    assert made(kept) <= made(nodes)
    agree(nodes, kept, seed)


def test_lines_without_masks_are_left() -> None:
    lines: tuple[Line, ...] = (alu_step("zero", (), Special("nowrite")), copy(0, None))
    node = Fragment(lines)
    assert with_kept_masks([node, of_sets([1])], TARGET)[0].lines is lines
