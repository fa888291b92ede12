"""Large batches go through a model part by part, where that takes fewer cycles."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from compiling import compiled, random_inputs, run, sampled
from net import Net

from pycompiler.machine import load_target
from pycompiler.pfvm import batch_parts
from pycompiler.pfvm.batch_parts import parts_of
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

MINI = load_target("mini")
#: Long words of both LMs of all PEs.
ROOM = 32 * sum(MINI.words(memory) for memory in ("lm0", "lm1"))


def pictures(batch: int, channels: int, side: int, depth: int) -> tuple[onnx.ModelProto, Net]:
    """Return convolutions with residuals, and means over all pixels."""
    net = Net(random.Random(batch), batch, channels, side, side)
    value = "x"
    for _ in range(depth):
        weights = net.array(net.draw.standard_normal((channels, channels, 3, 3)) / channels)
        made = net.put("Relu", net.put("Conv", value, weights, pads=[1, 1, 1, 1]))
        value = net.put("Add", made, value)
    return net.model([net.put("ReduceMean", value, net.ints(2, 3), keepdims=0)]), net


def rows(batch: int) -> onnx.ModelProto:
    """Return two layers of rows with a residual between."""
    net = Net(random.Random(batch), batch, 12, 96)
    value = net.put("Relu", net.put("MatMul", "x", net.weights(96, 96)))
    value = net.put("Add", value, "x")
    return net.model([net.put("Relu", net.put("MatMul", value, net.weights(96, 96)))])


@pytest.mark.parametrize(("batch", "parts"), [(5, 1), (10, 2), (41, 8)])
@pytest.mark.parametrize("halves", [False, True])
def test_the_number_of_parts(
    batch: int, parts: int, halves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most the sixth part of LM is full in the mean; halves fill half of it."""
    monkeypatch.setattr(batch_parts, "LARGE", 0)
    batch *= 1 + halves
    each = batch * 12 * 96 / (4 if halves else 2)
    # The results of five operators: each is read by the next one.
    filled = each * (2 + 2 + 2 + 2 + 1) / 5
    assert parts // 2 < filled / (ROOM / 6) <= parts
    assert parts_of(optimise(rows(batch)), MINI, halves=halves) == parts


def test_no_part_is_smaller_than_one_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_parts, "LARGE", 0)
    model, _ = pictures(2, 8, 48, 3)
    assert parts_of(optimise(model), MINI, halves=False) == 1


# Batches that the parts do not divide are among them.
@pytest.mark.parametrize(("batch", "side", "parts"), sampled([(4, 12, 2), (8, 11, 4), (7, 12, 4)]))
def test_parts_take_fewer_cycles(
    batch: int, side: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the results are those of the host."""
    model, net = pictures(batch, 16, side, 4)
    _, whole = compiled(model)
    monkeypatch.setattr(batch_parts, "LARGE", 0)
    result, report = compiled(model)
    assert [row["batch_parts"] for row in report["passes"] if row["pass"] == "import"] == [parts]
    assert report["cycles"] < whole["cycles"]
    inputs = random_inputs(net.inputs, batch)
    found, wanted = run(result, inputs), HostSession(model, "model").run(inputs)
    for name, array in wanted.items():
        assert np.abs(found[name] - array).max() <= 1e-4 * np.abs(array).max()


def test_small_models_and_forced_layouts_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option `time_slice` says what is cut, and so do overrides."""
    model, _ = pictures(4, 16, 12, 1)
    assert parts_of(model, MINI, halves=False) == 1
    monkeypatch.setattr(batch_parts, "LARGE", 0)
    assert parts_of(model, MINI, halves=False) > 1
    _, report = compiled(model, time_slice="fit")
    assert [row["batch_parts"] for row in report["passes"] if row["pass"] == "import"] == [1]
