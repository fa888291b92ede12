"""Layout switches between random legal layouts of a tensor, compared bit by bit."""

from __future__ import annotations

import random
from math import prod

import pytest
from compiling import tried
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from random_layouts import some_layout
from switching import BANKS, check

from pycompiler.code.lines import Fragment
from pycompiler.code.nest import expand
from pycompiler.emit.program import concatenate
from pycompiler.errors import PycompilerError
from pycompiler.graph import (
    Level,
    MNDtype,
    MNValue,
    TensorType,
    parse_layout,
)
from pycompiler.layers.switch.pass_code import pass_code
from pycompiler.layers.switch.pass_moves import LayoutChange, NoPassError
from pycompiler.layers.switch.pass_search import cheapest_passes, moves
from pycompiler.machine import load_target
from pycompiler.planners.switch_plan import plan_switch

DTYPES = (MNDtype.FLOAT, MNDtype.LONG, MNDtype.HALF, MNDtype.BYTE)
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)


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
    code = Fragment(tuple(expand(pass_code(*values, step.level, target))))
    text = concatenate([("n", "pass", code)], {"a": 0, "b": 0}, target).text
    assert "l1bm" not in text
    assert "l2bm" not in text


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
