"""Masks of units: each chooses the units that it should, in as few lines as are known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pycompiler.code.lines import Fragment, PeOperand, Step, alu_step
from pycompiler.emit.program import concatenate
from pycompiler.graph.layout import Level
from pycompiler.layers.switch.unit_masks import NUMBERS, UnitMasks, choose_units
from pycompiler.machine import load_target

MACHINES = ("mini", "mncore2")
#: Sets of 16 units and the lines that make a mask of them, without a copy of the number.
SHORT = {
    "one": ([5], 2),
    "the first ones": (range(6), 2),
    "the last ones": (range(6, 16), 2),
    "none of a bit": ([0, 1, 2, 3, 8, 9, 10, 11], 2),
    "none of two bits": ([0, 4, 8, 12], 2),
    "some of two bits": ([n for n in range(16) if n & 3], 3),
    "all of two bits": ([3, 7, 11, 15], 3),
    "others": ([2, 6, 10, 14], 4),
}


def chosen(steps: list[Step], mask: PeOperand, level: Level, machine_name: str) -> set[int]:
    """Return the units whose PEs write under a mask."""
    target = load_target(machine_name)
    ones = PeOperand("grf0", (0,) * target.cycles)
    home = PeOperand("lm0", tuple(range(target.cycles)), mask=mask)
    steps = [*steps, alu_step("inot", (ones,), home)]
    code = concatenate([("n", "n", Fragment(tuple(steps)))], {}, target)
    machine = target.new_machine()
    machine.run(target.assemble(code.text, "masks.vsm"))
    found = set()
    names = {Level.L2B: "l2b", Level.L1B: "l1b", Level.MAB: "mab", Level.PE: "pe"}
    for unit in range(target.level_range[level.value]):
        place = dict.fromkeys(("group", "l2b", "l1b", "mab", "pe"), 0)
        if level is Level.L2B:
            place["group"], place["l2b"] = divmod(unit, target.counts["l2b"])
        else:
            place[names[level]] = unit
        words = np.asarray(machine.read("lm0", addr=0, count=target.cycles, **place)).reshape(-1)
        assert np.isin(words, (0, np.iinfo(np.uint64).max)).all()
        assert np.unique(words).size == 1
        if words[0]:
            found.add(unit)
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("level", NUMBERS)
def test_all_and_drawn_sets(level: Level, machine: str) -> None:
    target = load_target(machine)
    count = target.level_range[level.value]
    rng = random.Random(7)
    every = (
        range(1, 1 << count) if count <= 4 else [rng.randrange(1, 1 << count) for _ in range(40)]
    )
    every = [*every, *(sum(1 << u for u in units if u < count) for units, _ in SHORT.values())]
    for units in every:
        wanted = {unit for unit in range(count) if units >> unit & 1}
        if not wanted:
            continue
        for made in (choose_units, None):
            steps: list[Step] = []
            if made is None:
                mask = UnitMasks(NUMBERS[level], target).use(units, steps)
            else:
                mask = made({level: units}, steps, target)
            assert chosen(steps, mask, level, machine) == wanted, bin(units)


@pytest.mark.parametrize("name", SHORT)
def test_lines(name: str) -> None:
    units, lines = SHORT[name]
    steps: list[Step] = []
    choose_units({Level.MAB: sum(1 << u for u in units)}, steps, load_target("mncore2"))
    assert len(steps) == lines


def test_units_of_two_levels() -> None:
    target = load_target("mncore2")
    steps: list[Step] = []
    mask = choose_units({Level.MAB: 1 << 3 | 1 << 5, Level.PE: 1 << 2}, steps, target)
    # MAB 0 is looked at for PEs, and PE 0 for MABs: neither is chosen on the other level.
    assert chosen(steps, mask, Level.MAB, "mncore2") == set()
    steps = []
    mask = choose_units({Level.MAB: 1 << 3 | 1 << 5, Level.PE: 1}, steps, target)
    assert chosen(steps, mask, Level.MAB, "mncore2") == {3, 5}
