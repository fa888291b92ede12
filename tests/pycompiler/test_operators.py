"""Every layer against PyTorch and onnxruntime, over random shapes and broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest
import torch
from compiling import compiled, model_of, random_inputs, run
from hypothesis import given, settings
from hypothesis import strategies as st

from pycompiler.layers.registry import LAYERS
from pycompiler.layers.transfer import DOWNLOAD, UPLOAD
from pycompiler.machine import load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.tolerance import FLUSH, bound

TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Neg": torch.neg,
    "Relu": torch.relu,
}
UNARY = ("Neg", "Relu")
Shape = tuple[int, ...]


@st.composite
def operands(draw: st.DrawFn, most: int) -> tuple[Shape, Shape]:
    """Two shapes that broadcast; either may lack leading axes, or be a scalar.

    The result has at most ``most`` elements.
    """
    full: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        size = draw(st.sampled_from([1, 2, 3, 4, 7, 16, 33, 64]))
        full += [size] if prod(full) * size <= most else []

    def part() -> Shape:
        kept = [size if draw(st.integers(0, 3)) else 1 for size in full]
        return tuple(kept[draw(st.integers(0, len(full))) if draw(st.booleans()) else 0 :])

    return part(), part()


def check(op: str, shapes: list[Shape], machine: str, seed: int, same: bool = False) -> None:
    names = ["x", "y"][: len(shapes)]
    reads = ["x", "x"] if same else names
    model = model_of([(op, reads, "out")], dict(zip(names, shapes, strict=True)), ["out"])
    result, report = compiled(model, machine)
    assert report["host_fallback"] == []
    inputs = random_inputs(dict(zip(names, shapes, strict=True)), seed)
    found = run(result, inputs, machine)["out"]
    wanted = TORCH[op](*(torch.from_numpy(inputs[name]) for name in reads)).numpy()
    other = HostSession(model.SerializeToString(), "model").run(inputs)["out"]
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    for reference in (wanted, other):
        limit = bound("Float", LAYERS[op].error) * np.abs(reference) + FLUSH["Float"]
        assert (np.abs(found.astype(np.float64) - reference) <= limit).all()
    rows = {row["node"]: row["steps"] for row in report["nodes"]}
    for node in result.graph.nodes:
        fragment = LAYERS[node.op].emit(node, result.graph, load_target(machine))
        assert fragment.steps == LAYERS[node.op].cost(node, result.graph, load_target(machine))
        assert rows[node.name] >= fragment.steps
    assert sum(rows.values()) == report["steps"]


@pytest.mark.parametrize("op", TORCH)
@pytest.mark.parametrize(("machine", "examples"), [("mini", 40), ("mncore2", 12)])
def test_operator(op: str, machine: str, examples: int) -> None:
    most = 1 << 13 if machine == "mini" else 1 << 17

    @given(operands(most), st.integers(0, 2**32 - 1))
    @settings(max_examples=examples)
    def random_case(shapes: tuple[Shape, Shape], seed: int) -> None:
        check(op, list(shapes[: 1 if op in UNARY else 2]), machine, seed)

    random_case()


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize(
    "shapes",
    [
        [(), ()],
        [(), (3, 5)],
        [(3, 5), ()],
        [(1,), (1,)],
        [(30, 1), (1, 70)],
        [(24, 1, 40), (1, 16, 1)],
        [(5, 1, 7), (6, 1)],
        [(16384,), (16384,)],
        [(8, 2, 2, 2, 2, 9), (2, 1, 9)],
    ],
)
def test_shapes_worth_naming(op: str, shapes: list[Shape]) -> None:
    for machine in ("mini", "mncore2"):
        check(op, shapes, machine, 7)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("shape", [(), (5,), (123, 45)])
def test_an_operand_used_twice(op: str, shape: Shape) -> None:
    check(op, [shape], "mncore2", 3, same=True)


def test_the_whole_chip() -> None:
    check("Mul", [(512, 1024), (512, 1024)], "mncore2", 11)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_a_result_that_fills_lm(op: str) -> None:
    check(op, [(512, 1), (1, 64)], "mini", 5)
    check(op, [(32, 1, 64), (1, 16, 1)], "mini", 5)


def test_relu_gives_plus_zero() -> None:
    model = model_of([("Relu", ["x"], "out")], {"x": (8,)}, ["out"])
    values = np.array([-1.5, -0.0, 0.0, 2.0, -1e-30, -np.inf, np.inf, -3e38], dtype=np.float32)
    found = run(compiled(model)[0], {"x": values})["out"]
    assert found.tolist() == [0, 0, 0, 2, 0, 0, np.inf, 0]
    assert not np.signbit(found).any()


def test_constants_and_chains() -> None:
    rng = np.random.default_rng(1)
    constants = {
        "k": rng.standard_normal((6, 1)).astype(np.float32),
        "half": np.float32(0.5).reshape(()),
    }
    nodes = [
        ("Mul", ["x", "k"], "a"),
        ("Add", ["a", "half"], "b"),
        ("Relu", ["b"], "c"),
        ("Sub", ["half", "c"], "d"),
        ("Neg", ["d"], "e"),
        ("Mul", ["e", "e"], "f"),
    ]
    model = model_of(nodes, {"x": (6, 50)}, ["f", "c"], constants)
    for machine in ("mini", "mncore2"):
        result, report = compiled(model, machine)
        assert report["host_fallback"] == []
        inputs = random_inputs({"x": (6, 50)}, 2)
        found = run(result, inputs, machine)
        other = HostSession(model.SerializeToString(), "model").run(inputs)
        for name in ("f", "c"):
            assert np.allclose(found[name], other[name], rtol=2.0**-20, atol=1e-6)


def test_every_layer_is_tested() -> None:
    assert {*TORCH, DOWNLOAD, UPLOAD} <= set(LAYERS)
