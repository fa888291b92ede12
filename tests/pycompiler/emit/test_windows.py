"""Programs that are made part by part do what one program of all nodes does."""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiling import compiled, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_lines import Lines, final
from random_models import random_model

import emu2
from pycompiler.app.model import DeviceSegment
from pycompiler.code.lines import Fragment
from pycompiler.emit import program
from pycompiler.emit.program import Kind, Program, concatenate
from pycompiler.machine import load_target


@pytest.mark.parametrize("merged", [False, True])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(20, 400), deadline=None)
def test_lines_keep_their_distance_from_the_part_before(merged: bool, seed: int) -> None:
    target, draw = load_target("mini"), random.Random(seed)
    # No node reads what another one left in a forwarding path.
    streams = [Lines(seed + number, target).some(draw.randint(1, 30)) for number in range(6)]
    nodes = [Fragment(tuple(own), packed=True) for own in streams]
    plain = concatenate([(f"n{n}", "", one) for n, one in enumerate(nodes)], {}, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "WINDOW", draw.randint(1, 60))
        parts = Program({}, target, merged=merged)
        for number, one in enumerate(nodes):
            parts.add(f"n{number}", "", one, Kind.FIXED)
        code = parts.finish()
    emu2.assemble(code.text, target.spec, policy="strict")
    wanted, _ = final(plain.text, seed, target)
    found, _ = final(code.text, seed, target)
    for memory, words in wanted.items():
        assert np.array_equal(found[memory], words), memory


@pytest.mark.parametrize("seed", [3, 11])
def test_a_network_of_many_parts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = random_model(random.Random(seed))
    whole, _ = compiled(model, emit="l1merge")
    monkeypatch.setattr(program, "WINDOW", 5)
    parts, _ = compiled(model, emit="l1merge")
    for name, value in run(whole, inputs).items():
        assert np.array_equal(run(parts, inputs)[name], value, equal_nan=True), name
    (one,), (other,) = whole.app.segments, parts.app.segments
    assert isinstance(one, DeviceSegment)
    assert isinstance(other, DeviceSegment)
    assert one.code != other.code
    assert one.lines.owners == other.lines.owners
    assert sum(other.lines.by_node(other.cycles)) == other.cycles
    # Comments name nodes by their numbers in the whole program.
    named = {int(line.split()[1].strip(":")) for line in other.code.splitlines() if line[0] == "#"}
    assert named == set(range(len(one.lines.owners)))
