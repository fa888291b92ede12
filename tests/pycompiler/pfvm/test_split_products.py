"""A product whose columns are taken apart becomes one product for each part."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod

import numpy as np
import onnx
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from net import LINE, Net
from onnx import TensorProto, helper

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

#: Sizes of axes. No power of two is among them, so that axes are not mixed up.
SIZES = (3, 5, 6, 7, 9, 11)
PRODUCTS = ("MatMul", "Gemm")


def count(model: onnx.ModelProto) -> int:
    return sum(node.op_type in PRODUCTS for node in model.graph.node)


def check(net: Net, outputs: Sequence[str]) -> onnx.ModelProto:
    """Return the optimised model; its outputs must have the same names, and nearly the values."""
    model = net.model(outputs)
    found = optimise(model)
    onnx.checker.check_model(found)
    assert [one.name for one in found.graph.output] == list(outputs)
    inputs = {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
    wanted = HostSession(model, "model").run(inputs)
    got = HostSession(found, "found").run(inputs)
    for name, array in wanted.items():
        assert got[name].shape == array.shape, name
        assert np.abs(got[name] - array).max() <= 1e-5 * np.abs(array).max(), name
    return found


# -- products that are split -----------------------------------------------------------------

#: A pattern writes a graph and returns its outputs.
Pattern = Callable[[Net, Callable[[], int]], Sequence[str]]


def _attention(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write what torch makes of MultiheadAttention."""
    tokens, batch, wide = size(), size(), size()
    net.inputs["x"] = (tokens, batch, wide)
    p = net.put("MatMul", "x", net.weights(wide, 3 * wide))
    p = net.put("Add", *net.rng.sample([p, net.weights(3 * wide)], 2))
    p = net.put("Unsqueeze", net.view(p, tokens, batch, 3, wide), net.ints(0))
    p = net.put("Transpose", p, perm=[3, 1, 2, 0, 4])
    p = net.put("Squeeze", p, net.ints(3))
    return [net.one(p, index, 0) for index in (0, 1, -1)]


def _vision(net: Net, size: Callable[[], int], op: str) -> Sequence[str]:
    """Write the attention of ViT; a bias and the order of the parts are drawn."""
    batch, tokens, heads, wide, given_wide = (size() for _ in range(5))
    net.inputs["x"] = (batch, tokens, given_wide)
    p = net.put("MatMul", "x", net.weights(given_wide, 3 * heads * wide))
    if net.rng.random() < 0.5:
        p = net.put("Add", p, net.weights(3 * heads * wide))
    p = net.view(p, batch, tokens, 3, heads, wide)
    p = net.put("Transpose", p, perm=[2, 0, 3, 1, 4])
    if op == "Gather":
        return [net.one(p, index, 0) for index in net.rng.sample(range(3), 3)]
    p = net.put("Split", p, outputs=3, axis=0, num_outputs=3)
    return [net.put("Squeeze", f"{p}_{number}", net.ints(0)) for number in range(3)]


def _language(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write the attention of GPT-2, with parts of several sizes."""
    batch, tokens, wide = (size() for _ in range(3))
    parts = [size() for _ in range(3)]
    net.inputs["x"] = (batch, tokens, wide)
    flat, columns = net.view("x", -1, wide), sum(parts)
    p = net.put("Gemm", flat, net.weights(wide, columns), net.weights(columns))
    p = net.view(p, batch, tokens, columns)
    p = net.put("Split", p, net.ints(*parts), outputs=3, axis=net.rng.choice([-1, 2]))
    # Other nodes read two parts, the third is an output itself.
    return [net.put("Relu", f"{p}_0"), net.put("Tanh", f"{p}_2"), f"{p}_1"]


def _slices(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write Slices with negative bounds; some columns are not read."""
    rows, wide, left, right, gap = (size() for _ in range(5))
    net.inputs["x"] = (rows, wide)
    columns = left + gap + right
    p = net.put("MatMul", "x", net.weights(wide, columns))
    return [
        net.cut(p, -right, 2**63 - 1, -1),
        net.put("Relu", net.cut(p, -columns - 5, -right - gap, 1, 1)),
    ]


def _gemm(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write a Gemm with drawn attributes and a bias of one or more rows."""
    rows, wide, left, right = (size() for _ in range(4))
    net.inputs["x"], columns = (rows, wide), left + right
    turned = net.rng.randint(0, 1)
    matrix = net.weights(columns, wide) if turned else net.weights(wide, columns)
    bias = net.weights(*net.rng.choice([(columns,), (1, columns), (rows, columns)]))
    reads = ["x", matrix, bias][: net.rng.choice([2, 3, 3])]
    p = net.put("Gemm", *reads, transB=turned, alpha=0.7, beta=-1.3)
    return [net.cut(p, 0, left, 1), net.cut(p, left, columns, 1)]


def _squeezed(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write a Squeeze without axes; a part has one column, which must not be dropped with it."""
    rows, wide, columns = size(), size(), size()
    net.inputs["x"] = (1, rows, wide)
    p = net.put("Squeeze", net.put("MatMul", "x", net.weights(wide, columns)))
    return [net.cut(p, 0, 1, 1), net.cut(p, 1, columns, 1)]


def _vector(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write a product of a vector, whose parts Gathers of lists of one index take."""
    wide, columns = size(), size()
    net.inputs["x"] = (wide,)
    p = net.put("MatMul", "x", net.weights(wide, columns))
    indices = net.rng.sample(range(-columns, 0), 2)
    return [net.put("Gather", p, net.ints(index), axis=-1) for index in indices]


def _cut_twice(net: Net, size: Callable[[], int]) -> Sequence[str]:
    """Write two Reshapes that cut the columns; one of three outputs is read by nothing."""
    rows, wide, outer, inner = (size() for _ in range(4))
    net.inputs["x"] = (rows, wide)
    p = net.put("MatMul", "x", net.weights(wide, 3 * outer * inner))
    p = net.put("Unsqueeze", net.view(p, rows, 3 * outer, inner), net.ints(1))
    p = net.view(p, rows, 3, outer, inner)
    p = net.put("Split", net.put("Transpose", p), outputs=3, axis=2, num_outputs=3)
    return [f"{p}_0", net.put("Relu", f"{p}_2")]


#: Name -> the pattern and the number of products that it becomes.
SPLIT: dict[str, tuple[Pattern, int]] = {
    "torch": (_attention, 3),
    "vision Gather": (lambda net, size: _vision(net, size, "Gather"), 3),
    "vision Split": (lambda net, size: _vision(net, size, "Split"), 3),
    "language": (_language, 3),
    "slices": (_slices, 2),
    "gemm": (_gemm, 2),
    "squeezed": (_squeezed, 2),
    "vector": (_vector, 2),
    "cut twice": (_cut_twice, 2),
}


@pytest.mark.parametrize("seed", range(tried(4)))
@pytest.mark.parametrize("kind", SPLIT)
def test_split(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    net, (pattern, products) = Net(rng), SPLIT[kind]
    outputs = pattern(net, lambda: rng.choice(SIZES))
    found = check(net, outputs)
    assert count(net.model(outputs)) == 1
    assert count(found) == products
    ops = {node.op_type for node in found.graph.node}
    assert not ops & {"Slice", "Split", "Gather"}
    # Nothing stays of the whole matrix, and every new node has a source line.
    read = {name for node in found.graph.node for name in node.input}
    assert {one.name for one in found.graph.initializer} <= read
    for node in found.graph.node:
        assert [one.key for one in node.metadata_props] == [LINE], node.name


def test_parts_of_shared_parameters_have_names_of_their_own() -> None:
    """Two products have one matrix, two sums have one bias, and a part's name is taken."""
    net = Net(random.Random(1), 5, 6)
    net.arrays = {"w": np.ones((6, 6), np.float32), "b": np.ones(6, np.float32)}
    net.arrays["w.0"] = 2 * net.arrays["w"]
    outputs = []
    for _ in range(2):
        source = "x" if not outputs else net.put("Relu", "x")
        p = net.put("Gemm", source, "w", "b")
        p = net.put("Add", p, "b")
        outputs += [net.cut(p, 0, 2 + len(outputs), 1), net.cut(p, 2 + len(outputs), 6, 1)]
    outputs.append(net.put("MatMul", "x", "w.0"))
    # The names that values of a part would have, too.
    first = next(node.output[0] for node in net.nodes if node.op_type == "Gemm")
    taken = helper.make_node("Neg", ["x"], [f"{first}.0"], name="taken")
    net.nodes.append(taken)
    found = check(net, [*outputs, f"{first}.0"])
    assert count(found) == 5


# -- products that stay ----------------------------------------------------------------------


def _product(net: Net, *matrix: str) -> str:
    """Append a product of 5 rows by 9 columns, which may be taken apart."""
    return net.put("MatMul", "x", *(matrix or [net.weights(6, 9)]))


def _gemm_with(net: Net, bias: str) -> str:
    return net.put("Gemm", "x", net.weights(6, 9), bias)


def _turned(net: Net) -> str:
    net.inputs["x"] = (6, 5)
    return net.put("Gemm", "x", net.weights(6, 9), transA=1)


def _with_default(net: Net) -> str:
    """Return a product by an input of the graph that has a default."""
    matrix = net.weights(6, 9)
    net.inputs[matrix] = (6, 9)
    return _product(net, matrix)


def _with_matrices(net: Net) -> str:
    net.inputs["x"] = (1, 5, 6)
    return net.put("Squeeze", _product(net, net.weights(1, 6, 9)), net.ints(0))


def _doubled(net: Net) -> str:
    p = _product(net)
    return net.put("Add", p, p)


#: Products that parts are taken of in a plain way. The first one is split, the others are not.
WHOLE: dict[str, Callable[[Net], str]] = {
    "none": _product,
    "matrix is an input": lambda net: _product(net, net.input(6, 9)),
    "matrix has a default": _with_default,
    "matrix of three axes": _with_matrices,
    "bias is an input": lambda net: _gemm_with(net, net.input(9)),
    "bias is a scalar": lambda net: _gemm_with(net, net.weights()),
    "bias of one column": lambda net: _gemm_with(net, net.weights(1)),
    "transA": _turned,
    "operator in between": lambda net: net.put("Relu", _product(net)),
    "added matrix": lambda net: net.put("Add", _product(net), net.weights(5, 9)),
    "added input": lambda net: net.put("Add", _product(net), net.input(9)),
    "added to itself": _doubled,
}


def _parts(net: Net, value: str, axis: int, *ends: int) -> list[str]:
    return [net.cut(value, start, end, axis) for start, end in pairwise(ends)]


def _branches(net: Net, source: str) -> str:
    """Append an If whose branches read Slices of a value."""
    bodies = {}
    for name, (start, end) in {"then": (0, 2), "else": (2, 4)}.items():
        reads = [source, *(net.ints(number) for number in (start, end, 1))]
        node = helper.make_node("Slice", reads, [f"{name}_out"], name=f"{name}_node")
        out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, (5, 2))
        bodies[f"{name}_branch"] = helper.make_graph([node], name, [], [out])
    condition = net.put("Cast", net.put("ReduceMax", "x", keepdims=0), to=TensorProto.BOOL)
    return net.put("If", condition, **bodies)


def _bound(net: Net) -> str:
    """Return a value that is 3, but no constant."""
    index = net.put("ArgMax", net.put("Abs", "x"), axis=0)
    one = net.put("Slice", index, net.ints(0, 0), net.ints(1, 1))
    none = net.put("Min", net.put("Reshape", one, net.ints(1)), net.ints(0))
    return net.put("Add", none, net.ints(3))


def _two_axes(net: Net, p: str) -> list[str]:
    return [net.put("Slice", p, net.ints(0, 0), net.ints(4, 4), net.ints(0, 1))]


#: Readers that do not take a plain product apart; they return outputs.
READERS: dict[str, Callable[[Net, str], list[str]]] = {
    "overlap": lambda net, p: [net.cut(p, 0, 5, 1), net.cut(p, 4, 9, 1)],
    "the same part twice": lambda net, p: [net.cut(p, 0, 4, 1), net.one(p, 3, 1)],
    "output in between": lambda net, p: [p, *_parts(net, p, 1, 0, 4, 9)],
    "reader in between": lambda net, p: [net.put("Relu", p), *_parts(net, p, 1, 0, 4, 9)],
    "reader beside a view": lambda net, p: [
        *_parts(net, net.view(p, 5, 3, 3), 1, 0, 1, 3),
        net.put("Relu", p),
    ],
    "added behind a view": lambda net, p: _parts(
        net, net.put("Add", net.view(p, 5, 3, 3), net.weights(3)), 1, 0, 1, 3
    ),
    "inner axis": lambda net, p: _parts(net, net.view(p, 5, 3, 3), 2, 0, 1, 3),
    "mixed with rows": lambda net, p: _parts(net, net.view(p, 45), 0, 0, 9, 45),
    "rows": lambda net, p: _parts(net, p, 0, 0, 2, 5),
    "turned": lambda net, p: _parts(net, net.put("Transpose", p), 1, 0, 2, 5),
    "several indices": lambda net, p: [
        net.put("Gather", p, net.ints(*one), axis=1) for one in ((0, 1, 2), (4, 3))
    ],
    "steps": lambda net, p: [net.cut(p, 0, 4, 1, 2), net.cut(p, 4, 9, 1)],
    "backwards": lambda net, p: [net.cut(p, 3, -10, 1, -1), net.cut(p, 4, 9, 1)],
    "one reader": lambda net, p: [net.cut(p, 2, 5, 1)],
    "two axes": lambda net, p: [*_two_axes(net, p), net.cut(p, 4, 9, 1)],
    "bounds are computed": lambda net, p: [
        net.put("Slice", p, _bound(net), *(net.ints(number) for number in (7, -1, 1))),
        net.cut(p, 0, 3, 1),
    ],
    "readers in bodies": lambda net, p: [_branches(net, p)],
    "a reader in a body": lambda net, p: [_branches(net, p), net.cut(p, 4, 9, 1)],
}


@pytest.mark.parametrize("kind", WHOLE)
def test_products_that_stay(kind: str) -> None:
    net = Net(random.Random(len(kind)), 5, 6)
    found = check(net, _parts(net, WHOLE[kind](net), 1, 0, 4, 9))
    assert count(found) == (2 if kind == "none" else 1)


@pytest.mark.parametrize("kind", READERS)
def test_readers_that_keep_a_product(kind: str) -> None:
    net = Net(random.Random(len(kind)), 5, 6)
    found = check(net, READERS[kind](net, _product(net)))
    (matrix,) = (node.input[1] for node in found.graph.node if node.op_type in PRODUCTS)
    # An axis of heads may be added, but the matrix stays one.
    (sizes,) = (one.dims for one in found.graph.initializer if one.name == matrix)
    assert prod(sizes) == 6 * 9


# -- views in between ------------------------------------------------------------------------


def _viewed(net: Net, source: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Append a view that is drawn; return its result with its shape."""
    rng, ones = net.rng, [axis for axis, size in enumerate(shape) if size == 1]
    kind = rng.choice(["cut", "join", "Transpose", "Unsqueeze", "Squeeze"])
    at = rng.randrange(len(shape))
    if kind == "cut":
        size = rng.choice([n for n in range(1, shape[at] + 1) if shape[at] % n == 0])
        shape = (*shape[:at], size, shape[at] // size, *shape[at + 1 :])
        return net.view(source, *shape), shape
    if kind == "join":
        end = min(at + 2, len(shape))
        shape = (*shape[:at], prod(shape[at:end]), *shape[end:])
        return net.view(source, *shape), shape
    if kind == "Transpose":
        order = rng.sample(range(len(shape)), len(shape))
        return net.put("Transpose", source, perm=order), tuple(shape[axis] for axis in order)
    if kind == "Unsqueeze":
        return net.put("Unsqueeze", source, net.ints(at)), (*shape[:at], 1, *shape[at:])
    if ones and rng.random() < 0.5:
        ones = rng.sample(ones, 1)
        rest = tuple(size for axis, size in enumerate(shape) if axis not in ones)
        return net.put("Squeeze", source, net.ints(*ones)), rest
    return net.put("Squeeze", source), tuple(size for size in shape if size > 1)


def _taken(net: Net, source: str, shape: tuple[int, ...]) -> Sequence[str]:
    """Take parts of a drawn axis in a drawn way; return their names."""
    rng = net.rng
    axis = rng.choice([axis for axis, size in enumerate(shape) if size > 1])
    size, kind = shape[axis], rng.choice(["Gather", "Split", "Slice", "Slice"])
    if kind == "Gather":
        return [net.one(source, index, axis) for index in rng.sample(range(-size, 0), 2)]
    ends = [0, *sorted(rng.sample(range(1, size), min(size - 1, rng.randint(1, 3)))), size]
    ranges = list(pairwise(ends))
    if kind == "Split":
        lengths = net.ints(*(end - start for start, end in ranges))
        part = net.put("Split", source, lengths, outputs=len(ranges), axis=axis)
        return [f"{part}_{number}" for number in range(len(ranges))]
    return [net.cut(source, start, end, axis) for start, end in rng.sample(ranges, len(ranges))]


def test_any_views_in_between() -> None:
    """Results stay, whether a product is split or not; many products are split."""
    split = []

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(40, 1000), deadline=None)
    def case(seed: int) -> None:
        rng = random.Random(seed)
        wide, columns = rng.choice(SIZES), prod(rng.choice([1, 2, 3, 5]) for _ in range(3)) * 2
        shape = tuple(rng.choice([1, 2, 3, 5]) for _ in range(rng.randint(0, 2)))
        net = Net(rng, *shape, wide)
        p, shape = net.put("MatMul", "x", net.weights(wide, columns)), (*shape, columns)
        for _ in range(rng.randint(0, 4)):
            if rng.random() < 0.2:
                p = net.put("Add", p, net.weights(shape[-1]))
            p, shape = _viewed(net, p, shape)
        split.append(count(check(net, _taken(net, p, shape))) > 1)

    case()
    assert sum(split) > len(split) / 8
