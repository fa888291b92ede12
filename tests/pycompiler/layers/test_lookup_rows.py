"""Layouts and batches of lookups against a slow reference that follows every element."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import brute_force, some_layout

from pycompiler.graph import Layout, MNDtype
from pycompiler.layers.lookup.rows import (
    Batch,
    RowShape,
    batches,
    index_layout,
    l1b_sets,
    result_layout,
    row_shape,
    table_layout,
)
from pycompiler.machine import Target, load_target

DTYPES = [MNDtype.FLOAT, MNDtype.INT, MNDtype.LONG]


def check_rooms(batch: Batch, sets: int, row: RowShape, target: Target) -> list[int]:
    """Every memory and table of the machine is large enough; return the rows in their order."""
    rows = [place for load in batch.loads for place in load.asked]
    assert len(rows) == sets * len(batch.goals)
    assert all(load.asked for load in batch.loads)
    assert all(len(load.asked) * row.blocks <= target.dar_entries for load in batch.loads)
    assert len(batch.goals) * row.words <= target.words("l1bm")
    assert len(rows) * row.words + target.dar_load <= target.words("l2bm")
    # The registers have a word for every row of a load, one vector of work, and two of results.
    longest = max(len(load.asked) for load in batch.loads)
    assert longest + 4 * target.cycles <= target.words("grf0")
    return rows


def check_batches(
    result: Layout, index: Layout, shape: tuple[int, ...], row: RowShape, target: Target
) -> None:
    sets, found = l1b_sets(result, target), batches(result, index, shape, row, target)
    asked: dict[tuple[int, int], int] = {}
    for batch in found:
        rows = check_rooms(batch, len(sets), row, target)
        for number, place in enumerate(rows):
            one, goal = sets[number // len(batch.goals)], batch.goals[number % len(batch.goals)]
            assert (one, goal) not in asked, "a row of the result is asked twice"
            asked[one, goal] = place
    assert Counter(unit for one in sets for unit in units(one)).most_common(1)[0][1] == 1
    wanted = set()
    for element in np.ndindex(shape):
        there = brute_force(str(result), (*element, 0))
        here = brute_force(str(index), element)
        own = next(one for one in sets if there.get("L1B", 0) in units(one))
        goal = own, there.get("Addr", 0)
        wanted.add(goal)
        assert asked[goal] == here.get("Addr", 0), element
        assert here.get("L2B", 0) == there.get("L2B", 0)
        assert set(here) <= {"L2B", "Addr"}
    # Other rows are padding: they lie in the result's share.
    last = max(goal for _, goal in asked) + row.used
    assert wanted <= set(asked)
    assert last <= result.num_lw(target.cycles)


def units(mask: int) -> set[int]:
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}


@pytest.mark.parametrize(("machine", "examples"), [("mini", 40), ("mncore2", 40)])
def test_every_row_is_asked_once(machine: str, examples: int) -> None:
    target = load_target(machine)

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples // 3, 10 * examples))
    def case(seed: int) -> None:
        rng = random.Random(seed)
        dtype, width = rng.choice(DTYPES), rng.choice([1, 3, 24, 31, 64, 257, 1000])
        shape = tuple(rng.choice([1, 2, 3, 7, 8, 16, 29]) for _ in range(rng.randint(1, 3)))
        whole = (*shape, width)
        hint = some_layout(rng, whole, dtype, target) if rng.random() < 0.6 else None
        result = result_layout(hint, whole, dtype, target)
        if result is None:
            result = result_layout(None, whole, dtype, target)
        assert result is not None
        index = index_layout(result, whole, rng.choice([MNDtype.INT, MNDtype.LONG]), target)
        check_batches(result, index, shape, row_shape(width, dtype, target), target)

    case()


@pytest.mark.parametrize("count", [1, 5, 64, 300])
@pytest.mark.parametrize("dtype", [MNDtype.FLOAT, MNDtype.LONG])
def test_long_rows(target: Target, dtype: MNDtype, count: int) -> None:
    for width in (target.dar_row * dtype.words_per_long, target.dar_row // 3, 131):
        result = result_layout(None, (count, width), dtype, target)
        assert result is not None
        index = index_layout(result, (count, width), MNDtype.LONG, target)
        check_batches(result, index, (count,), row_shape(width, dtype, target), target)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 31, 32, 33, 64, 127, 129, 768, 1000, 2047])
def test_rows_are_whole_blocks_and_vectors(target: Target, dtype: MNDtype, width: int) -> None:
    row, units = row_shape(width, dtype, target), target.counts["mab"] * target.counts["pe"]
    assert row.words == row.addresses * units == row.blocks * target.mv_block
    assert row.words % target.mv_unit == 0
    assert row.blocks % (2 * target.counts["pe"]) == 0, "two entries in a long word of every PE"
    assert row.words * dtype.words_per_long >= width
    # Not a vector more than needed.
    less = row.words - target.mv_block * 2 * target.counts["pe"]
    assert less * dtype.words_per_long < width or less % units


def test_a_table_is_rows_one_behind_the_other(target: Target) -> None:
    """A row lies ``row.addresses`` addresses behind the one before it, on the same units."""
    for dtype, width in ((MNDtype.FLOAT, 300), (MNDtype.LONG, 37)):
        text, row = str(table_layout((6, width), dtype, target)), row_shape(width, dtype, target)
        for element in range(0, width, 13):
            first = brute_force(text, (0, element))
            for number in range(6):
                found = brute_force(text, (number, element))
                assert found.pop("Addr", 0) - first.get("Addr", 0) == number * row.addresses
                assert found == {level: at for level, at in first.items() if level != "Addr"}
