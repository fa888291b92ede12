"""Convolutions in tiles: what is written for the device against the Conv itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
import operator_convolutions
import pytest
from compiling import compiled, run, tried
from net import Net

from pycompiler.machine import load_target
from pycompiler.pfvm.composites import convolution, decompose
from pycompiler.pfvm.composites.tile_choice import best_tiles, passes_beside_convolutions
from pycompiler.pfvm.composites.tiles import Axis, Tiling, tilings
from pycompiler.pfvm.prepare import prepare, static_types
from pycompiler.pfvm.session import HostSession

ROW = operator_convolutions.ROWS[0]


def _force(monkeypatch: pytest.MonkeyPatch, seed: int) -> list[Tiling]:
    """Choose any tiling of every axis; return the list that collects what was chosen."""
    rng, taken = random.Random(seed), list[Tiling]()

    def any_tiles(
        shape: tuple[int, ...], rows: int, axes: Sequence[Axis], target: object, **_: object
    ) -> list[tuple[Axis, Tiling]]:
        chosen = [(axis, rng.choice(list(tilings(axis))[-2:])) for axis in axes]
        taken.extend(tiling for _, tiling in chosen)
        return chosen

    monkeypatch.setattr(convolution, "best_tiles", any_tiles)
    return taken


def test_tiles_of_any_count(monkeypatch: pytest.MonkeyPatch) -> None:
    target, counts = load_target("mini"), set[int]()
    for seed in range(tried(60)):
        taken = _force(monkeypatch, seed)
        sample = ROW.sample(random.Random(seed))
        model = prepare(ROW.model(sample))
        written = decompose(model, static_types(model), target)
        onnx.checker.check_model(written)
        wanted = HostSession(model, "model").run(sample.given)["y0"]
        found = HostSession(written, "written").run(sample.given)["y0"]
        limit = sample.terms * sample.scale * 2.0**-20
        assert found.shape == wanted.shape, seed
        assert np.abs(found - wanted).max() <= limit, seed
        counts |= {tiling.count for tiling in taken}
    assert {1, 2, 4} <= counts


@pytest.mark.parametrize("seed", range(3))
def test_tiles_on_the_device(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = _force(monkeypatch, seed)
    facts = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1 + seed % 2] * 2}
    made = np.random.default_rng(seed)
    x = made.standard_normal((2, 3, 8, 11)).astype(np.float32)
    w = made.standard_normal((5, 3, 3, 3)).astype(np.float32)
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], name="node", **facts)
    shape = (2, 5, *((size - 1) // facts["strides"][0] + 1 for size in x.shape[2:]))
    number = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info("x", number, x.shape)],
        [onnx.helper.make_tensor_value_info("y", number, shape)],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    opset = onnx.helper.make_opsetid("", 20)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    assert max(tiling.count for tiling in taken) > 1
    wanted = HostSession(model, "model").run({"x": x})["y"]
    limit = 28 * np.abs(x).max() * np.abs(w).max() * 2.0**-20
    assert np.abs(run(result, {"x": x})["y"] - wanted).max() <= limit


def test_layers_of_a_network_agree_about_tiles() -> None:
    """Layers of a ResNet, those that halve the picture, and what their gradients need."""
    target = load_target("mncore2")
    layers = {
        "first": ((32, 3, 32, 32), 16, Axis(32, 3, 1, 1, 1, 1)),
        "stage": ((32, 16, 32, 32), 16, Axis(32, 3, 1, 1, 1, 1)),
        "halved": ((32, 16, 32, 32), 32, Axis(32, 3, 2, 1, 1, 0)),
        "its weights": ((32, 16, 32, 32), 32, Axis(32, 4, 2, 1, 1, 1)),
        "its way back": ((32, 32, 16, 16), 64, Axis(16, 2, 1, 1, 0, 1)),
        "second stage": ((32, 32, 16, 16), 32, Axis(16, 3, 1, 1, 1, 1)),
        "third stage": ((32, 64, 8, 8), 64, Axis(8, 3, 1, 1, 1, 1)),
    }
    for name, (shape, rows, axis) in layers.items():
        chosen = best_tiles(shape, rows, [axis, axis], target)
        assert [tiling.count for _, tiling in chosen] == [4, 4], name


def test_many_passes_want_tiles_on_all_units() -> None:
    """Alone, a convolution has cheap halos on half of the units; other operators want all units."""
    target, axis = load_target("mncore2"), Axis(32, 3, 1, 1, 1, 1)
    units = target.level_range["MAB"] * target.level_range["L1B"] * target.level_range["L2B"]
    used = []
    for passes in (0, 6):
        chosen = best_tiles((32, 16, 32, 32), 16, [axis, axis], target, passes=passes)
        used.append(32 * prod(tiling.count for _, tiling in chosen))
    assert used == [units // 2, units]


@pytest.mark.parametrize(("relus", "passes"), [(0, 0.0), (1, 0.5), (4, 2.0)])
def test_passes_beside_convolutions(relus: int, passes: float) -> None:
    """Each operator counts by its largest operand, and views do not count."""
    net = Net(random.Random(0), 2, 4, 6, 6)
    value = net.put("Conv", "x", net.weights(8, 4, 3, 3), pads=[1, 1, 1, 1])
    value = net.put("Conv", value, net.weights(8, 8, 3, 3), pads=[1, 1, 1, 1])
    for _ in range(relus):
        value = net.put("Relu", value)
    model = prepare(net.model([net.view(value, 2, 288)]))
    assert passes_beside_convolutions(model.graph, static_types(model)) == passes
