"""The compiled search for passes against a reference, and its moves and counts against the code."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from nest_counts import totals
from random_layouts import elements, some_layout
from reference_switch_plan import reference_plan
from switching import BANKS

from emu2 import _core
from pycompiler.code.lines import Step
from pycompiler.code.nest import Nest, expand, stages
from pycompiler.cost.hazards import pass_hazards
from pycompiler.cost.sequence import slots_of, steps_of, waiting_steps
from pycompiler.errors import PycompilerError
from pycompiler.graph import Level, MNDtype, MNValue, TensorType, parse_layout
from pycompiler.graph.digits import segments
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.layers.switch.facts import Facts, facts
from pycompiler.layers.switch.l1bm_vectors import l1bm_room
from pycompiler.layers.switch.pass_code import pass_code
from pycompiler.layers.switch.pass_moves import LayoutChange, NoPassError
from pycompiler.layers.switch.pass_search import Guesses, Pass, _Switch, moves, pass_steps
from pycompiler.machine import Target, load_target
from pycompiler.planners.switch_plan import plan_switch

MACHINES = st.sampled_from(["mini", "mncore2"])
SEEDS = st.integers(0, 2**32 - 1)
DTYPES = (MNDtype.FLOAT, MNDtype.HALF, MNDtype.LONG, MNDtype.BYTE)
SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 33, 100)


def some_change(rng: random.Random, target: Target) -> LayoutChange:
    dtype = rng.choice(DTYPES)
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(5)))
    source, result = (some_layout(rng, shape, dtype, target) for _ in range(2))
    return LayoutChange(source, result, shape, dtype)


def outcome(plan: object, *arguments: object) -> Any:
    """Return the passes or the moves, None if there are none."""
    try:
        return plan(*arguments)  # type: ignore[operator]
    except (PycompilerError, NoPassError):
        return None


@given(SEEDS, MACHINES, st.booleans())
@settings(max_examples=tried(20, 800))
def test_no_plan_of_the_reference_is_cheaper(seed: int, machine: str, limited: bool) -> None:
    target, rng = load_target(machine), random.Random(seed)
    change = some_change(rng, target)
    wanted = outcome(reference_plan, change, target)
    # The reference knows no detours: where it finds nothing, they may lead somewhere.
    assert wanted is None or total(outcome(plan_switch, change, target)) == total(wanted)
    if limited and wanted:
        most = rng.randrange(1, 2 * sum(step.steps for step in wanted))
        limited_plan = outcome(reference_plan, change, target, most)
        assert total(outcome(plan_switch, change, target, False, most)) == total(limited_plan)


def total(found: Sequence[Pass] | None) -> int | None:
    """Return the steps of all passes: several plans may take the same."""
    return None if found is None else sum(step.steps for step in found)


@pytest.mark.parametrize(
    ("source", "result", "shape", "cuts"),
    [
        # 4 x 14 against 14 x 4: all weights that divide both.
        ("((4:14, 14:1))", "((14:4, 4:1))", (56,), [1, 2, 28]),
        # What has no common divisor stays whole.
        ("((2:3, 3:1))", "((3:2, 2:1))", (6,), [1]),
        ("((16_MAB:1, 49:1))", "((196:1, 4_PE:1))", (784,), [1, 196, 392]),
    ],
)
def test_segments_are_cut_where_both_layouts_can_be(
    source: str, result: str, shape: tuple[int, ...], cuts: list[int]
) -> None:
    found = segments(parse_layout(source), parse_layout(result), shape)
    assert [segment.lo for segment in found] == cuts


def test_a_long_axis_need_not_be_whole_in_lm() -> None:
    # The classifier of VGG: 512 channels of 7 x 7 pixels; both layouts cut the axis at 784.
    source = "((), (2_MAB:8, 2_L2B:2, 2_L2B:4, 2_L2B:1, 8_L1B:1, 4:49, 49:1); B@[W])"
    result = "((), (8_L1B:1, 196:2, 4_PE:1, 2:1, 2_W:1); B@[MAB,L2B])"
    shape = (1, 512 * 49)
    change = LayoutChange(parse_layout(source), parse_layout(result), shape, MNDtype.FLOAT)
    assert plan_switch(change, load_target("mncore2"))[-1].layout == change.result


@given(SEEDS, MACHINES)
@settings(max_examples=tried(30, 300))
def test_a_guess_depends_on_its_two_layouts_only(seed: int, machine: str) -> None:
    """Digits are compared once for all layouts, in whichever order layouts come."""
    target, rng = load_target(machine), random.Random(seed)
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(1, 5)))
    dtype = rng.choice(DTYPES)
    layouts = [some_layout(rng, shape, dtype, target) for _ in range(6)]
    guesses = Guesses(shape, dtype, target)
    for _ in range(3):
        ours, theirs = ([rng.choice(layouts) for _ in range(rng.randrange(1, 5))] for _ in "ab")
        table = guesses.table(ours, theirs)
        assert table.shape == (len(ours), len(theirs))
        for (row, source), (column, result) in product(enumerate(ours), enumerate(theirs)):
            alone = Guesses(shape, dtype, target).table([source], [result])
            assert table[row, column] == alone.item()
            if source == result:
                assert not alone.item()
            elif passes := outcome(plan_switch, LayoutChange(source, result, shape, dtype), target):
                # Several passes take more than the waits around one.
                assert len(passes) == 1 or alone.item() > 2 * target.cycles


@given(SEEDS, MACHINES)
@settings(max_examples=tried(10, 400))
def test_moves_bring_every_element_to_its_place(seed: int, machine: str) -> None:
    """Most random pairs of layouts differ on several levels; passes differ on one."""
    target, rng = load_target(machine), random.Random(seed)
    pairs = [(some_change(rng, target), rng.choice([Level.W, *UNIT_LEVELS]))]
    for change, level in (*pairs, *passes(rng, target)):
        found = outcome(moves, change, level, target)
        if found is None:
            assert (change, level) in pairs
            continue
        before, after = (
            np.moveaxis(
                elements(layout, change.shape, change.dtype, target),
                ((*UNIT_LEVELS, Level.ADDR, Level.W).index(level), len(UNIT_LEVELS)),
                (0, 1),
            )
            for layout in (change.source, change.result)
        )
        made = np.full_like(after, -1)
        made[found.result, found.result_at] = before[found.source, found.source_at]
        assert (made == after)[after >= 0].all(), (change, level)


@given(SEEDS, MACHINES)
@settings(max_examples=tried(20, 400))
def test_steps_are_those_of_the_code(seed: int, machine: str) -> None:
    """They are counted for a part of the moves, and as if all vectors had room at once.

    Half of the steps in which the busiest slot has no line count, and two waits for MVs.
    """
    target, rng = load_target(machine), random.Random(seed)
    for change, level in passes(rng, target):
        steps = pass_steps(change, level, target) - pass_hazards(target)
        lines = list(expand(code_of(change, level, target)))
        taken = stages(lines, target)
        slots = {slot: used // target.cycles for slot, used in slots_of(taken).items()}
        most = (max(slots.values()) + sum(slots.values())) // 2
        if level is Level.MAB and "l1bm" in slots:  # the ALU copies beside lines that go up
            slots["alu"] = slots.get("alu", 0) - sum(
                one.mnemonic == "lpassa"
                for line in lines
                if isinstance(line, Step)
                for one in line.instructions
            )
        least = (max(slots.values()) + sum(slots.values())) // 2
        waits = waiting_steps(taken, target) - steps_of(taken, target)
        assert 0.6 * least <= steps <= 1.4 * (most + waits) + 2, (change, level)
        if level in (Level.W, Level.PE):
            assert least == steps == most
        elif not waits and slots.get("l1bm", 0) <= l1bm_room(target).vectors // 2:
            # Turns of one vector go up once if they come down from the same batch.
            shared = 0.4 * most + 2 if level is Level.MAB else 1
            assert least <= steps <= most + shared, (change, level)


@given(SEEDS, MACHINES)
@settings(max_examples=tried(20, 400))
def test_a_count_of_the_nest_is_that_of_its_lines(seed: int, machine: str) -> None:
    target, rng = load_target(machine), random.Random(seed)
    for change, level in passes(rng, target):
        taken, lines = (
            stages(code, target)
            for code in (
                code_of(change, level, target),
                [*expand(code_of(change, level, target))],
            )
        )
        assert totals(taken, target) == totals(lines, target), (change, level)


def code_of(change: LayoutChange, level: Level, target: Target) -> Nest:
    """Return the code of a pass."""
    source, result = (
        MNValue(name, TensorType("x", change.shape), change.dtype, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (change.source, change.result), strict=True)
    )
    return pass_code(source, result, level, target)


def passes(rng: random.Random, target: Target) -> Iterator[tuple[LayoutChange, Level]]:
    """Yield the passes of one random switch."""
    change = some_change(rng, target)
    before = change.source
    for step in outcome(plan_switch, change, target) or ():
        yield LayoutChange(before, step.layout, change.shape, change.dtype), step.level
        before = step.layout


def test_a_pass_that_changes_too_much_is_no_pass(target: Target) -> None:
    source, result = (parse_layout(text) for text in ("((2_MAB:1, 8:1))", "((8:1, 2_PE:1))"))
    change = LayoutChange(source, result, (16,), MNDtype.FLOAT)
    with pytest.raises(NoPassError):
        pass_steps(change, Level.PE, target)


NOTHING = _Switch(([], []), ([], []), ())
GOOD = facts(MNDtype.FLOAT, load_target("mini"))


def lines(unit: int, at: int, facts: Facts = GOOD, level: int = 1) -> object:
    columns = [np.array([one]) for one in (unit, at, 0, 0)]
    return _core.move_lines([(columns, False, None)], facts, level, (True, True, True, False))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("a level that is none", lambda: lines(0, 0, level=7)),
        ("a unit that is none", lambda: lines(99, 0)),
        ("a negative address", lambda: lines(0, -1)),
        ("no cycles", lambda: lines(0, 0, GOOD._replace(cycles=0))),
        ("no units", lambda: _core.compare_units(1, 0)),
        ("a pass over no level", lambda: _core.pass_moves(NOTHING, GOOD, 9)),
        ("an axis too few", lambda: _core.SwitchGuesses((4,), GOOD).number(([], []))),
        (
            "a digit without size",
            lambda: _core.SwitchGuesses((4,), GOOD).number(([[(0, 5, 1)]], [])),
        ),
        ("a layout that is none", lambda: _core.SwitchGuesses((4,), GOOD).table([0], [0])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numbers_without_meaning_are_refused(name: str, call: object) -> None:
    with pytest.raises(ValueError, match=r"meaning|numbered"):
        call()  # type: ignore[operator]
