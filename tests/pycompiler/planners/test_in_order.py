"""Units in order: outer units take the larger parts of an axis."""

from __future__ import annotations

import random

import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import some_layout

from pycompiler.graph import Layout, Location, MNDtype, MNValue, TensorType, parse_layout
from pycompiler.graph.digits import agrees, primes
from pycompiler.machine import load_target
from pycompiler.planners.lpz.in_order import in_order

TARGET = load_target("mncore2")
SHAPES = ((32, 64, 8, 8), (24, 20, 6), (96, 40), (7, 12, 10))


def value_of(layout: Layout, shape: tuple[int, ...]) -> MNValue:
    """Return a value of singles with a layout."""
    return MNValue("v", TensorType("float", shape), MNDtype.FLOAT, Location.LM0, layout)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # A stage of a network that has its pictures on other L2Bs than those before it.
        (
            "((2_L2B:1,2_L1B:4,2_MAB:8,4_L2B:2),(4_L1B:1,4_PE:1,2:1,2_W:1),(4_MAB:2,2:8),(2_MAB:1,4:2))",
            "((8_L2B:1,2_L1B:4,2_MAB:8),(4_L1B:1,4_PE:1,2:1,2_W:1),(4_MAB:2,2:8),(2_MAB:1,4:2))",
        ),
        # Addresses, PEs and words keep their places.
        (
            "((2_MAB:1,16:4),(2:2,4_PE:1,8_L1B:1),(2_MAB:2,2:1,2_L2B:1),(4_L2B:2,2_W:1))",
            "((2_MAB:1,16:4),(2:2,4_PE:1,8_L1B:1),(2_L2B:1,2:1,2_MAB:2),(4_L2B:2,2_W:1))",
        ),
    ],
)
def test_outer_units_take_the_larger_parts(before: str, after: str) -> None:
    shape, layout = (32, 64, 8, 8), parse_layout(before)
    found = in_order(layout, value_of(layout, shape), TARGET)
    assert found is not None
    assert agrees(found, parse_layout(after), shape, MNDtype.FLOAT, TARGET)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(100))
def test_each_level_keeps_its_digits_and_order_is_reached_at_once(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    layout = some_layout(rng, shape, MNDtype.FLOAT, TARGET)
    found = in_order(layout, value_of(layout, shape), TARGET)
    if found is None:
        return

    def digits(one: Layout) -> set[tuple[object, int, int]]:
        return {
            (sub.level, sub.stride * stride, size)
            for sub in one.subaxes
            for stride, size in primes(sub.size)
        }

    assert digits(found) == digits(layout)
    assert in_order(found, value_of(found, shape), TARGET) is None
