"""Runs layout switches on the emulator, for tests."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from random_layouts import elements

from pycompiler.code.lines import Fragment
from pycompiler.code.nest import expand
from pycompiler.emit.program import concatenate
from pycompiler.graph import Layout, Location, MNDtype, MNValue, TensorType
from pycompiler.layers.switch.pass_code import pass_code
from pycompiler.layers.switch.pass_moves import LayoutChange
from pycompiler.machine import Target
from pycompiler.planners.switch_plan import plan_switch

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
        code = Fragment(tuple(expand(pass_code(value, following, step.level, target, "aside"))))
        addresses = {value.name: 0, following.name: 0, "aside": 64}
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
