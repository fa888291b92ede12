"""Products whose columns or terms are cut into heads get an axis of heads."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import onnx
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from net import LINE, Net

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

#: Widths of heads with few factors two, and numbers of heads.
WIDTHS, HEADS = (3, 5, 7, 10, 18, 20), (2, 3, 4, 5)


def check(net: Net, outputs: list[str]) -> onnx.ModelProto:
    """Return the optimised model; its outputs must have the same names, and nearly the values."""
    model = net.model(outputs)
    found = optimise(model)
    onnx.checker.check_model(found)
    assert [one.name for one in found.graph.output] == outputs
    assert all(any(p.key == LINE for p in node.metadata_props) for node in found.graph.node)
    inputs = {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
    wanted = HostSession(model, "model").run(inputs)
    got = HostSession(found, "found").run(inputs)
    for name, array in wanted.items():
        assert got[name].shape == array.shape, name
        assert np.abs(got[name] - array).max() <= 1e-5 * np.abs(array).max(), name
    return found


def ranks(model: onnx.ModelProto) -> list[int]:
    """Return the ranks of the constant matrices of the products."""
    sizes = {one.name: len(one.dims) for one in model.graph.initializer}
    products = (node for node in model.graph.node if node.op_type in ("MatMul", "Gemm"))
    return [sizes[node.input[1]] for node in products if node.input[1] in sizes]


def product(net: Net, value: str, terms: int, columns: int) -> str:
    """Append a product, as a MatMul with or without a bias, or as a Gemm of a matrix."""
    kind = net.rng.choice(["MatMul", "Add"])
    p = net.put("MatMul", value, net.weights(terms, columns))
    if kind == "MatMul":
        return p
    return net.put("Add", *net.rng.sample([p, net.weights(columns)], 2))


def apart(order: list[int]) -> bool:
    """Whether the last two axes, heads and width, are no neighbours after a transposition."""
    return order.index(len(order) - 1) != order.index(len(order) - 2) + 1


def test_a_sum_that_repeats_the_columns() -> None:
    """What is added has more elements than the product, and a view cuts those."""
    net = Net(random.Random(4), 2, 5)
    p = net.put("MatMul", "x", net.weights(5, 14))
    p = net.put("Add", p, net.weights(2, 1, 14))
    p = net.put("Transpose", net.view(p, 2, 2, 14, 1), perm=[2, 0, 1, 3])
    assert ranks(check(net, [net.put("Relu", p)])) == [2]


def test_columns_that_are_cut() -> None:
    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(30))
    def run(seed: int) -> None:
        rng = random.Random(seed)
        heads, width, terms = rng.choice(HEADS), rng.choice(WIDTHS), rng.randint(2, 9)
        rows = [rng.randint(2, 6) for _ in range(rng.randint(0, 2))]
        net = Net(rng, *rows, terms)
        p = net.view(product(net, "x", terms, heads * width), *rows, heads, width)
        order = rng.sample(range(len(rows) + 2), len(rows) + 2)
        p = net.put("Transpose", p, perm=order)
        shape = [[*rows, heads, width][axis] for axis in order]
        if rng.random() < 0.5:
            shape = [1, *shape, 1]
            p = net.view(p, *shape)
        elif len(shape) > 2:
            shape = [shape[0] * shape[1], *shape[2:]]
            p = net.view(p, *shape)
        found = check(net, [net.put("Relu", p)])
        # A scalar product axis or a vector has no rows; one is made up.
        assert ranks(found) == [2 + max(1, len(rows)) if apart(order) else 2]

    run()


def test_terms_that_are_joined() -> None:
    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(30))
    def run(seed: int) -> None:
        rng = random.Random(seed)
        heads, width, columns = rng.choice(HEADS), rng.choice(WIDTHS), rng.randint(2, 9)
        rows = [rng.randint(2, 6) for _ in range(rng.randint(1, 2))]
        shape = [*rows, heads, width]
        order = rng.sample(range(len(shape)), len(shape))
        net = Net(rng, *(shape[order.index(axis)] for axis in range(len(shape))))
        # The input has its axes in another order, which the Transpose undoes.
        net.inputs["x"] = tuple(shape[axis] for axis in np.argsort(np.argsort(order)))
        back = [int(axis) for axis in np.argsort(np.argsort(np.argsort(order)))]
        p = net.put("Transpose", net.put("Relu", "x"), perm=back)
        flat = rng.random() < 0.5
        leading = [prod(rows)] if flat else rows
        p = net.view(p, *leading, heads * width)
        if flat and rng.random() < 0.5:
            turned = rng.randint(0, 1)
            matrix = net.weights(*[heads * width, columns][:: -1 if turned else 1])
            p = net.put("Gemm", p, matrix, net.weights(columns), transB=turned)
        else:
            p = product(net, p, heads * width, columns)
        found = check(net, [net.put("Tanh", p)])
        assert max(ranks(found)) == (2 + len(rows) if apart(order) else 2)

    run()


def test_attention_has_no_cut_axes() -> None:
    """The products before and behind attention, as torch writes them for a layer of 3 x 18."""
    net = Net(random.Random(1), 7, 2, 54)
    p = net.put("Add", net.put("MatMul", "x", net.weights(54, 54)), net.weights(54))
    p = net.put("Transpose", net.view(p, 7, 6, 18), perm=[1, 0, 2])
    p = net.put("Softmax", net.view(p, 2, 3, 7, 18), axis=-1)
    p = net.view(net.put("Transpose", p, perm=[2, 0, 1, 3]), 14, 54)
    p = net.put("Gemm", p, net.weights(11, 54), net.weights(11), transB=1)
    p = net.put("Transpose", net.view(p, 7, 2, 11), perm=[1, 0, 2])
    found = check(net, [p])
    assert ranks(found) == [4, 4]
    # The bias stands in front of the view, so that no view joins the batch with the rows.
    assert [node.op_type for node in found.graph.node][-3:] == ["ReduceSum", "Add", "Transpose"]


@pytest.mark.parametrize(
    ("name", "width", "views"),
    [
        ("a width with many factors two", 48, [(6, 3, 48)]),
        ("a cut beside the heads", 6, [(9, 12)]),
        ("no cut", 18, [(3, 2, 54), (6, 54)]),
        ("heads that stay together", 18, [(6, 3, 18), (2, 9, 18)]),
    ],
)
def test_products_that_stay(name: str, width: int, views: list[tuple[int, ...]]) -> None:
    net = Net(random.Random(2), 6, 10)
    p = net.put("MatMul", "x", net.weights(10, 3 * width))
    for shape in views:
        p = net.view(p, *shape)
    if name != "heads that stay together":
        p = net.put("Transpose", p, perm=[1, 0, 2][: len(views[-1])])
    assert ranks(check(net, [net.put("Relu", p)])) == [2], name


def test_a_value_that_others_read_stays() -> None:
    net = Net(random.Random(3), 6, 10)
    p = net.put("MatMul", "x", net.weights(10, 54))
    cut = net.put("Transpose", net.view(p, 6, 3, 18), perm=[1, 0, 2])
    assert ranks(check(net, [net.put("Relu", cut), p])) == [2]


def test_a_scaled_gemm_stays() -> None:
    net = Net(random.Random(4), 6, 10)
    p = net.put("Gemm", "x", net.weights(10, 54), alpha=0.5)
    cut = net.put("Transpose", net.view(p, 6, 3, 18), perm=[1, 0, 2])
    assert ranks(check(net, [net.put("Relu", cut)])) == [2]
