"""Masks that stay in registers: the memories are those of the lines that made each mask again."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import addresses_in, merge
from random_lines import final

from pycompiler.code.lines import (
    Fragment,
    Instruction,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
)
from pycompiler.emit.program import Code, Kind, concatenate
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


#: With such a node in a program, the others keep their order, and masks stay in their registers.
LOOSE = Fragment((alu_step("zero", (), Special("nowrite")),), loose=True)


def named(fragments: list[Fragment]) -> list[tuple[str, str, Fragment]]:
    return [(f"n{at}", f"n{at}", one) for at, one in enumerate(fragments)]


def kept(fragments: list[Fragment]) -> Code:
    """Return the nodes merged, with masks that stay."""
    own = [*fragments, LOOSE]
    code = merge(named(own), {}, TARGET, [Kind.OTHER] * len(own))
    assert code is not None
    return code


def made(code: Code) -> list[int]:
    """Return the registers of the masks that a program makes."""
    return addresses_in(code.text, TARGET.masks["destination"])


def instructions(code: Code) -> int:
    """Count the instructions of the ALU."""
    return sum(row.busy.get("alu", 0) for row in code.nodes)


def agree(fragments: list[Fragment], code: Code, seed: int = 1) -> None:
    """LM is that of the nodes one after the other; nobody reads registers any more."""
    plain = concatenate(named(fragments), {}, TARGET)
    assert TARGET.assemble(code.text, "x.vsm").report()["cycles"] == code.cycles
    wanted, found = (final(one.text, seed, TARGET)[0] for one in (plain, code))
    for memory in ("lm0", "lm1"):
        assert np.array_equal(found[memory], wanted[memory]), memory


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
    code, plain = kept(nodes), concatenate(named(nodes), {}, TARGET)
    assert len(made(code)) == masks, what
    agree(nodes, code)
    # The lines that led to a mask go with it.
    fewer = len(made(plain)) - masks
    assert instructions(plain) + 1 - instructions(code) >= 2 * fewer, what


def test_a_mask_that_is_needed_later_loses_its_register() -> None:
    """With more masks than registers, that one goes which is needed again last."""
    most = of_sets(list(range(1, REGISTERS + 1)))
    other, soon, late = of_sets([REGISTERS + 1]), of_sets([1, 2]), of_sets([3])
    nodes = [most, other, soon, late]
    code = kept(nodes)
    assert len(made(code)) == REGISTERS + 1
    agree(nodes, code)


def test_masks_that_nobody_needs_again_leave_their_registers_alone() -> None:
    """Each mask has a register of its own, so its lines need not wait for those of the others."""
    assert len(set(made(kept([of_sets([1, 2, 3, 4])])))) == 4


def test_a_mask_from_outside_changes_nothing() -> None:
    reads = Fragment((copy(0, mask_register(1, TARGET)),), packed=True)
    assert len(made(kept([of_sets([1]), reads, of_sets([1])]))) == 2


def test_words_that_another_node_reads_stay() -> None:
    """A node that reads the word with the number of the unit finds it there."""
    last = (TARGET.words("grf1") - 1,) * TARGET.cycles
    reads = Fragment((alu_step("lpassa", (PeOperand("grf1", last),), words("lm1", 8)),))
    nodes = [of_sets([1]), of_sets([1]), reads]
    code = kept(nodes)
    assert len(made(code)) == 1


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
    code = kept(nodes)
    assert len(made(code)) <= len(made(concatenate(named(nodes), {}, TARGET)))
    agree(nodes, code, seed)
