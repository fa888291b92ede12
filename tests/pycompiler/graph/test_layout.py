"""Layouts: the text form, the formula against an independent reading, the static checks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_layouts import brute_force, layouts

from pycompiler.errors import PycompilerError
from pycompiler.graph import (
    Broadcast,
    Layout,
    Level,
    MNDtype,
    PadLayout,
    SubAxis,
    parse_layout,
    parse_pad_layout,
)
from pycompiler.graph.verify import layout_ranges
from pycompiler.machine import Target


@given(layouts)
def test_print_and_parse(layout: Layout) -> None:
    assert parse_layout(str(layout)) == layout
    padded = PadLayout(layout.padded_shape, layout)
    assert parse_pad_layout(str(padded)) == padded


@given(layouts, st.data())
def test_formula(layout: Layout, data: st.DataObject) -> None:
    index = tuple(data.draw(st.integers(0, size - 1)) for size in layout.padded_shape)
    found = layout.coordinates(*(np.array(x) for x in index))
    wanted = brute_force(str(layout), index)
    assert {level.value: int(c) for level, c in found.items()} == wanted


@pytest.mark.parametrize(
    ("text", "index", "wanted"),
    [
        ("((4_PE:1),(4:1))", (2, 3), {"PE": 2, "Addr": 3}),
        (
            "((8_L2B:1,4:2,8_L1B:1),(2:1,4_PE:1,2_W:1))",
            (37, 10),
            {"L2B": 1, "L1B": 5, "PE": 1, "Addr": 1, "W": 0},
        ),
        (
            "((8_L2B:1,4:2,8_L1B:1),(2:1,4_PE:1,2_W:1))",
            (37, 11),
            {"L2B": 1, "L1B": 5, "PE": 1, "Addr": 1, "W": 1},
        ),
        (
            "((8_L2B:1,4:2,8_L1B:1),(2:1,4_PE:1,2_W:1))",
            (100, 10),
            {"L2B": 3, "L1B": 4, "PE": 1, "Addr": 1, "W": 0},
        ),
        ("((4_L2B:2,64:8),(8:1,2_W:1))", (200, 10), {"L2B": 6, "Addr": 0x45, "W": 0}),
        (
            "((2_L2B:3),(16:1),(8_MAB:2,8_L1B:1,2_MAB:1,4_PE:1,2_W:1))",
            (0, 7, 200),
            {"L2B": 0, "L1B": 4, "MAB": 3, "PE": 0, "Addr": 7, "W": 0},
        ),
        (
            "((2_L2B:3),(16:1),(8_MAB:2,8_L1B:1,2_MAB:1,4_PE:1,2_W:1))",
            (1, 7, 200),
            {"L2B": 3, "L1B": 4, "MAB": 3, "PE": 0, "Addr": 7, "W": 0},
        ),
        (
            "((25_Time:1,3:1536,8_L2B:1,16_MAB:1,4:1,4:4),(96:16,4_W:1,4_PE:1);B@[L1B])",
            (100000, 777),
            {"Time": 16, "L2B": 6, "MAB": 10, "PE": 1, "W": 2, "Addr": 768},
        ),
    ],
)
def test_worked_examples(text: str, index: tuple[int, ...], wanted: dict[str, int]) -> None:
    found = parse_layout(text).coordinates(*(np.array(x) for x in index))
    assert {level.value: int(c) for level, c in found.items()} == wanted


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "num_lw"),
    [
        ("((3:1), (1:1, 2_W:1, 4_PE:1); B@[MAB,L1B,L2B])", (3, 4), MNDtype.FLOAT, 4),
        ("((8_L2B:1,8:2),(16_MAB:1,2:1,4_PE:1);B@[L1B,W])", (64, 128), MNDtype.DOUBLE, 16),
        ("((4_L2B:2,4:512),(512:1,2_W:1))", (16, 1024), MNDtype.FLOAT, 2048),
        ("((16:1),(8_MAB:2,8_L1B:1,2_MAB:1,4_PE:1,2_W:1))", (16, 1024), MNDtype.FLOAT, 16),
        (
            "((),(8_L2B:1,8_L1B:1,64:1),(4_Time:1,24:64,4_W:1,4_PE:1))",
            (1, 4096, 1536),
            MNDtype.HALF,
            1536,
        ),
        (
            "((2_L2B:1,16_MAB,4:64),(2_L1B:4,4_PE,2_W,8:1),(4_L2B:2,4_L1B:1,8:8))",
            (128, 128, 128),
            MNDtype.FLOAT,
            256,
        ),
        ("(; B@[W,PE,MAB,L1B,L2B])", (), MNDtype.FLOAT, 4),
        ("((4_MAB:1); B@[2_PE:2])", (4,), MNDtype.DOUBLE, 4),
    ],
)
def test_known_layouts_are_legal(
    text: str, shape: tuple[int, ...], dtype: MNDtype, num_lw: int
) -> None:
    from pycompiler.machine import load_target

    target = load_target("mncore2")
    layout = parse_layout(text)
    layout.check(shape, dtype, layout_ranges(target), target.words("dram"))
    assert layout.num_lw(target.cycles) == num_lw
    assert all(p >= s for p, s in zip(layout.padded_shape, shape, strict=True))


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "reason"),
    [
        ("((4:1))", (3, 4), MNDtype.FLOAT, "1 axes"),
        ("((3:1), (1:1, 2_W:1))", (3, 4), MNDtype.FLOAT, "axis 1"),
        ("((64_MAB:1))", (64,), MNDtype.FLOAT, "MAB reaches 63"),
        ("((2_PE:1, 2_PE:1))", (4,), MNDtype.DOUBLE, "same coordinate"),
        ("((4_PE:1); B@[PE])", (4,), MNDtype.DOUBLE, "PE reaches"),
        ("((4_W:1))", (4,), MNDtype.FLOAT, "W reaches 3"),
        ("((2_W:1, 2:1))", (4,), MNDtype.HALF, "W has 2"),
        ("((4:0))", (4,), MNDtype.DOUBLE, "same coordinate"),
        ("((0:1))", (0,), MNDtype.DOUBLE, "at least 1"),
    ],
)
def test_illegal_layouts(text: str, shape: tuple[int, ...], dtype: MNDtype, reason: str) -> None:
    from pycompiler.machine import load_target

    target = load_target("mncore2")
    with pytest.raises(PycompilerError) as caught:
        parse_layout(text).check(shape, dtype, layout_ranges(target), target.words("dram"))
    assert caught.value.code == "P0202"
    assert reason in caught.value.message


def test_ranges_come_from_the_machine(target: Target) -> None:
    counts = target.counts
    layout = Layout(((SubAxis(counts["mab"], Level.MAB),),), (Broadcast(Level.W),))
    layout.check((counts["mab"],), MNDtype.FLOAT, layout_ranges(target), 1)
    wider = Layout(((SubAxis(counts["mab"] + 1, Level.MAB),),), (Broadcast(Level.W),))
    with pytest.raises(PycompilerError):
        wider.check((counts["mab"] + 1,), MNDtype.FLOAT, layout_ranges(target), 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(3:1)",
        "((3:1)",
        "((3:1)) x",
        "((3_XX:1))",
        "((_PE:1))",
        "((3:))",
        "((3:1); B@[])",
        "((3:1); B@[PE)",
        "(3,4)/((3:1))",
        "(a)/((3:1))",
        "PadLayout{((3:1))",
        "((3:1),)",
        "((3§1))",
    ],
)
def test_bad_texts(text: str) -> None:
    with pytest.raises(PycompilerError) as caught:
        parse_layout(text)
    assert caught.value.code == "P0201"


def test_dots_mean_the_levels_nobody_uses() -> None:
    layout = parse_layout("((4_PE:1); B@[MAB,...])")
    ranges = {Level.L2B: 8, Level.L1B: 8, Level.MAB: 16, Level.PE: 4}
    assert {s.level for s in layout.copies(ranges)} == {Level.MAB, Level.L1B, Level.L2B}


def test_a_layout_travels_without_its_hash() -> None:
    layout = parse_layout("((2_L1B:1, 8:1), (4_PE:1, 2_W:1); B@[MAB])")
    assert hash(layout) == hash(parse_layout(str(layout)))
    packed = pickle.dumps(layout)
    assert b"_hash" not in packed
    assert pickle.loads(packed) == layout
