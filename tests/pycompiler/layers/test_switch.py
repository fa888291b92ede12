"""Layout switches between random legal layouts of a tensor, compared bit by bit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from compiling import tried
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from random_layouts import elements, some_layout

from pycompiler.emit.concat import concatenate
from pycompiler.errors import PycompilerError
from pycompiler.graph import (
    Layout,
    Level,
    Location,
    MNDtype,
    MNValue,
    TensorType,
    parse_layout,
)
from pycompiler.layers.fragment import Step
from pycompiler.layers.switch.pass_code import pass_code
from pycompiler.layers.switch.pass_moves import LayoutChange, NoPassError, moves
from pycompiler.layers.switch.pass_search import cheapest_passes
from pycompiler.machine import Target, load_target
from pycompiler.planners.switch_plan import plan_switch

DTYPES = (MNDtype.FLOAT, MNDtype.LONG, MNDtype.HALF, MNDtype.BYTE)
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
BANKS = (Location.LM0, Location.LM1)


def check(
    one: Layout, other: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> int:
    """Run the switch on random bits and compare every word; the number of passes."""
    rng = np.random.default_rng(7)
    bits, words = np.uint64(dtype.bits), dtype.words_per_long
    most = 2**dtype.bits
    values = rng.integers(0, most, max(1, prod(shape)), dtype=np.uint64, endpoint=False)
    before = elements(one, shape, dtype, target)
    junk = rng.integers(0, most, before.shape, dtype=np.uint64, endpoint=False)
    data = np.where(before >= 0, values[before], junk)
    packed = np.zeros(before.shape[:-1], np.uint64)
    for word in range(words):
        packed |= data[..., word] << bits * np.uint64(words - 1 - word)
    machine = target.new_machine()
    machine.write("lm0", np.ascontiguousarray(packed.reshape(*target.pe_shape, -1)))
    value = MNValue("v", TensorType("x", shape), dtype, BANKS[0], one, one.num_lw(target.cycles))
    plan = plan_switch(LayoutChange(one, other, shape, dtype), target)
    for number, step in enumerate(plan):
        bank = BANKS[(number + 1) % 2]
        lw = step.layout.num_lw(target.cycles)
        following = replace(value, name=f"v{number}", layout=step.layout, num_lw=lw, location=bank)
        code = pass_code(value, following, step.level, target)
        addresses = {value.name: 0, following.name: 0}
        text = concatenate([("n", "pass", code)], addresses, target).text
        machine.run(target.assemble(text, "switch.vsm"))
        value = following
    assert value.layout == other or not plan
    wanted = elements(other, shape, dtype, target)
    found = machine.read(value.location.memory, count=wanted.shape[-2]).reshape(wanted.shape[:-1])
    for word in range(words):
        here = found >> bits * np.uint64(words - 1 - word) & np.uint64(most - 1)
        held = wanted[..., word] >= 0
        assert np.array_equal(here[held], values[wanted[..., word][held]]), f"{one} to {other}"
    return len(plan)


@pytest.mark.parametrize(("machine", "examples"), [("mini", 60), ("mncore2", 12)])
def test_any_layout_to_any_other(machine: str, examples: int) -> None:
    target = load_target(machine)
    beyond = 0

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 25 * examples))
    def switch(seed: int) -> None:
        nonlocal beyond
        rng = random.Random(seed)
        dtype = rng.choice(DTYPES)
        shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(4)))
        one, other = (some_layout(rng, shape, dtype, target) for _ in range(2))
        try:
            check(one, other, shape, dtype, target)
        except PycompilerError as problem:
            # An axis that the layouts split differently must fit a PE: larger ones are refused.
            if problem.code != "P0305" or prod(shape) <= target.words("lm0") // 2:
                raise
            beyond += 1

    switch()
    assert beyond <= tried(examples, 25 * examples) // 10


@pytest.mark.parametrize(
    ("copies", "other", "level"),
    [
        ("L1B", "((8_L1B:1,2:8),(4:2,4_PE:1,2:1,2_W:1))", "L1B"),
        ("L1B", "((2_L1B:2,8:8),(4:2,4_PE:1,2:1,2_W:1); B@[2_L1B:1,2_L1B:4])", "L1B"),
        ("L2B", "((2:8,8_L2B:1),(4:2,4_PE:1,2:1,2_W:1))", "L2B"),
        ("4_L2B:2", "((4:8,4_L2B:2),(4:2,4_PE:1,2:1,2_W:1))", "L2B"),
    ],
)
def test_units_with_copies_keep_their_part(copies: str, other: str, level: str) -> None:
    """No long word leaves its unit, so the ALU copies; nothing goes through L1BM."""
    one = f"((16:8),(4:2,4_PE:1,2:1,2_W:1); B@[{copies}])"
    target, shape = load_target("mncore2"), (16, 64)
    layouts = parse_layout(one), parse_layout(other)
    assert check(*layouts, shape, MNDtype.FLOAT, target) == 1
    change = LayoutChange(*layouts, shape, MNDtype.FLOAT)
    (step,) = plan_switch(change, target)
    assert step.level is Level(level)
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout, layout.num_lw(4))
        for name, bank, layout in zip("ab", BANKS, layouts, strict=True)
    ]
    code = concatenate(
        [("n", "pass", pass_code(*values, step.level, target))], {"a": 0, "b": 0}, target
    )
    assert "l1bm" not in code.text
    assert "l2bm" not in code.text


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(15, 400))
def test_layouts_that_fill_lm(seed: int) -> None:
    """Digits must wait on units while others pass through LM."""
    target, rng = load_target("mini"), random.Random(seed)
    words = target.words("lm0")
    dtype = rng.choice(DTYPES)
    shape: tuple[int, ...] = ()
    while not words < prod(shape) <= words * prod(target.level_range.values()) // 4:
        shape = tuple(rng.choice((2, 3, 5, 7, 12, 14, 16, 25, 33, 96)) for _ in range(4))
    one, other = (some_layout(rng, shape, dtype, target) for _ in range(2))
    assume(max(layout.num_lw(target.cycles) for layout in (one, other)) <= words)
    try:
        check(one, other, shape, dtype, target)
    except PycompilerError as problem:
        # Detours are looked for in a limited number of states; one in a hundred needs more.
        if problem.code != "P0305":
            raise
        event("no way was found")


@pytest.mark.parametrize(
    ("machine", "one", "other", "shape"),
    [
        # Words and PEs change places with MABs and L1Bs, and twice the words do not fit LM.
        (
            "mini",
            "((9:1),(4_PE:1,2_W:1),(5:54),(6:9,2_L1B:1,4_MAB:1))",
            "((9:6),(2_MAB:1,2_MAB:2,2_L1B:1),(5:54),(6:1,4_PE:1,2_W:1))",
            (9, 8, 5, 48),
        ),
        (
            "mini",
            "((5:1,4_PE:1,2_W:1),(5:60),(12:5,2_L1B:1,4_MAB:1))",
            "((2_MAB:1,2_MAB:2,2_L1B:1,5:12),(5:60),(12:1,4_PE:1,2_W:1))",
            (40, 5, 96),
        ),
        # The tiles of a convolution of ResNet-50: many digits of three levels change places.
        pytest.param(
            "mncore2",
            "((4_L2B:1,2:180),(2_MAB:8,4_MAB:1,2:90,4_PE:1,2:45,2_W:1),(2_L2B:4,2_L1B:4),"
            "(9:5),(4_L1B:1,2_MAB:4),(5:1))",
            "((2_MAB:8,4_L2B:1),(8_L1B:1,2:2,4_PE:1,2:1,2_W:1),(2_L2B:4,2:4),(9:8),"
            "(2_MAB:2,2_MAB:4,2:72),(5:144); B@[2_MAB:1])",
            (8, 256, 4, 9, 8, 5),
            marks=pytest.mark.long,
        ),
        # 3 x 2 against 2 x 3 beside 1100 long words.
        (
            "mncore2",
            "((1100:1),(3_L1B:1,2_MAB:1),(4_PE:1,2_W:1))",
            "((1100:1),(2_MAB:1,3_L1B:1),(4_PE:1,2_W:1))",
            (1100, 6, 8),
        ),
    ],
)
def test_switches_with_detours(machine: str, one: str, other: str, shape: tuple[int, ...]) -> None:
    target = load_target(machine)
    source, result = parse_layout(one), parse_layout(other)
    change = LayoutChange(source, result, shape, MNDtype.FLOAT)
    # A limited search makes no detours.
    assert cheapest_passes(change, target, most=1 << 40) is None
    assert check(source, result, shape, MNDtype.FLOAT, target) > 1


@pytest.mark.parametrize(
    ("one", "other", "shape", "most"),
    [
        ("((8_L2B:1,4:2,8_L1B:1),(2:1,4_PE:1,2_W:1))", None, (256, 16), 0),
        ("((64:1),(4_PE:1,2_W:1))", "((64:1),(2:64,2_PE:1,2_W:1))", (64, 8), 1),
        ("((16:1),(16_MAB:1,4_PE:1,2_W:1))", "((16_MAB:1),(16:1,4_PE:1,2_W:1))", (16, 128), 1),
        ("((8_L1B:1,2:1),(4_PE:1,2_W:1))", "((16:1),(4_PE:1,2_W:1); B@[L1B])", (16, 8), 1),
        ("((8_L2B:1,2:1),(4_PE:1,2_W:1))", "((8_L2B:1,2:1),(8:2); B@[W])", (16, 8), 2),
    ],
)
def test_switches_worth_naming(
    one: str, other: str | None, shape: tuple[int, ...], most: int
) -> None:
    target = load_target("mncore2")
    source = parse_layout(one)
    result = source if other is None else parse_layout(other)
    assert check(source, result, shape, MNDtype.FLOAT, target) <= most


def test_more_than_one_pass_can_do() -> None:
    target = load_target("mncore2")
    layouts = (parse_layout(text) for text in ("((4_PE:1),(16_MAB:1))", "((4:1),(16_MAB:1))"))
    change = LayoutChange(*layouts, (4, 16), MNDtype.LONG)
    with pytest.raises(NoPassError):
        moves(change, Level.MAB, target)
    moves(change, Level.PE, target)


@pytest.mark.parametrize(
    ("one", "other", "shape", "each"),
    [
        # Two MABs collect the halves of their channels: each vector goes up, and the ALU copies it
        # in the same step; it comes down for each of the two others, and the ALU copies it again.
        (
            "((8_MAB:2,98:8),(2_MAB:1,8:1,4_PE:1,2_W:1))",
            "((8_MAB:2,98:16),(16:1,4_PE:1,2_W:1); B@[2_MAB:1])",
            (784, 128),
            4,
        ),
        # Four MABs do: one copy of each vector comes with the way up, and nine are sent on.
        (
            "((4_MAB:4,50:8),(4_MAB:1,8:1,4_PE:1,2_W:1))",
            "((4_MAB:4,50:32),(32:1,4_PE:1,2_W:1); B@[4_MAB:1])",
            (200, 256),
            16,
        ),
    ],
)
def test_turns_share_what_they_read(
    one: str, other: str, shape: tuple[int, ...], each: int
) -> None:
    """Test that a vector takes a step for each of its turns, and no second way up."""
    target = load_target("mncore2")
    source, result = parse_layout(one), parse_layout(other)
    assert check(source, result, shape, MNDtype.FLOAT, target) == 1
    (step,) = plan_switch(LayoutChange(source, result, shape, MNDtype.FLOAT), target)
    vectors = source.num_lw(target.cycles) // target.cycles
    assert step.steps <= each * vectors + 100
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (source, result), strict=True)
    ]
    code = pass_code(*values, step.level, target)
    text = concatenate([("n", "pass", code)], {"v": 0, "w": 0}, target).text
    # The list scheduler joins steps only in whole segments.
    assert target.assemble(text, "switch.vsm").report()["steps"] <= (each + 1) * vectors + 100


@pytest.mark.parametrize(
    ("one", "other", "casts"),
    [
        # All MABs get what 16 of them have, in neighbouring addresses: eight units at once.
        ("((16_MAB:1,8:1),(4_PE:1,2_W:1))", "((16:8,8:1),(4_PE:1,2_W:1); B@[MAB])", 8 * 4),
        ("((8:16,16_MAB:1),(4_PE:1,2_W:1))", "((8:16,16:1),(4_PE:1,2_W:1); B@[MAB])", 8 * 2),
        # Each four MABs get what one of them has; a wide cast would save nothing.
        ("((8:4,4_MAB:4,4:1),(4_PE:1,2_W:1))", "((8:16,4:4,4:1),(4_PE:1,2_W:1); B@[4_MAB:4])", 128),
    ],
)
def test_neighbours_are_cast_two_at_a_time(one: str, other: str, casts: int) -> None:
    target, shape = load_target("mncore2"), (128, 8)
    source, result = parse_layout(one), parse_layout(other)
    assert check(source, result, shape, MNDtype.FLOAT, target) == 1
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (source, result), strict=True)
    ]
    lines = pass_code(*values, Level.MAB, target).lines
    found = [one.mnemonic for line in lines if isinstance(line, Step) for one in line.instructions]
    assert found.count("l1bmm") == casts


@pytest.mark.parametrize(
    ("one", "other", "shape", "found"),
    [
        # All MABs take neighbouring words of one MAB: eight at once.
        (
            "((4_MAB:4,16:1),(4_PE:1,2_W:1))",
            "((4:1,16_MAB:1),(4_PE:1,2_W:1))",
            (64, 8),
            {"l1bmm": 4 * 2, "l1bmd": 1},
        ),
        # The words lie apart: four at once.
        (
            "((4_MAB:4,16:3),(3:1),(4_PE:1,2_W:1))",
            "((4:3,16_MAB:1),(3:1),(4_PE:1,2_W:1))",
            (64, 3, 8),
            {"l1bmm": 12 * 4, "l1bmd": 3},
        ),
        # Two rows with three of four words each: the vector begins with rows that are overwritten.
        (
            "((2_MAB:8,16:1),(4_PE:1,2_W:1))",
            "((2:1,16_MAB:1),(4_PE:1,2_W:1))",
            (27, 8),
            {"l1bmm": 2 + 2, "l1bmd": 1},
        ),
    ],
)
def test_rows_are_filled_word_by_word(
    one: str, other: str, shape: tuple[int, ...], found: dict[str, int]
) -> None:
    target = load_target("mncore2")
    source, result = parse_layout(one), parse_layout(other)
    assert check(source, result, shape, MNDtype.FLOAT, target) == 1
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (source, result), strict=True)
    ]
    lines = pass_code(*values, Level.MAB, target).lines
    names = [one.mnemonic for line in lines if isinstance(line, Step) for one in line.instructions]
    assert Counter(name.partition("@")[0] for name in names) == found


_PE_ROW = "16_MAB:1,4_PE:1,2_W:1"


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        # All L1Bs get what each of them has.
        (f"((8_L1B:1,4:1),({_PE_ROW}))", f"((8:4,4:1),({_PE_ROW}); B@[L1B])", {"l2bmi": 32}),
        # Pairs get what both have: the senders are four at a time.
        (
            f"((2_L1B:4,4:1),({_PE_ROW}); B@[4_L1B:1])",
            f"((2:4,4:1),({_PE_ROW}); B@[L1B])",
            {"l2bmi": 8},
        ),
        # A digit of L1Bs and one of Addr change places: half of the L1Bs take another row.
        (
            f"((2_L1B:2,2:4,4:1),({_PE_ROW}); B@[2_L1B:4,2_L1B:1])",
            f"((2:4,2_L1B:2,4:1),({_PE_ROW}); B@[2_L1B:4,2_L1B:1])",
            {"l2bmi": 16},
        ),
        # All L1Bs take rows of their own from all others.
        (f"((8_L1B:1,8:1),({_PE_ROW}))", f"((8:1,8_L1B:1),({_PE_ROW}))", {"l2bmi": 64}),
        # The same with two rows: the masks would take more steps than the way through L2BM.
        (
            f"((8_L1B:1,2:1),({_PE_ROW}))",
            f"((2:1,8_L1B:1),({_PE_ROW}))",
            {"l2bm": 16, "l2bmb": 16},
        ),
    ],
)
def test_rows_go_straight_to_other_l1bs_if_that_is_shorter(
    one: str, other: str, found: dict[str, int]
) -> None:
    target = load_target("mncore2")
    source, result = parse_layout(one), parse_layout(other)
    shape = tuple(prod(sub.size for sub in axis) for axis in source.axes)
    assert check(source, result, shape, MNDtype.FLOAT, target) == 1
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (source, result), strict=True)
    ]
    lines = pass_code(*values, Level.L1B, target).lines
    names = [one.mnemonic for line in lines if isinstance(line, Step) for one in line.instructions]
    assert Counter(name.partition("@")[0] for name in names if name.startswith("l2bm")) == found


def test_mvs_between_l2bs_go_in_turns() -> None:
    """Test that all PDMs work all the time: the MVs of one are as long as all of them together."""
    target = load_target("mncore2")
    shape = (8, 32, 1024)
    row = "8_L1B:1,16_MAB:1,4_PE:1,2_W:1"
    source = parse_layout(f"((8_L2B:1),(8:4,4:1),({row}))")
    result = parse_layout(f"((8:4),(8_L2B:1,4:1),({row}))")
    assert check(source, result, shape, MNDtype.FLOAT, target) == 1
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (source, result), strict=True)
    ]
    code = pass_code(*values, Level.L2B, target)
    text = concatenate([("n", "pass", code)], {"v": 0, "w": 0}, target).text
    report = target.assemble(text, "switch.vsm").report()
    units = target.level_range["L2B"]
    # One way up and one way down between every two L2Bs.
    assert report["mvs"] == 2 * units**2
    held = max(report["port_cycles"].values())
    assert report["mv_busy_cycles"] <= 1.2 * held


def _pass_report(source: str, result: str, shape: tuple[int, ...]) -> Mapping[str, Any]:
    """Check a switch that is one pass over the L2Bs, and return the report of its code."""
    target = load_target("mncore2")
    one, other = parse_layout(source), parse_layout(result)
    assert check(one, other, shape, MNDtype.FLOAT, target) == 1
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (one, other), strict=True)
    ]
    code = pass_code(*values, Level.L2B, target)
    text = concatenate([("n", "pass", code)], {"v": 0, "w": 0}, target).text
    return target.assemble(text, "switch.vsm").report()


ROW = "8_L1B:1,16_MAB:1,4_PE:1,2_W:1"


def test_every_batch_of_a_pass_between_l2bs_uses_all_of_them() -> None:
    """More rows than L2BM has room for: in each batch all L2Bs give and take."""
    found = _pass_report(
        f"((8_L2B:1),(8:16,16:1),({ROW}))", f"((8:16),(8_L2B:1,16:1),({ROW}))", (8, 128, 1024)
    )
    held = max(found["port_cycles"].values())
    assert found["mv_busy_cycles"] <= 1.3 * held


def test_words_for_both_l2bs_of_a_group_go_up_once() -> None:
    found = _pass_report(
        f"((8_L2B:1),(4:2,2:1),({ROW}))",
        f"((8:2),(4_L2B:2,2:1),({ROW}); B@[2_L2B:1])",
        (8, 8, 1024),
    )
    units, groups = 8, 4
    assert found["mvs"] == units * groups + units * units


def test_words_for_all_l2bs_are_broadcast() -> None:
    found = _pass_report(f"((8_L2B:1),({ROW}))", f"((8:1),({ROW}); B@[L2B])", (8, 1024))
    # Each L2B's words go up once, and from there to all L2Bs at once.
    assert found["mvs"] == 2 * 8
