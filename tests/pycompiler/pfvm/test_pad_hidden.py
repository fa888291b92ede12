"""Hidden columns between two products get a length that layouts can cut."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from net import Net

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.pad_hidden import padded
from pycompiler.pfvm.session import HostSession


def check(net: Net, outputs: list[str]) -> onnx.ModelProto:
    """Return the optimised model; its outputs must have the same names, and nearly the values."""
    model = net.model(outputs)
    found = optimise(model)
    onnx.checker.check_model(found, full_check=True)
    assert [one.name for one in found.graph.output] == outputs
    inputs = {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
    wanted = HostSession(model, "model").run(inputs)
    got = HostSession(found, "found").run(inputs)
    for name, array in wanted.items():
        assert got[name].shape == array.shape, name
        assert np.abs(got[name] - array).max() <= 1e-5 * max(1.0, np.abs(array).max()), name
    return found


def matrices(model: onnx.ModelProto) -> list[list[int]]:
    """Return the shapes of the constant matrices, in the order of the products."""
    sizes = {one.name: list(one.dims) for one in model.graph.initializer}
    products = (node for node in model.graph.node if node.op_type in ("MatMul", "Gemm"))
    return [sizes[node.input[1]] for node in products]


def product(net: Net, value: str, terms: int, columns: int) -> str:
    """Append a product with a matrix in any order, with or without a bias."""
    kind = net.rng.choice(["MatMul", "Add", "Gemm", "turned"])
    if kind in ("MatMul", "Add"):
        p = net.put("MatMul", value, net.weights(terms, columns))
        return p if kind == "MatMul" else net.put("Add", p, net.weights(columns))
    if kind == "Gemm":
        return net.put("Gemm", value, net.weights(terms, columns), net.weights(columns))
    return net.put("Gemm", value, net.weights(columns, terms), transB=1, alpha=0.5)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [(1, 1), (31, 31), (33, 33), (65, 66), (420, 424), (1640, 1664), (2808, 2816), (3072, 3072)],
)
def test_few_columns_are_added(columns: int, wanted: int) -> None:
    assert padded(columns) == wanted


def test_hidden_columns_are_padded() -> None:
    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(30))
    def run(seed: int) -> None:
        rng = random.Random(seed)
        rows, wide, hidden, out = (rng.randint(2, n) for n in (9, 9, 300, 9))
        net = Net(rng, rows, wide)
        p = product(net, "x", wide, hidden)
        for op in rng.sample(["Relu", "Tanh", "Abs", "Neg", "Elu"], rng.randint(0, 3)):
            p = net.put(op, p)
        found = check(net, [product(net, p, hidden, out)])
        first, second = matrices(found)
        assert padded(hidden) in first
        assert padded(hidden) in second

    run()


@pytest.mark.parametrize("kind", ["not zero", "read twice", "an output", "a bias of rows"])
def test_columns_that_stay(kind: str) -> None:
    net = Net(random.Random(5), 6, 10)
    outputs = []
    p = net.put("MatMul", "x", net.weights(10, 70))
    if kind == "a bias of rows":
        p = net.put("Add", p, net.weights(6, 70))
    p = net.put("Sigmoid" if kind == "not zero" else "Relu", p)
    if kind == "read twice":
        outputs.append(net.put("Tanh", p))
    if kind == "an output":
        outputs.append(p)
    outputs.append(net.put("MatMul", p, net.weights(70, 8)))
    assert matrices(check(net, outputs)) == [[10, 70], [70, 8]]
