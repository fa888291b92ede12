"""The compiled search for passes against its reference, and its costs against the code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import reference_pass_steps as reference
import reference_pass_ways as ways
import reference_straight_rows
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import some_layout
from reference_switch_plan import reference_plan

from emu2 import _core
from pycompiler.errors import PycompilerError
from pycompiler.graph import Level, MNDtype, parse_layout
from pycompiler.graph.digits import all_ranges, copied_digits, segments
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.layers.switch import pass_costs
from pycompiler.layers.switch.l1bm_vectors import l1bm_room
from pycompiler.layers.switch.pass_moves import LayoutChange, Moves, NoPassError
from pycompiler.layers.switch.pass_search import Guesses, _Switch, moves, pass_steps
from pycompiler.layers.switch.straight_rows import straight_rows
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
def test_the_plan_is_that_of_the_reference(seed: int, machine: str, limited: bool) -> None:
    target, rng = load_target(machine), random.Random(seed)
    change = some_change(rng, target)
    wanted = outcome(reference_plan, change, target)
    # The reference knows no detours: where it finds nothing, they may lead somewhere.
    assert wanted is None or outcome(plan_switch, change, target) == wanted
    if limited and wanted:
        most = rng.randrange(1, 2 * sum(step.steps for step in wanted))
        limited_plan = outcome(reference_plan, change, target, most)
        assert outcome(plan_switch, change, target, False, most) == limited_plan


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


def rows_of(found: Moves) -> list[list[int]]:
    columns = (found.result, found.result_at, found.source, found.source_at)
    return sorted(np.stack(columns, 1).tolist())


@given(SEEDS, MACHINES)
@settings(max_examples=tried(20, 800))
def test_what_no_pass_can_do(seed: int, machine: str) -> None:
    """Most random pairs of layouts differ on several levels."""
    target, rng = load_target(machine), random.Random(seed)
    change, level = some_change(rng, target), rng.choice([Level.W, *UNIT_LEVELS])
    found, wanted = (outcome(one, change, level, target) for one in (moves, reference.moves))
    assert (found is None) == (wanted is None)
    assert found is None or rows_of(found) == rows_of(wanted)


@given(SEEDS, MACHINES)
@settings(max_examples=tried(20, 800))
def test_steps_are_those_of_the_code_and_of_the_reference(seed: int, machine: str) -> None:
    target, rng = load_target(machine), random.Random(seed)
    for change, level in passes(rng, target):
        steps = pass_steps(change, level, target)
        assert steps == reference.pass_steps(change, level, target)
        ranges = all_ranges(target.level_range, change.dtype)
        copies = bool(copied_digits(change.source, level, ranges))
        assert steps >= reference.least_steps(level, target, copies=copies)
        whole = moves(change, level, target)
        assert rows_of(whole) == rows_of(reference.moves(change, level, target))
        part = reference.pattern(change, level, target)
        facts, number = pass_costs.facts(change.dtype, target), pass_costs.NUMBER[level]
        counted = _core.count_move_steps(whole.rows, whole.times, facts, number)
        if level is not Level.L1B or facts.block == 1:
            assert _core.count_move_steps(part.rows, part.times, facts, number) == counted
        if level is Level.PE:
            count = target.counts["pe"]
            assert (
                counted
                == reference.pe_cost(whole, target)
                == sum(
                    max(1, min(turn.by, count - turn.by)) * -(-len(turn.pairs) // target.cycles)
                    + (0 if turn.units is None else 3)
                    for turn in ways.turns(whole, count)
                )
            )
        if level is Level.MAB:
            count = target.counts["mab"]
            fills = ways.count_fills(ways.rows(whole, target, even=True), target)
            shares = ways.shared_turns(ways.units_by_turn(whole, count), count)
            assert (
                counted
                == reference.mab_cost(whole, target)
                == min(
                    counted if fills is None else fills,
                    ways.turn_cost(ways.turns(whole, count), target),
                    ways.shared_cost(shares, l1bm_room(target).vectors, target),
                    ways.cast_cost(ways.casts(whole, count, target.cycles), target),
                )
            )
        check_ways(whole, level, target)


def check_ways(found: Moves, level: Level, target: Target) -> None:
    """The code is made of the same turns, casts, fills and straight rows as in the reference."""
    facts = pass_costs.facts(MNDtype.FLOAT, target)
    if level is Level.MAB:
        for source_even, result_even in product((True, False), repeat=2):
            name, wanted = ways.way(found, target, source_even=source_even, result_even=result_even)
            chosen, rows = _core.mab_way(found.rows, facts, (source_even, result_even))
            if chosen == "fills":
                rows = [
                    (at, [(a, b, ways._full(w, target.cycles), wide) for a, b, w, wide in fills])
                    for at, fills in rows
                ]
            assert (chosen, rows) == (name, wanted)
    elif level is Level.L1B:
        wanted = reference_straight_rows.straight_rows(found, target)
        assert straight_rows(found, target) == (wanted and sorted(wanted, key=lambda one: one.at))
    if level in UNIT_LEVELS:
        turns = ways.turns(found, target.level_range[level.value])
        wanted = [(turn.by, turn.units or 0, [*turn.pairs]) for turn in turns]
        assert pass_costs.turns(found, level, target) == wanted


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
GOOD = pass_costs.facts(MNDtype.FLOAT, load_target("mini"))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("a level that is none", lambda: _core.count_move_steps([(0, 0, 0, 0)], 1, GOOD, 7)),
        ("a unit that is none", lambda: _core.count_move_steps([(99, 0, 0, 0)], 1, GOOD, 1)),
        ("a negative address", lambda: _core.count_move_steps([(0, -1, 0, 0)], 1, GOOD, 1)),
        (
            "no cycles",
            lambda: _core.count_move_steps([(0, 0, 0, 0)], 1, GOOD._replace(cycles=0), 1),
        ),
        ("a turn of no unit", lambda: _core.move_turns([(0, 0, 99, 0)], GOOD, 1)),
        ("a MAB that is none", lambda: _core.mab_way([(99, 0, 0, 0)], GOOD, (True, True))),
        ("a row that is none", lambda: _core.straight_rows([(0, 0, 0, -1)], GOOD)),
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
