"""The code of single passes of layout switches: which instructions it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import pytest
from switching import BANKS, check

from pycompiler.code.lines import Fragment, Move, Step
from pycompiler.code.nest import expand
from pycompiler.emit.program import concatenate
from pycompiler.graph import Level, MNDtype, MNValue, TensorType, parse_layout
from pycompiler.layers.switch.pass_code import aside_words, pass_code
from pycompiler.layers.switch.pass_moves import LayoutChange
from pycompiler.machine import load_target
from pycompiler.planners.switch_plan import plan_switch


def instructions(one: str, other: str, shape: tuple[int, ...], level: Level) -> Counter[str]:
    """Check a switch that is one pass over ``level``; count the mnemonics of its code."""
    target = load_target("mncore2")
    source, result = parse_layout(one), parse_layout(other)
    assert check(source, result, shape, MNDtype.FLOAT, target) == 1
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, layout)
        for name, bank, layout in zip("vw", BANKS, (source, result), strict=True)
    ]
    steps = [line for line in expand(pass_code(*values, level, target)) if isinstance(line, Step)]
    return Counter(one.mnemonic.partition("@")[0] for step in steps for one in step.instructions)


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
    code = Fragment(tuple(expand(pass_code(*values, step.level, target))))
    text = concatenate([("n", "pass", code)], {"v": 0, "w": 0}, target).text
    # The list scheduler joins steps only in whole segments.
    assert target.assemble(text, "switch.vsm").report()["steps"] <= (each + 1) * vectors + 100


@pytest.mark.parametrize(
    ("one", "other", "casts"),
    [
        # All MABs get what 16 of them have, in neighbouring addresses: eight units at once.
        ("((16_MAB:1,8:1),(4_PE:1,2_W:1))", "((16:8,8:1),(4_PE:1,2_W:1); B@[MAB])", 8 * 4),
        ("((8:16,16_MAB:1),(4_PE:1,2_W:1))", "((8:16,16:1),(4_PE:1,2_W:1); B@[MAB])", 8 * 2),
        # Each four MABs get what one of them has: turns that share what they read are shorter.
        ("((8:4,4_MAB:4,4:1),(4_PE:1,2_W:1))", "((8:16,4:4,4:1),(4_PE:1,2_W:1); B@[4_MAB:4])", 0),
    ],
)
def test_neighbours_are_cast_two_at_a_time(one: str, other: str, casts: int) -> None:
    assert instructions(one, other, (128, 8), Level.MAB)["l1bmm"] == casts


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
        # The second row takes eleven words, eight and three. The vector begins with rows that are
        # overwritten.
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
    assert instructions(one, other, shape, Level.MAB) == found


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
        # Sets of L1Bs take rows of others: masks would take more steps than the way through L2BM.
        (
            f"((2:1,2_L1B:4),({_PE_ROW}); B@[4_L1B:1])",
            f"((2_L1B:2,2_L1B:1),({_PE_ROW}); B@[2_L1B:4])",
            {"l2bm": 4, "l2bmb": 4},
        ),
    ],
)
def test_rows_go_straight_to_other_l1bs_if_that_is_shorter(
    one: str, other: str, found: dict[str, int]
) -> None:
    shape = tuple(prod(sub.size for sub in axis) for axis in parse_layout(one).axes)
    all_found = instructions(one, other, shape, Level.L1B)
    assert {name: n for name, n in all_found.items() if name.startswith("l2bm")} == found


def test_rows_go_through_l2bm_where_l1bm_is_small(tmp_path: Path) -> None:
    """A result row may come down once for each L1B, and L1BM has no room for so many vectors."""
    path = tmp_path / "tight.toml"
    machine = '[machine]\nname = "tight"\ndoc = "A small L1BM."\n'
    path.write_text(f'extends = "mncore2"\n{machine}[[memory]]\nname = "l1bm"\nwords = 2048\n')
    one, other = (f"(({digits}),({_PE_ROW}))" for digits in ("8_L1B:1,8:1", "8:1,8_L1B:1"))
    layouts, shape = (parse_layout(one), parse_layout(other)), (64, 128)
    assert check(*layouts, shape, MNDtype.FLOAT, load_target(str(path))) == 1


def test_mvs_between_l2bs_go_in_turns() -> None:
    """Test that all PDMs work all the time: the MVs of one are as long as all of them together."""
    target = load_target("mncore2")
    shape = (8, 32, 1024)
    row = "8_L1B:1,16_MAB:1,4_PE:1,2_W:1"
    source, result = f"((8_L2B:1),(8:4,4:1),({row}))", f"((8:4),(8_L2B:1,4:1),({row}))"
    report = _pass_report(source, result, shape)
    units = target.level_range["L2B"]
    # One way up and one way down between every two L2Bs. What an L2B keeps does not cross.
    assert report["mvs"] == 2 * units * (units - 1)
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
    code = Fragment(tuple(expand(pass_code(*values, Level.L2B, target))))
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


def test_what_crosses_by_dram_stays_in_its_words() -> None:
    """More rows than L2BM has room for: each batch takes the same words."""
    target, shape = load_target("mncore2"), (8, 128, 1024)
    layouts = f"((8_L2B:1),(8:16,16:1),({ROW}))", f"((8:16),(8_L2B:1,16:1),({ROW}))"
    values = [
        MNValue(name, TensorType("x", shape), MNDtype.FLOAT, bank, parse_layout(layout))
        for name, bank, layout in zip("vw", BANKS, layouts, strict=True)
    ]
    lines = expand(pass_code(*values, Level.L2B, target, "aside"))
    ends = [
        block.offset + block.words
        for line in lines
        if isinstance(line, Move)
        for block in (line.source, line.destination)
        if block.memory == "dram"
    ]
    assert 0 < max(ends) <= aside_words(target)


def test_words_for_both_l2bs_of_a_group_go_up_once() -> None:
    found = _pass_report(
        f"((8_L2B:1),(4:2,2:1),({ROW}))",
        f"((8:2),(4_L2B:2,2:1),({ROW}); B@[2_L2B:1])",
        (8, 8, 1024),
    )
    units, groups = 8, 4
    # The L2B that has the words keeps them.
    assert found["mvs"] == units * groups + units * (units - 1)


def test_words_for_all_l2bs_are_broadcast() -> None:
    found = _pass_report(f"((8_L2B:1),({ROW}))", f"((8:1),({ROW}); B@[L2B])", (8, 1024))
    # Each L2B's words go up once, and from there to all L2Bs at once.
    assert found["mvs"] == 2 * 8
