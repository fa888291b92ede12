"""MNCoreCrop: Slices that leave out a few last elements, compared with onnxruntime bit by bit."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from compiling import compiled, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from one_node import one_node, values
from random_layouts import elements, some_layout

from pycompiler.graph import Location, MNDtype, MNGraph, MNNode, MNValue, TensorType
from pycompiler.layers.crop import CROP, Crop
from pycompiler.machine import load_target
from pycompiler.pfvm.session import HostSession

#: The bounds of a Slice of (8, 12), and whether it is a crop.
SLICES: dict[str, tuple[dict[str, list[int]], bool]] = {
    "last element": ({"starts": [0], "ends": [11], "axes": [1]}, True),
    "a quarter": ({"starts": [0, 0], "ends": [6, 9]}, True),
    "negative end": ({"starts": [0], "ends": [-1], "axes": [-1], "steps": [1]}, True),
    "more than a quarter": ({"starts": [0], "ends": [8], "axes": [1]}, False),
    "first element": ({"starts": [1], "ends": [12], "axes": [1]}, False),
    "reversed": ({"starts": [-1], "ends": [-13], "axes": [1], "steps": [-1]}, False),
    "nothing": ({"starts": [0], "ends": [12], "axes": [1]}, False),
}


@pytest.mark.parametrize("case", SLICES)
def test_what_is_a_crop(case: str) -> None:
    bounds, cropped = SLICES[case]
    parameters = {name: np.array(found, dtype=np.int64) for name, found in bounds.items()}
    model = one_node("Slice", {"x": (8, 12)}, parameters)
    result, report = compiled(model, "mini")
    assert any(node.op == CROP for node in result.graph.nodes) == cropped
    assert not any(node["steps"] for node in report["nodes"] if node["op"] == CROP)
    inputs = values({"x": (8, 12)}, 3)
    wanted = HostSession(model, "model").run(inputs)["y0"]
    assert np.array_equal(run(result, inputs, "mini")["y0"], wanted)


@pytest.mark.parametrize(("machine", "examples"), [("mini", 150), ("mncore2", 20)])
def test_random_layouts(machine: str, examples: int) -> None:
    """Under every layout that the layer accepts, an element that is kept stays where it is."""
    target, layer = load_target(machine), Crop()

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples))
    def case(seed: int) -> None:
        rng = random.Random(seed)
        shape = tuple(rng.choice([2, 3, 4, 7, 8, 14]) for _ in range(rng.randint(1, 3)))
        kept = tuple(rng.choice([size, max(1, size - rng.randint(1, 3))]) for size in shape)
        dtype = rng.choice([MNDtype.FLOAT, MNDtype.LONG])
        x = MNValue("x", TensorType("x", shape), dtype, Location.LM0, addr=0)
        y = MNValue("y", TensorType("x", kept), dtype, Location.LM0, addr=0)
        node = MNNode("n", CROP, ("x",), ("y",))
        graph = MNGraph("g", target.name, nodes=(node,), values={"x": x, "y": y})
        name, own = rng.choice([("x", shape), ("y", kept)])
        hints = {name: some_layout(rng, own, dtype, target)}
        for found in layer.candidates(node, graph, target, hints):
            laid = {
                n: MNValue(n, v.type, dtype, Location.LM0, found[n], addr=0)
                for n, v in graph.values.items()
            }
            there = MNGraph("g", target.name, nodes=(node,), values=laid)
            assert list(layer.refusals(node, there, target)) == []
            before, after = (
                elements(found[n], of, dtype, target) for n, of in (("x", shape), ("y", kept))
            )
            number = np.arange(prod(shape)).reshape(shape)
            numbers = number[tuple(slice(size) for size in kept)].reshape(-1)
            held = after >= 0
            assert np.array_equal(before[held], numbers[after[held]]), found

    case()
