"""Products that only a sum reads, which become part of it, and sums in all cycles of a vector."""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.layers.sum_of_products import SUM_OF_PRODUCTS

AXES = np.array([0], np.int64)


def operators(nodes, shapes, outputs, constants=None, **options):  # type: ignore[no-untyped-def]
    """Compile; return the result and the operators on the device."""
    result, _ = compiled(model_of(nodes, shapes, outputs, constants), **options)
    return result, [node.op for node in result.graph.device_nodes()]


@pytest.mark.parametrize("seed", range(12))
def test_drawn_shapes(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 5, 8, 12, 30, 64]) for _ in range(rng.choice([2, 3])))
    axes = sorted(rng.sample(range(len(shape)), rng.randrange(1, len(shape) + 1)))
    names = ("x", rng.choice(["x", "z"]))
    nodes = [("Mul", list(names), "m"), ("ReduceSum", ["m", "axes"], "y")]
    given = {"axes": np.array(axes, np.int64)}
    shapes = dict.fromkeys(names, shape)
    result, found = operators(nodes, shapes, ["y"], given)
    assert SUM_OF_PRODUCTS in found
    draw = np.random.default_rng(seed)
    data = {name: draw.uniform(-2, 2, shape).astype(np.float32) for name in shapes}
    wanted = (data[names[0]].astype(float) * data[names[1]]).sum(tuple(axes), keepdims=True)
    size = np.prod([shape[axis] for axis in axes])
    np.testing.assert_allclose(run(result, data)["y"], wanted, rtol=1e-5, atol=4e-6 * size)


def test_padding_with_infinities_beside_it_adds_nothing() -> None:
    """Values whose padding the operator before makes infinite or not a number."""
    nodes = [
        ("Reciprocal", ["x"], "a"),
        ("Log", ["x"], "b"),
        ("Mul", ["a", "b"], "m"),
        ("ReduceSum", ["m", "axes"], "y"),
    ]
    x = np.random.default_rng(1).uniform(1, 3, (7, 11)).astype(np.float32)
    result, found = operators(nodes, {"x": x.shape}, ["y"], {"axes": np.array([0, 1], np.int64)})
    assert SUM_OF_PRODUCTS in found
    wanted = (np.log(x.astype(float)) / x).sum(keepdims=True)
    np.testing.assert_allclose(run(result, {"x": x})["y"], wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("nodes", "outputs", "why"),
    [
        ([("Mul", ["x", "z"], "m"), ("ReduceSum", ["m", "axes"], "y")], ["y", "m"], "an output"),
        (
            [("Mul", ["x", "z"], "m"), ("ReduceSum", ["m", "axes"], "s"), ("Add", ["m", "s"], "y")],
            ["y"],
            "two readers",
        ),
        (
            [("Mul", ["x", "row"], "m"), ("ReduceSum", ["m", "axes"], "y")],
            ["y"],
            "a smaller factor",
        ),
        ([("Mul", ["x", "z"], "m"), ("ReduceMax", ["m", "axes"], "y")], ["y"], "no sum"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_products_that_stay(nodes, outputs, why) -> None:  # type: ignore[no-untyped-def]
    given = {"axes": AXES, "row": np.linspace(-1, 1, 8, dtype=np.float32)}
    used = {name for _, reads, _ in nodes for name in reads}
    shapes = {name: (6, 8) for name in ("x", "z") if name in used}
    constants = {name: array for name, array in given.items() if name in used}
    _, found = operators(nodes, shapes, outputs, constants)
    assert SUM_OF_PRODUCTS not in found, why


@pytest.mark.parametrize(
    ("factors", "size", "joined"),
    [("xz", 16, True), ("xz", 17, False), ("xz", 32, False), ("xz", 33, True), ("xx", 27, True)],
)
def test_few_products_stay(factors: str, size: int, joined: bool) -> None:
    """Where units have one product at most, padding of a second factor would take longer."""
    nodes = [("Mul", [*factors], "m"), ("ReduceSum", ["m", "axes"], "y")]
    shapes = dict.fromkeys(factors, (size,))
    result, found = operators(nodes, shapes, ["y"], {"axes": AXES})
    assert (SUM_OF_PRODUCTS in found) == joined
    draw = np.random.default_rng(size)
    data = {name: draw.uniform(-2, 2, size).astype(np.float32) for name in shapes}
    wanted = (data[factors[0]].astype(float) * data[factors[1]]).sum(keepdims=True)
    np.testing.assert_allclose(run(result, data)["y"], wanted, rtol=1e-5, atol=1e-4)


def test_slices_of_the_batch_add_their_sums() -> None:
    nodes = [("Mul", ["x", "z"], "m"), ("ReduceSum", ["m", "axes"], "y")]
    shapes = {"x": (24, 40), "z": (24, 40)}
    overrides = {"x": {"time_slice": "0:4"}}
    result, found = operators(nodes, shapes, ["y"], {"axes": AXES}, overrides=overrides)
    assert (found.count(SUM_OF_PRODUCTS), found.count("Add")) == (4, 3)
    draw = np.random.default_rng(4)
    data = {name: draw.uniform(-2, 2, shape).astype(np.float32) for name, shape in shapes.items()}
    wanted = (data["x"].astype(float) * data["z"]).sum(0, keepdims=True)
    np.testing.assert_allclose(run(result, data)["y"], wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 6, 8, 12])
def test_few_results_of_many_terms(op: str, columns: int) -> None:
    """Few long words in every PE: cycles of a vector share their terms."""
    rng = np.random.default_rng(columns)
    x = rng.uniform(0.9, 1.1, (48, columns)).astype(np.float32)
    result, _ = operators([(op, ["x", "axes"], "y")], {"x": x.shape}, ["y"], {"axes": AXES})
    name = {"ReduceSum": "sum", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod"}[op]
    wanted = getattr(x.astype(float), name)(0, keepdims=True)
    np.testing.assert_allclose(run(result, {"x": x})["y"], wanted, rtol=2e-5)
