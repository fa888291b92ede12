"""Copies and Reshapes that no PE has room for: as written out, and on the device."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run, sampled, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pycompiler.graph.cut_weights import common_weights, ranges
from pycompiler.machine import load_target
from pycompiler.pfvm.composites.recut import _steps
from pycompiler.pfvm.lower import lower
from pycompiler.pfvm.session import HostSession

Shape = tuple[int, ...]
TARGET = load_target("mini")
LM = TARGET.words("lm0")
#: Lengths of axes: with many divisors, with few, and prime.
LENGTHS = (600, 1009, 1152, 2000, 2018, 4097, 5000)


def one(op: str, shapes: dict[str, Shape], result: Shape, **ints: list[int]) -> onnx.ModelProto:
    """Return a model of one operator; ``ints`` are its parameters, or the attribute `axis`."""
    axis = ints.pop("axis", None)
    constants = {name: np.array(found, np.int64) for name, found in ints.items()}
    model = model_of([(op, [*shapes, *constants], "y")], shapes, ["y"], constants)
    if axis is not None:
        model.graph.node[0].attribute.append(helper.make_attribute("axis", axis[0]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, result))
    return model


def factors(rng: random.Random, count: int) -> Shape:
    out: list[int] = []
    while count > 1:
        out.append(rng.choice([d for d in range(2, count + 1) if count % d == 0]))
        count //= out[-1]
    return tuple(out)


def drawn(rng: random.Random) -> onnx.ModelProto:
    """Return a model of one copy along a long axis, or of one Reshape."""
    lead, rest = rng.choice([(), (2,)]), rng.choice([(), (3,), (2, 3)])
    size, axis = rng.choice(LENGTHS), len(lead)
    shape = (*lead, size, *rest)

    def like(length: int) -> Shape:
        return (*lead, length, *rest)

    kind = rng.choice(["Slice", "Slice", "Pad", "Concat", "Expand", "Reshape"])
    if kind == "Slice":
        ends = sorted(rng.sample(range(size), 2))
        step = rng.choice([1, 1, 2, 3, 7, -1, -2, -5])
        start, stop = ends if step > 0 else ends[::-1]
        result = like(len(range(start, stop, step)))
        cut = {"s": [start], "e": [stop], "a": [axis], "d": [step]}
        return one(kind, {"x": shape}, result, **cut)
    if kind == "Pad":
        before, after = [0] * len(shape), [0] * len(shape)
        before[axis], after[axis], after[-1] = rng.randrange(900), rng.randrange(900), 1
        result = tuple(sum(sizes) for sizes in zip(shape, before, after, strict=True))
        return one(kind, {"x": shape}, result, p=before + after)
    if kind == "Concat":
        more = [rng.randrange(1, 900) for _ in range(rng.choice([1, 2]))]
        others = {f"z{n}": like(length) for n, length in enumerate(more)}
        return one(kind, {"x": shape, **others}, like(size + sum(more)), axis=[axis])
    if kind == "Expand":
        return one(kind, {"x": like(1)}, shape, s=list(shape))
    count = rng.choice([576, 720, 2520, 5040, 4004, 3375])
    result = factors(rng, count)
    return one(kind, {"x": factors(rng, count)}, result, s=list(result))


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        port.name: rng.standard_normal(
            [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for port in model.graph.input
        if port.name not in constants
    }


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(25))
def test_what_is_written_out_gives_the_same(seed: int) -> None:
    model = drawn(random.Random(seed))
    given_inputs = inputs_of(model, seed)
    wanted = HostSession(model, "model").run(given_inputs)["y"]
    written = lower(model, TARGET)
    found = HostSession(written, "model").run(given_inputs)["y"]
    assert np.array_equal(found, wanted)


COPIES = [
    ("Slice", {"x": (1152, 1)}, (1151, 1), {"s": [1], "e": [1152], "a": [0]}),
    ("Slice", {"x": (3, 1009)}, (3, 1008), {"s": [1], "e": [1009], "a": [1]}),
    ("Slice", {"x": (1013,)}, (338,), {"s": [-1], "e": [-5000], "a": [0], "d": [-3]}),
    ("Concat", {"x": (700, 3), "z": (333, 3)}, (1033, 3), {"axis": [0]}),
    ("Pad", {"x": (1152, 2)}, (1155, 3), {"p": [1, 0, 2, 1]}),
    ("Expand", {"x": (1, 5)}, (3000, 5), {"s": [3000, 5]}),
    ("Pad", {"x": (40, 40)}, (42, 42), {"p": [1, 1, 1, 1]}),
    # What both shapes cut differently fits a PE, but not together with the rest.
    ("Reshape", {"x": (144, 4)}, (64, 9), {"s": [64, 9]}),
    ("Reshape", {"x": (12, 12, 8)}, (64, 18), {"s": [64, 18]}),
    ("Reshape", {"x": (24, 17, 7)}, (34, 84), {"s": [34, 84]}),
    # Nor does that fit: factors of the two sizes change their places one by one.
    ("Reshape", {"x": (144, 35)}, (35, 144), {"s": [35, 144]}),
]


@pytest.mark.parametrize(("op", "shapes", "result", "ints"), sampled(COPIES, every=3))
@pytest.mark.parametrize("planner", ["lpz", "first_arrival"])
def test_on_the_device(
    op: str, shapes: dict[str, Shape], result: Shape, ints: dict[str, Any], planner: str
) -> None:
    model = one(op, shapes, result, **ints)
    given_inputs = inputs_of(model, 3)
    wanted = HostSession(model, "model").run(given_inputs)["y"]
    made, _ = compiled(model, "mini", layout_planner=planner, strict=True)
    assert np.array_equal(run(made, given_inputs)["y"], wanted)


# -- the steps of a Reshape ------------------------------------------------------------------------


def test_the_index_is_also_cut_where_both_shapes_meet_again() -> None:
    """144 x 4 and 64 x 9: 36 elements are 9 rows of one and 4 of the other."""
    assert common_weights({1, 4}, {1, 9}, 576) == [1, 36]
    assert ranges((144, 4), (64, 9)) == [(1, 36, False), (36, 576, True)]


@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 64, 256]))
@settings(max_examples=tried(60))
def test_each_step_cuts_one_short_range_differently(seed: int, most: int) -> None:
    rng = random.Random(seed)
    count = rng.choice([576, 720, 2520, 5040, 4004, 3375])
    shape, goal = factors(rng, count), factors(rng, count)
    steps = list(_steps(shape, goal, most))
    for before, after in zip((shape, *steps), (*steps, goal), strict=True):
        assert prod(before) == prod(after)
        runs = [high // low for low, high, chain in ranges(before, after) if not chain]
        assert len(runs) <= 1
        for run_here in runs:
            # A longer run has two prime factors.
            primes = sum(run_here % d == 0 for d in range(2, run_here))
            assert run_here <= most or primes <= 2
