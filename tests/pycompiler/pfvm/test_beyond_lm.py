"""Operators on values that all LM together does not hold: as written out, and on the device."""

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

from pycompiler.machine import load_target
from pycompiler.pfvm.device_functions import RECUT, called
from pycompiler.pfvm.lower import lower
from pycompiler.pfvm.session import HostSession

Shape = tuple[int, ...]
TARGET = load_target("mini")
#: The singles that all LM0 hold.
MOST = prod(TARGET.pe_shape) * TARGET.words("lm0") * 2


def model(op: str, shapes: dict[str, Shape], result: Shape, **facts: Any) -> onnx.ModelProto:
    """Return a model of one operator; ``facts`` are its parameters, or the attribute `axis`."""
    axis = facts.pop("axis", None)
    constants = {name: np.array(found, np.int64) for name, found in facts.items()}
    made = model_of([(op, [*shapes, *constants], "y")], shapes, ["y"], constants)
    if axis is not None:
        made.graph.node[0].attribute.append(helper.make_attribute("axis", axis))
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, result))
    return made


def drawn(rng: random.Random) -> onnx.ModelProto:
    """Return a model of one operator on a value of one to two times all LM."""
    count = rng.randrange(MOST, 2 * MOST)
    lead, rest = rng.choice([(), (2,), (3,)]), rng.choice([(), (3,), (5,)])
    size, axis = count // prod((*lead, *rest)), len(lead)
    shape = (*lead, size, *rest)

    def like(length: int) -> Shape:
        return (*lead, length, *rest)

    kind = rng.choice(["Reshape", "Slice", "Concat", "Pad", "Tile", "Gather", "all"])
    if kind == "all":  # both axes of a matrix
        size = rng.randrange(150, 400)
        shape = (*lead, size, count // size // prod(lead))
        starts, cuts = [rng.randrange(9) for _ in range(2)], [rng.randrange(9) for _ in range(2)]
        front = len(lead)
        if rng.random() < 0.5:
            ends = [size - own for size, own in zip(shape[front:], cuts, strict=True)]
            result = (*lead, *(e - s for s, e in zip(starts, ends, strict=True)))
            facts = {"s": starts, "e": ends, "a": [front, front + 1]}
            return model("Slice", {"x": shape}, result, **facts)
        result = (*lead, *(n + s + c for n, s, c in zip(shape[front:], starts, cuts, strict=True)))
        none = [0] * front
        return model("Pad", {"x": shape}, result, p=[*none, *starts, *none, *cuts])
    if kind == "Reshape":
        result = shape[::-1] if len(shape) > 1 else (1, *shape)
        return model(kind, {"x": shape}, result, s=list(result))
    if kind == "Slice":
        start, stop = rng.randrange(900), size - rng.randrange(900)
        step = rng.choice([1, 2, 3, -1, -2])
        ends = (start, stop) if step > 0 else (stop - 1, start)
        found = range(*ends, step)
        cut = {"s": [ends[0]], "e": [ends[1]], "a": [axis], "d": [step]}
        return model(kind, {"x": shape}, like(len(found)), **cut)
    if kind == "Concat":
        more = rng.randrange(1, 900)
        shapes = {"x": shape, "z": like(more)}
        return model(kind, shapes, like(size + more), axis=axis)
    if kind == "Pad":
        ends = [0] * (2 * len(shape))
        ends[axis], ends[axis + len(shape)] = rng.randrange(90), rng.randrange(1, 90)
        return model(kind, {"x": shape}, like(size + sum(ends)), p=ends)
    if kind == "Tile":
        times = [1] * len(shape)
        times[axis] = 2
        return model(kind, {"x": shape}, like(2 * size), r=times)
    index = [rng.randrange(size) for _ in range(rng.randrange(2, 30))]
    return model(kind, {"x": shape}, like(len(index)), i=index, axis=axis)


def inputs_of(made: onnx.ModelProto) -> dict[str, np.ndarray]:
    constants = {tensor.name for tensor in made.graph.initializer}
    rng = np.random.default_rng(3)
    return {
        port.name: rng.standard_normal(
            [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for port in made.graph.input
        if port.name not in constants
    }


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(25))
def test_what_is_written_out_gives_the_same(seed: int) -> None:
    made = drawn(random.Random(seed))
    given_inputs = inputs_of(made)
    wanted = HostSession(made, "model").run(given_inputs)["y"]
    written = lower(made, TARGET)
    found = HostSession(written, "model").run(given_inputs)["y"]
    assert np.array_equal(found, wanted)


def test_a_copy_along_two_axes_is_one_recut() -> None:
    """Written as one for each axis; nothing comes to be between them."""
    made = model("Pad", {"x": (4, 6500)}, (6, 6502), p=[1, 1, 1, 1])
    written = [called(node) for node in lower(made, TARGET).graph.node]
    assert written.count(RECUT) == 2
    built, _ = compiled(made, "mini", strict=True)
    assert [node.op for node in built.graph.nodes] == [RECUT]
    x = inputs_of(made)["x"]
    assert np.array_equal(run(built, {"x": x})["y"], np.pad(x, 1))


CASES = [
    ("Reshape", {"x": (3, 8533)}, (25599,), {"s": [25599]}),
    ("Slice", {"x": (33000,)}, (25001,), {"s": [1777], "e": [26778], "a": [0]}),
    ("Reshape", {"x": (3, 8704)}, (8704, 3), {"s": [8704, 3]}),
    ("Pad", {"x": (33000,)}, (33032,), {"p": [11, 21]}),
    ("Concat", {"x": (20389,), "z": (14475,)}, (34864,), {"axis": 0}),
    ("Gather", {"x": (2, 4810, 8)}, (2, 4, 8), {"axis": 1, "i": [4809, 7, 8, 0]}),
    ("Tile", {"x": (20001,)}, (40002,), {"r": [2]}),
    # Both axes are copied, so there are no slices on both sides.
    ("Slice", {"x": (251, 263)}, (249, 261), {"s": [1, 1], "e": [250, 262], "a": [0, 1]}),
    ("Tile", {"x": (151, 163)}, (302, 326), {"r": [2, 2]}),
    # No PE holds an axis, and other axes are in front of it.
    ("Slice", {"x": (100, 700)}, (100, 695), {"s": [5], "e": [700], "a": [1]}),
    ("Slice", {"x": (181, 601)}, (181, 600), {"s": [1], "e": [601], "a": [1]}),
    ("Concat", {"x": (600, 600), "z": (600, 7)}, (600, 607), {"axis": 1}),
    ("Slice", {"x": (5, 6001)}, (3, 5999), {"s": [1, 1], "e": [4, 6000], "a": [0, 1]}),
    ("Pad", {"x": (251, 263)}, (253, 265), {"p": [1, 1, 1, 1]}),
    ("Gather", {"x": (50, 900)}, (50, 4), {"axis": 1, "i": [899, 7, 8, 0]}),
    # Of 1,000 rows, most begin elsewhere in a unit than the elements that they are made of.
    ("Reshape", {"x": (101, 1000)}, (1000, 101), {"s": [1000, 101]}),
    # PEs turn blocks around, and then the blocks change their places.
    ("Slice", {"x": (9001, 3)}, (4500, 3), {"s": [-2], "e": [-9999], "a": [0], "d": [-2]}),
    # Rows change their places, and PEs turn them around.
    (
        "Slice",
        {"x": (161, 163)},
        (161, 163),
        {"s": [-1] * 2, "e": [-999] * 2, "a": [0, 1], "d": [-1] * 2},
    ),
    ("Slice", {"x": (25600,)}, (25600,), {"s": [-1], "e": [-99999], "a": [0], "d": [-1]}),
]


@pytest.mark.parametrize(("op", "shapes", "result", "facts"), sampled(CASES, every=6))
def test_on_the_device(
    op: str, shapes: dict[str, Shape], result: Shape, facts: dict[str, Any]
) -> None:
    made = model(op, shapes, result, **facts)
    given_inputs = inputs_of(made)
    wanted = HostSession(made, "model").run(given_inputs)["y"]
    built, _ = compiled(made, "mini", strict=True)
    assert RECUT in {node.op for node in built.graph.nodes}
    assert np.array_equal(run(built, given_inputs)["y"], wanted)


@pytest.mark.long
@pytest.mark.parametrize("scheduler", ["always_from_dram", "spill_opt", "auto_recompute_sa"])
def test_between_other_operators_with_every_scheduler(scheduler: str) -> None:
    shape, goal = (3, 8704), (26112,)
    facts = {"s": np.array(goal, np.int64)}
    nodes = [("Neg", ["x"], "n"), ("Reshape", ["n", "s"], "r"), ("Abs", ["r"], "y")]
    made = model_of(nodes, {"x": shape}, ["y"], facts)
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    built, _ = compiled(made, "mini", strict=True, scheduler=scheduler)
    assert np.array_equal(run(built, {"x": x})["y"], np.abs(x).reshape(goal))
