"""Factors of products in half that are rounded where they are made."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from compiling import compiled, planning, run, sampled, tried, typed
from hypothesis import given, settings
from hypothesis import strategies as st
from net import Net

from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph import MNDtype, MNGraph
from pycompiler.layers.half_conversions import AXIS, NARROW
from pycompiler.machine import load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.halves import same_words_axis
from pycompiler.planners.side import plan_sides
from pycompiler.tolerance import NETWORKS

MACHINE = "mncore2"
#: The fewest elements of a value that is rounded: two for each PE.
LEAST = 2 * prod(load_target(MACHINE).pe_shape)
#: Numbers of terms. So few that they are added up in one order, whatever the layouts.
TERMS = (16, 32, 48, 64)


def product(net: Net, source: str, terms: int, columns: int, *batch: int) -> str:
    """Append a product by a constant matrix; results are about as large as its input."""
    weights = net.weights(*batch, terms, columns)
    net.arrays[weights] /= np.float32(np.sqrt(terms))
    return net.put("MatMul", source, weights)


def inputs_of(net: Net) -> dict[str, np.ndarray]:
    return {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}


def _rows(rng: random.Random, wide: int) -> tuple[int, int]:
    """Return pictures and tokens; with ``wide`` elements each, they are enough to be rounded."""
    tokens = rng.choice([16, 33, 48, 50])
    return -(-LEAST // (tokens * wide)) + rng.randrange(4), tokens


def _plain(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw a product, Relu, and a product."""
    terms = rng.choice(TERMS)
    net = Net(rng, *_rows(rng, terms), terms)
    p = net.put("Relu", product(net, "x", terms, terms))
    return net, [product(net, p, terms, rng.choice([20, 24]))]


def _heads(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw two products that views bring to a third one."""
    heads, wide = rng.choice([2, 3]), rng.choice([16, 32])
    batch, tokens = _rows(rng, heads * wide)
    net, made = Net(rng, batch, tokens, 16), []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1]):
        p = product(net, "x", 16, heads * wide)
        p = net.put("Relu", p) if rng.random() < 0.5 else p
        p = net.view(p, batch, tokens, heads, wide)
        made.append(net.put("Transpose", p, perm=order))
    return net, [net.put("MatMul", *made)]


def _gemm(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw a Gemm behind a view that joins axes; another node reads its input, too."""
    terms = rng.choice(TERMS)
    batch, tokens = _rows(rng, terms)
    net = Net(rng, batch, tokens, terms)
    p = product(net, "x", terms, terms)
    flat = net.put("Flatten", p, axis=2)
    y = net.put("Gemm", flat, net.weights(20, terms), net.weights(20), transB=1, alpha=0.25)
    return net, [y, net.put("Tanh", p)]


def _slices(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw products of parts of a product."""
    terms = rng.choice([16, 32])
    batch, tokens = _rows(rng, terms)
    net, outputs = Net(rng, 2 * batch + 1, tokens, terms), []
    p = product(net, "x", terms, terms)
    for start, end in ((0, batch), (batch, 2 * batch + 1)):
        outputs.append(product(net, net.cut(p, start, end, 0), terms, 24))
    if rng.random() < 0.5:
        outputs.append(net.put("Neg", p))
    return net, outputs


def _input(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw two products of an input, which another operator reads, too."""
    terms = rng.choice(TERMS)
    batch, tokens = _rows(rng, terms)
    net = Net(rng, batch, tokens, terms)
    flat = net.view("x", batch * tokens, terms)
    return net, [product(net, "x", terms, 20), product(net, flat, terms, 24), net.put("Neg", "x")]


def _columns(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw products along two axes of a product."""
    terms, tokens = rng.choice(TERMS), rng.choice([16, 48])
    net = Net(rng, LEAST // (terms * tokens) + rng.randint(1, 5), tokens, terms)
    p = product(net, "x", terms, terms)
    across = net.put("MatMul", net.weights(9, tokens), p)
    return net, [product(net, p, terms, 24), across]


def _host(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw products around an operator that runs on the host."""
    terms = rng.choice(TERMS)
    net = Net(rng, *_rows(rng, terms), terms)
    p = net.put("Atan", product(net, "x", terms, terms))
    return net, [product(net, p, terms, 20), product(net, net.put("Relu", p), terms, 24)]


def _shape_of_a_fault(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw an input that has more copies than its halves."""
    net = Net(rng, 5, 16, 128)
    p = net.view("x", 80, 128)
    return net, [net.put("Relu", "x"), product(net, p, 128, 16)]


def _tails(rng: random.Random) -> tuple[Net, Sequence[str]]:
    """Draw products whose terms fill no block; behind the terms lies infinity."""
    terms = rng.choice([5, 18, 23, 37, 50, 61])
    net = Net(rng, *_rows(rng, terms), 16)
    p = net.put("Reciprocal", product(net, "x", 16, terms))
    other = net.put("Log", net.put("Abs", product(net, "x", 16, terms)))
    last = product(net, p, terms, rng.choice([9, 20])), product(net, other, terms, 33)
    return net, [*last, net.put("Neg", p)]


EXACT: list[Any] = [_heads, _columns, _shape_of_a_fault]
LONGER = (_plain, _host, _tails, _gemm, _slices, _input)
EXACT += [pytest.param(graph, marks=pytest.mark.long) for graph in LONGER]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(tried(1)))
@pytest.mark.parametrize("graph", EXACT)
def test_the_same_bits(
    graph: Callable[[random.Random], tuple[Net, Sequence[str]]],
    seed: int,
) -> None:
    """A program without rounding gives the same bits."""
    net, outputs = graph(random.Random(seed))
    model, inputs = net.model(outputs), inputs_of(net)
    found = []
    for rounds in (True, False):
        skipped = "" if rounds else "round_factors"
        result, _ = compiled(model, MACHINE, float_dtype="mixed", skip_rewrites=skipped)
        assert rounds == (NARROW in {node.op for node in result.graph.nodes})
        found.append(run(result, inputs, MACHINE))
    for name in outputs:
        assert found[0][name].tobytes() == found[1][name].tobytes(), f"{name}, seed {seed}"


# -- networks --------------------------------------------------------------------------------


def _attention(
    rng: random.Random, tokens: int, mask: str, heads: int = 2
) -> tuple[Net, Sequence[str]]:
    """Draw a layer of attention with a bias, a residual and a mask of some kind."""
    wide = rng.choice([16, 32])
    whole, batch = heads * wide, -(-LEAST // (tokens * heads * wide)) + rng.randrange(2)
    net = Net(rng, batch, tokens, whole)
    p = net.put("Add", product(net, "x", whole, 3 * whole), net.weights(3 * whole))
    p = net.view(p, batch, tokens, 3, heads, wide)
    p = net.put("Transpose", p, perm=[2, 0, 3, 1, 4])
    q, k, v = (net.one(p, index, 0) for index in range(3))
    p = net.put("MatMul", q, net.put("Transpose", k, perm=[0, 1, 3, 2]))
    p = net.put("Mul", p, net.number(wide**-0.5))
    if mask == "causal":
        p = net.put("Add", p, net.array(np.triu(np.full((tokens, tokens), -1e4), 1)))
    elif mask == "input":
        p = net.put("Add", p, net.input(batch, 1, 1, tokens))
    p = net.put("MatMul", net.put("Softmax", p, axis=-1), v)
    p = net.view(net.put("Transpose", p, perm=[0, 2, 1, 3]), batch, tokens, whole)
    return net, [net.put("Add", product(net, p, whole, whole), "x")]


ATTENTION = ((32, "none", 2), (33, "causal", 3), (50, "input", 2), (48, "causal", 1))


@pytest.mark.parametrize("seed", range(tried(1)))
@pytest.mark.parametrize(("tokens", "mask", "heads"), sampled(ATTENTION, every=4, first=3))
def test_attention_against_onnxruntime(tokens: int, mask: str, heads: int, seed: int) -> None:
    """Numbers of tokens are also no multiples of what a product in half adds up at once."""
    net, (name,) = _attention(random.Random(seed), tokens, mask, heads)
    model, inputs = net.model([name]), inputs_of(net)
    result, report = compiled(model, MACHINE, float_dtype="mixed")
    assert report["host_fallback"] == []
    assert NARROW in {node.op for node in result.graph.nodes}
    found = run(result, inputs, MACHINE)[name]
    wanted = HostSession(model, "model").run(inputs)[name]
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert error <= NETWORKS["mixed"], f"seed {seed}"


# -- which values are rounded ----------------------------------------------------------------

#: A graph is written behind its first product, ``v0``. It returns its outputs.
Graph = Callable[[Net], Sequence[str]]
ROUNDED: dict[str, tuple[Graph, list[tuple[str, int]]]] = {
    "one reader": (lambda net: [product(net, "v0", 32, 9)], [("v0.singles", 2)]),
    "Relu in between": (
        lambda net: [product(net, net.put("Relu", "v0"), 32, 9)],
        [("v0.singles", 2)],
    ),
    "Tanh in between": (
        lambda net: [product(net, net.put("Tanh", "v0"), 32, 9)],
        [("v1.singles", 2)],
    ),
    "an output": (lambda net: ["v0", product(net, "v0", 32, 9)], [("v0", 2)]),
    "another reader": (
        lambda net: [net.put("Tanh", "v0"), product(net, "v0", 32, 9)],
        [("v0", 2)],
    ),
    "two readers": (
        lambda net: [product(net, net.put("Relu", "v0"), 32, 9), product(net, "v0", 32, 7)],
        [("v0.singles", 2)],
    ),
    "two axes": (
        lambda net: [product(net, "v0", 32, 9), net.put("MatMul", net.weights(16, 9, 48), "v0")],
        [("v0", 1), ("v0", 2)],
    ),
    "an input": (
        lambda net: [product(net, "x", 32, 9), net.put("Tanh", "x")],
        [("x", 2)],
    ),
    "an input of products only": (lambda net: [product(net, "x", 32, 9), "v0"], []),
    "parts along rows": (
        lambda net: [product(net, net.cut("v0", at, at + 8, 0), 32, 9) for at in (0, 8)],
        [("v0.singles", 2)],
    ),
    "parts of an output": (
        lambda net: [
            "v0",
            *(product(net, net.cut("v0", at, at + 8, 0), 32, 9) for at in (0, 8)),
        ],
        [("v1.singles", 2), ("v3.singles", 2)],
    ),
    "a part of the terms": (
        lambda net: [product(net, net.cut("v0", 16, 32, 2), 16, 9)],
        [("v1.singles", 2)],
    ),
    "a view that keeps long words": (
        lambda net: [product(net, net.view("v0", 16, 96, 16), 16, 9)],
        [("v0.singles", 2)],
    ),
    "a view that cuts long words": (
        lambda net: [product(net, net.view(product(net, "v0", 32, 22), 16, 66, 16), 16, 9)],
        [("v0.singles", 2), ("v2.singles", 2)],
    ),
    "a view along another axis": (
        lambda net: [product(net, net.put("Transpose", "v0", perm=[2, 0, 1]), 48, 9)],
        [("v0.singles", 1)],
    ),
    "a sum": (
        lambda net: [product(net, net.put("Add", "v0", "v0"), 32, 9)],
        [("v1.singles", 2)],
    ),
    "terms that fill no block": (
        lambda net: [product(net, product(net, "v0", 32, 24), 24, 9)],
        [("v0.singles", 2), ("v1.singles", 2)],
    ),
    "a small value": (
        lambda net: [product(net, net.put("ReduceMax", "v0", net.ints(0)), 32, 9)],
        [],
    ),
    "from the host": (
        lambda net: [product(net, net.put("Atan", "v0"), 32, 9)],
        [("v1", 2)],
    ),
}


def _first(rng: random.Random) -> Net:
    net = Net(rng, 16, 48, 32)
    product(net, "x", 32, 32)
    return net


def planned(net: Net, outputs: Sequence[str], **options: Any) -> MNGraph:
    """Return the graph with the dtypes of all values."""
    target = load_target(MACHINE)
    graph = plan_sides(import_onnx(net.model(outputs), target).graph, strict=False)
    registered = options.pop("registered", ())
    return typed(graph, target, planning(**{"float_dtype": "mixed", **options}), registered)


def narrows(graph: MNGraph) -> list[tuple[str, int]]:
    """Return what is rounded: the names of singles, and the axis of the halves of a long word."""
    found = [node for node in graph.nodes if node.op == NARROW]
    for node in found:
        source, result = (graph.values[name] for name in (*node.inputs, *node.outputs))
        assert (source.dtype, result.dtype) == (MNDtype.FLOAT, MNDtype.HALF)
        assert source.shape == result.shape
    return sorted((node.inputs[0], int(str(dict(node.attributes)[AXIS]))) for node in found)


@pytest.mark.parametrize("kind", ROUNDED)
def test_what_is_rounded(kind: str) -> None:
    write, wanted = ROUNDED[kind]
    net = _first(random.Random(5))
    outputs = write(net)
    graph = planned(net, outputs)
    assert narrows(graph) == wanted
    assert {graph.values[name].dtype for _, name in graph.outputs} == {MNDtype.FLOAT}
    assert narrows(planned(net, outputs, float_dtype="float")) == []


def test_every_reader_gets_what_it_reads() -> None:
    """Products read halves along their own axis, other operators read singles."""
    net = _first(random.Random(6))
    outputs = [product(net, "v0", 32, 9), net.put("MatMul", net.weights(16, 9, 48), "v0")]
    outputs += [net.put("Tanh", "v0"), product(net, net.put("Relu", "v0"), 32, 7)]
    graph = planned(net, outputs)
    read = {node.outputs[0]: node.inputs for node in graph.nodes}
    assert read[outputs[0]][0] == "v0.halves2"
    assert read[outputs[1]][1] == "v0.halves1"
    assert read[outputs[2]] == ("v0",)
    relu = read[outputs[3]][0]
    assert read[relu] == ("v0.halves2",)
    assert graph.values[relu].dtype is MNDtype.HALF


OVERRIDES: tuple[Mapping[str, str], ...] = ({"location": "DRAM"}, {"dtype": "Float"})


@pytest.mark.parametrize("override", OVERRIDES)
def test_an_override_keeps_singles(override: Mapping[str, str]) -> None:
    """A product beside it reads rounded copies."""
    net = _first(random.Random(7))
    y = product(net, "v0", 32, 9)
    graph = planned(net, [y], overrides={"v0": override})
    assert graph.values["v0"].dtype is MNDtype.FLOAT
    assert narrows(graph) == [("v0", 2)]
    graph = planned(net, [y], registered=["v0"])
    assert narrows(graph) == [("v0", 2)]


@pytest.mark.filterwarnings("ignore")
def test_results_that_have_no_name() -> None:
    """An operator on the host need not have all its results."""
    net = Net(random.Random(8), 3, 2, 4)
    lstm = [net.weights(1, 20, 4), net.weights(1, 20, 5)]
    net.put("LSTM", "x", *lstm, hidden_size=5)
    net.nodes[-1].output[:] = ["", "h"]
    model, inputs = net.model([net.put("Neg", "h")]), inputs_of(net)
    result, _ = compiled(model)
    wanted = HostSession(model, "model").run(inputs)
    for name, array in run(result, inputs).items():
        assert np.allclose(array, wanted[name], atol=1e-5)


# -- axes of long words ----------------------------------------------------------------------


def _long_words(shape: tuple[int, ...], axis: int) -> set[tuple[int, ...]]:
    """Return the flat indices of the elements of each long word along an axis."""
    flat = np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, -1).reshape(-1, shape[axis])
    return {tuple(row[at : at + 4]) for row in flat for at in range(0, shape[axis], 4)}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(300), deadline=None)
def test_the_axis_on_which_long_words_stay_whole(seed: int) -> None:
    """The first of the axes longer than 1 that have the same long words."""
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 4, 6, 8, 12]) for _ in range(rng.randint(1, 4)))
    factors = [
        factor for size in shape for factor in ((2, size // 2) if size % 2 == 0 else (size,))
    ]
    other = list[int]()
    for factor in factors:
        if other and rng.random() < 0.5:
            other[-1] *= factor
        else:
            other.append(factor)
    axis = rng.randrange(len(shape))
    wanted = None
    if shape[axis] > 1:
        same = (
            number
            for number, size in enumerate(other)
            if size > 1 and _long_words(tuple(other), number) == _long_words(shape, axis)
        )
        wanted = next(same, None)
    assert same_words_axis(shape, axis, tuple(other)) == wanted, f"{shape} {axis} {other}"
