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
from pycompiler.emit import windows
from pycompiler.emit.concat import concatenate
from pycompiler.emit.merge import Way, merge
from pycompiler.emit.units import Kind
from pycompiler.emit.windows import Windows
from pycompiler.machine import load_target


@pytest.mark.parametrize("merged", [False, True])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(20, 400), deadline=None)
def test_lines_keep_their_distance_from_the_part_before(merged: bool, seed: int) -> None:
    target, draw = load_target("mini"), random.Random(seed)
    lines = Lines(seed, target)
    nodes = [Fragment(tuple(lines.some(draw.randint(1, 30))), packed=True) for _ in range(6)]
    plain = concatenate([(f"n{n}", "", one) for n, one in enumerate(nodes)], {}, target)
    parts = Windows({}, target, merged=merged)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "WINDOW", draw.randint(1, 60))
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
    monkeypatch.setattr(windows, "WINDOW", 5)
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


@pytest.mark.parametrize("way", Way)
def test_the_way_of_earlier_parts_places_this_one(way: Way) -> None:
    """Once no way was left where orders of urgency were impossible before, and possible now."""
    target = load_target("mini")
    nodes = [(f"n{n}", "", Fragment(tuple(Lines(n, target).some(5)), packed=True)) for n in (1, 2)]
    known = {True: way}
    code = merge(nodes, {}, target, [Kind.OTHER] * 2, known=known)
    assert code is not None
    assert known == {True: way}
    assert code.cycles == target.assemble(code.text, "x.vsm").report()["cycles"]
