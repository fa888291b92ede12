"""Every operator of the registry against PyTorch and onnxruntime, and an audit of the tables.

Samples have random shapes, axes and broadcasting, in all dtypes of the operator and in both modes.
In `make test` operators take turns: their first dtype has one sample in one of three settings, and
a fifth of their other dtypes has one in either mode. Products have a sample in both modes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import operator_pointwise
import pytest
import torch
from compiling import LONG, compiled, model_of, random_inputs, run, sampled, with_seeds
from nest_counts import check_counts
from operator_catalogue import ROWS
from operator_rows import DTYPES, HOST_ERROR, PRODUCTS, REAL, REALS, Array, Row, Sample, Shape

from pycompiler.graph.dtypes import device_dtype
from pycompiler.layers.base import Layer
from pycompiler.layers.elementwise import Elementwise
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import load_target
from pycompiler.pfvm.composites import COMPOSITES
from pycompiler.pfvm.onnx_functions import WRITTEN_OUT
from pycompiler.pfvm.session import HostSession


def check(row: Row, sample: Sample, mode: str, machine: str) -> None:
    model = row.model(sample)
    result, report = compiled(model, machine, float_dtype=mode)
    assert report["host_fallback"] == []
    found = run(result, sample.given, machine)
    host = model if row.host is None else row.model(sample, for_host=True)
    other = HostSession(host, "model").run(sample.given)
    for number, wanted in enumerate(sample.wanted()):
        name, dtype = f"y{number}", row.dtype(number, sample)
        limit = row.limit(sample, wanted, mode)
        near(found[name], wanted, limit, dtype)
        near(found[name], other[name], HOST_ERROR * limit + sample.absolute, dtype)
    check_counts(result.graph, load_target(machine))
    own = row.op in LAYERS and (row.op, row.claim) in claims(row.op, LAYERS[row.op])
    if own and mode == "mixed":
        ran = [node for node in result.graph.nodes if node.op == row.op]
        used = {result.graph.values[name].dtype.value for node in ran for name in node.inputs}
        claim = row.claim.split(" to ")[0]
        # `uint32` goes through `int64` (`pfvm/narrow_integers.py`).
        claimed = {claim, "Long"} if claim == "UInt" else {claim}
        assert not ran or claimed & (used | {"Float"}) or row.claim == "Double"
    # Nodes share steps, and the slices of a node share a row, so only the sums can be compared.
    assert sum(node["steps"] for node in report["nodes"]) == report["steps"]


def near(found: Array, wanted: Array, limit: Array, dtype: str) -> None:
    """Shape, dtype, and every element within ``limit``; infinities have their sign."""
    assert found.shape == wanted.shape
    assert found.dtype == np.dtype(dtype)
    if dtype not in REALS:
        assert np.array_equal(found, wanted.astype(found.dtype))
        return
    with np.errstate(invalid="ignore", over="ignore"):
        infinite = np.isinf(wanted.astype(dtype))
        close = np.abs(found.astype(np.float64) - wanted) <= limit
    close |= np.isnan(wanted)  # 0/0 is outside the contract
    assert np.where(infinite, np.sign(found) == np.sign(wanted), close).all()


def name_of(row: Row) -> str:
    return f"{row.op}-{row.claim.replace(' ', '-')}"


#: The first row of each operator.
FIRST = {row.op: row for row in reversed(ROWS) if not row.slow}


def _marked(number: int, row: Row) -> Any:
    """Return the row for parametrize; `make test` has the first of each operator, and others."""
    has = FIRST.get(row.op) is row or (number % 10 == 0 and not row.slow)
    return pytest.param(row, id=name_of(row), marks=() if has else pytest.mark.long)


@pytest.mark.parametrize("row", [_marked(number, row) for number, row in enumerate(ROWS)])
def test_operator(row: Row) -> None:
    first = row.claim in ("Float", "Half")
    settings = [("float", "mini", 30 if first else 10)]
    settings += [("mixed", "mini", 30 if first and row.op in PRODUCTS else 10)]
    if row.claim == DTYPES[REAL].value:
        settings += [("float", "mncore2", 10)]
    turn = ROWS.index(row) % len(settings)
    for place, (mode, machine, examples) in enumerate(settings):
        if LONG or place == turn or (first and row.op in PRODUCTS and machine == "mini"):
            compare(row, mode, machine, examples)


def compare(row: Row, mode: str, machine: str, examples: int) -> None:
    """Compare one sample; in `make test-long` ``examples``."""

    def case(seed: int) -> None:
        check(row, row.sample(random.Random(seed)), mode, machine)

    with_seeds(case, 1, examples)


def claims(op: str, layer: Layer) -> Iterator[tuple[str, str]]:
    """Yield the operator with each dtype that the registry claims for it."""
    if isinstance(layer, Elementwise):
        function = layer.function
        yield from ((op, f"{a.value} to {b.value}") for a, b in function.pairs)
        yield from ((op, dtype.value) for dtype in function.dtypes)
    else:
        yield from ((op, dtype.value) for dtype in layer.dtypes)


def test_every_operator_in_every_dtype_has_a_row() -> None:
    wanted = {
        claim
        for op, layer in LAYERS.items()
        if not op.startswith("MNCore")
        for claim in claims(op, layer)
    }
    wanted |= {
        (op, device_dtype(elem).value)
        for op, composite in COMPOSITES.items()
        for elem in composite.elems
    }
    functions = WRITTEN_OUT - COMPOSITES.keys() - LAYERS.keys()  # ONNX says how they are written
    have = {(row.op, row.claim) for row in ROWS if row.op not in functions}
    assert wanted == have, (sorted(wanted - have), sorted(have - wanted))


def test_tolerances_are_those_of_the_registry() -> None:
    for row in ROWS:
        stated = {known[row.op].error for known in (LAYERS, COMPOSITES) if row.op in known}
        assert stated == ({row.error} if stated or row.op not in WRITTEN_OUT else set()), row.op


@pytest.mark.parametrize("row", sampled(ROWS), ids=name_of)
def test_samples_vary(row: Row) -> None:
    """Ranks, axes from both ends, and operands that broadcast, each way."""
    samples = [row.sample(random.Random(seed)) for seed in range(80)]
    firsts = [next(iter(sample.operands.values())) for sample in samples]
    assert {first.ndim for first in firsts if first is not None} == set(row.ranks)
    assert row.ranks == range(1) or any(1 in first.shape for first in firsts if first is not None)
    for key in ("axis", "axes"):
        said = [n for sample in samples for n in _numbers(sample, key)]
        if said:
            assert len(set(said)) >= min(3, len(row.ranks))
            assert min(said) < 0 <= max(said)
    for key in ("keepdims", "transA", "transB"):
        flags = {sample.attributes[key] for sample in samples if key in sample.attributes}
        assert flags in ({0, 1}, set())
    if isinstance(LAYERS.get(row.op), Elementwise) or row.op == "MatMul":
        _broadcasts(row, samples)
    for sample in samples[:2]:  # operands that a call gives must not be part of the model
        known = {tensor.name for tensor in row.model(sample).graph.initializer}
        assert not known & set(sample.given)


def _numbers(sample: Sample, key: str) -> list[int]:
    if key in sample.attributes:
        return [int(axis) for axis in np.ravel(sample.attributes[key])]
    array = sample.operands.get(key)
    return [] if array is None else [int(axis) for axis in array.reshape(-1)]


def _broadcasts(row: Row, samples: list[Sample]) -> None:
    """Every operand is broadcast in some sample, along an axis of size 1 or one that it lacks."""
    inner = 2 if row.op == "MatMul" else 0
    shapes = [[a.shape for a in s.operands.values() if a is not None] for s in samples]
    shapes = [[shape[: len(shape) - inner] for shape in s if len(shape) >= inner] for s in shapes]
    count = max(map(len, shapes))
    scalars = row.op == "Clip"
    for place in range(count if count > 1 and not scalars and row.claim != "Half" else 0):
        grown = {_growth(s[place], s) for s in shapes if len(s) == count}
        assert {"longer", "wider"} <= grown


def _growth(shape: Shape, others: list[Shape]) -> str:
    whole = np.broadcast_shapes(*others)
    if len(whole) > len(shape):
        return "longer"
    return "same" if tuple(whole) == shape else "wider"


#: The rows for tests that choose their own shapes.
PLAIN = {row.op: row for row in ROWS if row.claim == DTYPES[REAL].value}


def check_shapes(op: str, shapes: list[Shape], machine: str, seed: int, same: bool = False) -> None:
    """``op`` on operands of these shapes; one operand twice if ``same``."""
    function = operator_pointwise.CASES[op].function
    given = {
        name: random_inputs({name: shape}, seed + number)[name]
        for number, (name, shape) in enumerate(zip("xy", shapes, strict=False))
    }
    if not same:
        sample = Sample(given, lambda **d: function(*d.values()))
        check(PLAIN[op], sample, "float", machine)
        return
    model = model_of([(op, ["x", "x"], "y0")], {"x": shapes[0]}, ["y0"])
    result, report = compiled(model, machine)
    assert report["host_fallback"] == []
    wanted = function(*[torch.from_numpy(given["x"]).double()] * 2).numpy()
    sample = Sample(given, function)
    limit = PLAIN[op].limit(sample, wanted, "float")
    near(run(result, given, machine)["y0"], wanted, limit, REAL)


@pytest.mark.parametrize("op", sampled(["Add", "Sub", "Mul"], every=3, first=1))
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
        check_shapes(op, shapes, machine, 7)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("shape", [(), (5,), (123, 45)])
def test_an_operand_used_twice(op: str, shape: Shape) -> None:
    check_shapes(op, [shape], "mncore2", 3, same=True)


def test_the_whole_chip() -> None:
    check_shapes("Mul", [(512, 1024), (512, 1024)], "mncore2", 11)


@pytest.mark.parametrize("op", sampled(["Add", "Sub", "Mul"], every=3))
def test_a_result_that_fills_lm(op: str) -> None:
    check_shapes(op, [(512, 1), (1, 64)], "mini", 5)
    check_shapes(op, [(32, 1, 64), (1, 16, 1)], "mini", 5)


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
        other = HostSession(model, "model").run(inputs)
        for name in ("f", "c"):
            assert np.allclose(found[name], other[name], rtol=2.0**-20, atol=1e-6)
