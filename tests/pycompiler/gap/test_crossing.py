"""The words that a change of layout must move: counted one by one, they are never fewer."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from compiling import with_seeds
from random_layouts import some_layout

from pycompiler.gap.crossing import UNITS, crossings, least_steps
from pycompiler.graph import Broadcast, Layout, Level, MNDtype, SubAxis
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.graph.verify import layout_ranges
from pycompiler.machine import Target, load_target


def holders(layout: Layout, index: tuple[int, ...], target: Target) -> set[tuple[int, ...]]:
    """Return the units, from L2B to PE, that hold an element."""
    found = layout.coordinates(*(np.array(one) for one in index))
    own = [int(found.get(level, np.array(0))) for level in UNIT_LEVELS]
    copies = [c for c in layout.copies(layout_ranges(target)) if c.level in UNIT_LEVELS]
    out = set()
    for digits in product(*(range(copy.size) for copy in copies)):
        place = list(own)
        for copy, digit in zip(copies, digits, strict=True):
            place[UNIT_LEVELS.index(copy.level)] += digit * copy.stride
        out.add(tuple(place))
    return out


def counted(
    source: Layout, result: Layout, shape: tuple[int, ...], target: Target
) -> dict[str, tuple[int, int]]:
    """Return the arrivals in all units of each level, and the most in one, element by element."""
    arrivals: dict[str, dict[tuple[int, ...], int]] = {unit: {} for unit in UNITS}
    for index in np.ndindex(*shape):
        had, wanted = (holders(layout, index, target) for layout in (source, result))
        for number, unit in enumerate(UNITS):

            def cut(place: tuple[int, ...], number: int = number) -> tuple[int, ...]:
                return place[:number] if number else (place[0] // target.l2bs_per_group,)

            for place in {cut(p) for p in wanted} - {cut(p) for p in had}:
                arrivals[unit][place] = arrivals[unit].get(place, 0) + 1
    return {
        unit: (sum(found.values()), max(found.values(), default=0))
        for unit, found in arrivals.items()
    }


SHAPES = ((8, 16), (32,), (4, 8, 4), (16, 16))
ODD = ((6, 10), (9, 5), (7,), (3, 4, 5), (12, 6))


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_no_change_brings_fewer_elements(machine: str) -> None:
    """On layouts of sizes that are powers of two and of others."""
    target, dtype = load_target(machine), MNDtype.FLOAT

    def check(seed: int) -> None:
        rng = random.Random(seed)
        shape = rng.choice(SHAPES + ODD)
        source, result = (some_layout(rng, shape, dtype, target) for _ in range(2))
        least = crossings(source, result, shape, dtype, target)
        real = counted(source, result, shape, target)
        for unit in UNITS:
            total, most = real[unit]
            own = least[unit]
            assert own.elements <= total, (unit, str(source), str(result), shape)
            assert own.most <= most, (unit, str(source), str(result), shape)

    with_seeds(check, 25, 400)


def test_digits_that_are_powers_of_two_are_counted_exactly() -> None:
    target, dtype = load_target("mini"), MNDtype.FLOAT
    exact = tried = 0
    for seed in range(150):
        rng = random.Random(seed)
        shape = rng.choice(SHAPES)
        source, result = (some_layout(rng, shape, dtype, target) for _ in range(2))
        if any(layout.padded_shape != shape for layout in (source, result)):
            continue
        least = crossings(source, result, shape, dtype, target)
        real = counted(source, result, shape, target)
        tried += len(UNITS)
        exact += sum(least[unit].elements == real[unit][0] for unit in UNITS)
    assert tried >= 50
    assert exact == tried


def row(*subs: SubAxis) -> tuple[SubAxis, ...]:
    return subs


PE, MAB = SubAxis(4, Level.PE), SubAxis(4, Level.MAB)


def test_changes_by_hand() -> None:
    target, dtype = load_target("mncore2"), MNDtype.FLOAT

    def of(source: Layout, result: Layout, shape: tuple[int, ...]) -> dict[str, tuple[dict, int]]:
        found = crossings(source, result, shape, dtype, target)
        return {unit: (dict(own.rank), own.elements) for unit, own in found.items()}

    here = Layout((row(SubAxis(4), PE), row(SubAxis(8))))
    assert of(here, here, (16, 8)) == dict.fromkeys(UNITS, ({}, 0))
    # Four elements in four PEs become one PE's each: a quarter is there already.
    turned = Layout((row(PE, SubAxis(4)), row(SubAxis(8))))
    wanted = {**dict.fromkeys(UNITS, ({}, 0)), "PE": ({2: 2}, 128 * 3 // 4)}
    assert of(here, turned, (16, 8)) == wanted
    # From PEs to MABs: of 16 pairs of digits, the one with two zeros stays.
    moved = Layout((row(SubAxis(4), MAB), row(SubAxis(8))))
    found = of(here, moved, (16, 8))
    assert found["MAB"] == ({2: 2}, 96)
    assert found["L1B"] == ({}, 0)
    # Copies in all four groups: those of the first group have their elements.
    copied = Layout(here.axes, (Broadcast(Level.L2B),))
    found = of(here, copied, (16, 8))
    assert (found["group"], found["L2B"]) == (({2: 2}, 3 * 128), ({2: 3}, 7 * 128))
    assert of(copied, here, (16, 8)) == dict.fromkeys(UNITS, ({}, 0))


def test_least_steps() -> None:
    target, dtype = load_target("mncore2"), MNDtype.FLOAT
    here = Layout((row(SubAxis(256), PE),))
    turned = Layout((row(PE, SubAxis(256)),))
    found = crossings(here, turned, (1024,), dtype, target)
    # 768 singles are 384 long words; each of four PEs takes 96, two in each of four cycles.
    assert least_steps(found, dtype, target) == 96 // 2 // 4
    assert least_steps(crossings(here, here, (1024,), dtype, target), dtype, target) == 0


def test_digits_without_a_common_form_are_counted() -> None:
    """Rows of 6 as 3 x 2 in one layout and as 2 x 3 in the other."""
    target, dtype = load_target("mini"), MNDtype.FLOAT
    here = Layout((row(SubAxis(3), SubAxis(2, Level.PE)),))
    there = Layout((row(SubAxis(2, Level.PE), SubAxis(3)),))
    found = crossings(here, there, (6,), dtype, target)["PE"]
    assert not found.rank
    # 0 and 2 are in the first PE, 1 and 3 and 5 in the second; 0 to 2 shall be in the first.
    assert (found.elements, found.most) == (2, 1)
