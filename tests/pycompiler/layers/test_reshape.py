"""Layouts of two shapes over the same long words, compared element by element."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import elements, some_layout

from pycompiler.graph import Layout, Level, MNDtype, SubAxis
from pycompiler.layers.reshape import fitted, reshaped, same_words
from pycompiler.machine import load_target

Shape = tuple[int, ...]


def two_shapes(rng: random.Random) -> tuple[Shape, Shape]:
    """Draw a shape, and another one that joins, splits or keeps its axes."""
    one: list[int] = []
    other: list[int] = []
    for _ in range(rng.randint(1, 4)):
        sizes = [rng.choice([1, 2, 3, 4, 6, 7, 9]) for _ in range(rng.choice([1, 1, 2, 3]))]
        whole = rng.choice([sizes, sizes, [prod(sizes)], sizes[::-1]])
        one += sizes
        other += whole
    return (tuple(one), tuple(other)) if rng.random() < 0.5 else (tuple(other), tuple(one))


@pytest.mark.parametrize(("machine", "examples"), [("mini", 150), ("mncore2", 20)])
def test_random_shapes_and_layouts(machine: str, examples: int) -> None:
    """The long words do not change, and what is told apart really differs."""
    target = load_target(machine)

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples))
    def case(seed: int) -> None:
        rng = random.Random(seed)
        shape, result = two_shapes(rng)
        if prod(shape) > 800:
            return
        dtype = rng.choice([MNDtype.FLOAT, MNDtype.LONG])
        hint = some_layout(rng, shape, dtype, target)
        made = reshaped(hint, shape, result, dtype, target)
        if made is not None:
            assert same_words(made[0], shape, made[1], result)
            one, other = (
                elements(layout, of, dtype, target)
                for layout, of in zip(made, (shape, result), strict=True)
            )
            assert np.array_equal(one, other), made
        drawn = some_layout(rng, result, dtype, target)
        if same_words(hint, shape, drawn, result):
            one, other = (
                elements(hint, shape, dtype, target),
                elements(drawn, result, dtype, target),
            )
            # Padding and copies may differ; a copy of every element lies at the same place.
            most = min(one.shape[-2], other.shape[-2])
            one, other = one[..., :most, :], other[..., :most, :]
            assert set(np.unique(one[one == other])) >= set(range(prod(shape))), (hint, drawn)

    case()


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ((231, 2, 636), (231, 24, 53)),
        ((309, 4, 410), (309, 40, 41)),
        ((22, 7, 986), (22, 14, 493)),
        ((1, 393, 527), (393, 17, 31)),
    ],
)
@pytest.mark.parametrize("dtype", [MNDtype.FLOAT, MNDtype.HALF])
def test_awkward_axes_spread_over_the_units(shape: Shape, result: Shape, dtype: MNDtype) -> None:
    """Where no digit divides an axis, padding at the top of a stretch makes the values fit LM."""
    target = load_target("mncore2")
    hint = fitted(shape, result, dtype, target, padded=True)
    made = reshaped(hint, shape, result, dtype, target)
    assert made is not None
    assert same_words(made[0], shape, made[1], result)
    assert max(one.num_lw(target.cycles) for one in made) <= target.words("lm0") // 4


def test_an_axis_of_both_shapes_keeps_its_digits() -> None:
    """Channels that do not fill their digits stay where they are if tiles are joined."""
    target = load_target("mncore2")
    batch = (SubAxis(2, Level.L2B, 1),)
    channels = (
        SubAxis(3, Level.ADDR, 56),
        SubAxis(16, Level.MAB, 1),
        SubAxis(4, Level.PE, 1),
        SubAxis(2, Level.W, 1),
    )
    tiles, places = SubAxis(8, Level.L1B, 1), SubAxis(7, Level.ADDR, 1)
    rows = (SubAxis(8, Level.ADDR, 7),)
    hint = Layout((batch, channels, rows, (tiles,), (places,)))
    shape, result = (2, 300, 8, 8, 7), (2, 300, 8, 56)
    made = reshaped(hint, shape, result, MNDtype.FLOAT, target)
    assert made is not None
    assert list(made[1].axes) == [batch, channels, rows, (tiles, places)]
    assert made[0].axes == hint.axes
