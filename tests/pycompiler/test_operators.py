"""Every layer against PyTorch and onnxruntime, over random shapes and broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, model_of, random_inputs, run
from hypothesis import given, settings
from hypothesis import strategies as st

from pycompiler.layers.functions.table import FUNCTIONS
from pycompiler.layers.registry import LAYERS
from pycompiler.layers.transfer import DOWNLOAD, UPLOAD
from pycompiler.machine import load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.tolerance import FLUSH, bound

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
F = torch.nn.functional
REAL, WHOLE, LONG, TRUTH = "float32", "int32", "int64", "bool"
NUMBERS = (REAL, WHOLE, LONG)


@dataclass(frozen=True)
class Case:
    """An operator: its torch function, the dtypes of its inputs (first letters), its result."""

    function: Callable[..., torch.Tensor]
    dtypes: tuple[tuple[str, ...], ...]
    result: str | None = None
    positive: bool = False
    attributes: tuple[tuple[str, Any], ...] = ()
    #: onnxruntime computes in singles: how many times the bound it may be off, and by how much
    host_error: float = 2.0
    host_absolute: float = 0.0


def _same(count: int, *dtypes: str) -> tuple[tuple[str, ...], ...]:
    return tuple((dtype,) * count for dtype in dtypes)


def _gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * torch.special.erfc(-x * 0.5**0.5)


CASES: dict[str, Case] = {
    "Add": Case(torch.add, _same(2, *NUMBERS)),
    "Sub": Case(torch.sub, _same(2, *NUMBERS)),
    "Mul": Case(torch.mul, _same(2, *NUMBERS)),
    "Div": Case(torch.div, _same(2, REAL)),
    "Pow": Case(torch.pow, _same(2, REAL), positive=True, host_error=8),
    "Min": Case(torch.minimum, _same(2, *NUMBERS)),
    "Max": Case(torch.maximum, _same(2, *NUMBERS)),
    "Sum": Case(torch.add, _same(2, REAL)),
    "Clip": Case(lambda x, a, b: x.maximum(a).minimum(b), _same(3, *NUMBERS)),
    "Where": Case(torch.where, tuple((TRUTH, d, d) for d in (*NUMBERS, TRUTH))),
    "Equal": Case(torch.eq, _same(2, *NUMBERS, TRUTH), TRUTH),
    "Less": Case(torch.lt, _same(2, *NUMBERS), TRUTH),
    "Greater": Case(torch.gt, _same(2, *NUMBERS), TRUTH),
    "LessOrEqual": Case(torch.le, _same(2, *NUMBERS), TRUTH),
    "GreaterOrEqual": Case(torch.ge, _same(2, *NUMBERS), TRUTH),
    "And": Case(torch.logical_and, _same(2, TRUTH)),
    "Or": Case(torch.logical_or, _same(2, TRUTH)),
    "Xor": Case(torch.logical_xor, _same(2, TRUTH)),
    "BitwiseAnd": Case(torch.bitwise_and, _same(2, WHOLE, LONG)),
    "BitwiseOr": Case(torch.bitwise_or, _same(2, WHOLE, LONG)),
    "BitwiseXor": Case(torch.bitwise_xor, _same(2, WHOLE, LONG)),
    "BitwiseNot": Case(torch.bitwise_not, _same(1, WHOLE, LONG)),
    "Not": Case(torch.logical_not, _same(1, TRUTH)),
    "Neg": Case(torch.neg, _same(1, *NUMBERS)),
    "Abs": Case(torch.abs, _same(1, *NUMBERS)),
    "Relu": Case(torch.relu, _same(1, REAL, WHOLE)),
    "LeakyRelu": Case(lambda x: F.leaky_relu(x, 0.01), _same(1, REAL)),
    "Reciprocal": Case(torch.reciprocal, _same(1, REAL)),
    "Sqrt": Case(torch.sqrt, _same(1, REAL), positive=True),
    "Exp": Case(torch.exp, _same(1, REAL)),
    "Log": Case(torch.log, _same(1, REAL), positive=True),
    "Sigmoid": Case(torch.sigmoid, _same(1, REAL), host_absolute=1e-6),
    "Tanh": Case(torch.tanh, _same(1, REAL), host_absolute=1e-6),
    "Erf": Case(torch.erf, _same(1, REAL), host_absolute=1e-6),
    "Gelu": Case(_gelu, _same(1, REAL), host_absolute=1e-5),
    "Elu": Case(F.elu, _same(1, REAL), host_absolute=1e-6),
    "Selu": Case(F.selu, _same(1, REAL), host_absolute=1e-6),
    "Celu": Case(F.celu, _same(1, REAL), host_absolute=1e-6),
    "Softplus": Case(
        lambda x: torch.logaddexp(x, torch.zeros_like(x)), _same(1, REAL), host_absolute=1e-6
    ),
    "HardSigmoid": Case(
        lambda x: (x * 0.25 + 0.5).clamp(0, 1),
        _same(1, REAL),
        attributes=(("alpha", 0.25),),
        host_absolute=1e-6,
    ),
    "HardSwish": Case(F.hardswish, _same(1, REAL), host_absolute=1e-5),
    "Sign": Case(torch.sign, _same(1, REAL)),
    "Floor": Case(torch.floor, _same(1, REAL)),
    "Ceil": Case(torch.ceil, _same(1, REAL)),
    "Round": Case(torch.round, _same(1, REAL)),
    "IsInf": Case(torch.isinf, _same(1, REAL), TRUTH),
    "IsNaN": Case(torch.isnan, _same(1, REAL), TRUTH),
    "Cast": Case(lambda x: x.double(), _same(1, WHOLE, LONG, TRUTH), REAL, attributes=(("to", 1),)),
    # newer than the host runtime's opset; see test_functions
    "Swish": Case(lambda x: x * torch.sigmoid(x), ()),
}
#: What onnxruntime has no kernel for.
UNKNOWN_TO_THE_HOST = {("Clip", WHOLE), ("Where", TRUTH)}
COMBINATIONS = [(op, dtypes) for op, case in CASES.items() for dtypes in case.dtypes]


@st.composite
def operands(draw: st.DrawFn, most: int) -> tuple[Shape, Shape, Shape]:
    """Three shapes that broadcast; each may lack leading axes, or be a scalar.

    The result has at most ``most`` elements.
    """
    full: list[int] = []
    for _ in range(draw(st.integers(0, 6))):
        size = draw(st.sampled_from([1, 2, 3, 4, 7, 16, 33, 64]))
        full += [size] if prod(full) * size <= most else []

    def part() -> Shape:
        kept = [size if draw(st.integers(0, 3)) else 1 for size in full]
        return tuple(kept[draw(st.integers(0, len(full))) if draw(st.booleans()) else 0 :])

    return part(), part(), part()


def values(dtype: str, shape: Shape, seed: int, positive: bool) -> Array:
    rng = np.random.default_rng(seed)
    if dtype == REAL:
        found = random_inputs({"x": shape}, seed)["x"]
        return np.asarray(np.abs(found) + np.float32(0.25)) if positive else found
    if dtype == TRUTH:
        return np.asarray(rng.random(shape) < 0.5)
    near = rng.integers(-3, 4, shape)
    far = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype)
    return np.where(rng.random(shape) < 0.5, near, far).astype(dtype)


def check(
    op: str,
    shapes: list[Shape],
    machine: str,
    seed: int,
    same: bool = False,
    dtypes: tuple[str, ...] | None = None,
) -> None:
    case = CASES[op]
    dtypes = dtypes or case.dtypes[0]
    names = ["x", "y", "z"][: 1 if same else len(dtypes)]
    reads = ["x"] * len(dtypes) if same else names
    elems = {
        name: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        for name, dtype in zip(names, dtypes, strict=False)
    }
    model = typed_model(op, reads, dict(zip(names, shapes, strict=False)), elems, case.attributes)
    result, report = compiled(model, machine)
    assert report["host_fallback"] == []
    inputs = {
        name: values(dtype, shape, seed + number, case.positive)
        for number, (name, dtype, shape) in enumerate(zip(names, dtypes, shapes, strict=False))
    }
    found = run(result, inputs, machine)["out"]
    given = [torch.from_numpy(inputs[name]) for name in reads]
    precise = [tensor.double() if tensor.is_floating_point() else tensor for tensor in given]
    wanted = case.function(*precise).numpy()
    assert found.shape == wanted.shape
    assert found.dtype == np.dtype(case.result or dtypes[-1])
    references = [(wanted, 1.0, 0.0)]
    if (op, dtypes[-1]) not in UNKNOWN_TO_THE_HOST:
        other = HostSession(model.SerializeToString(), "model").run(inputs)["out"]
        references.append((other, case.host_error, case.host_absolute))
    for reference, factor, absolute in references:
        if found.dtype != np.float32:
            assert np.array_equal(found, reference)
            continue
        with np.errstate(over="ignore"):
            infinite = np.isinf(reference.astype(np.float32))
        limit = factor * bound("Float", LAYERS[op].error) * np.abs(reference) + absolute
        with np.errstate(invalid="ignore"):
            near = np.abs(found.astype(np.float64) - reference) <= limit + FLUSH["Float"]
        near |= np.isnan(reference)  # 0/0 is outside the contract
        assert np.where(infinite, np.sign(found) == np.sign(reference), near).all()
    for node in result.graph.nodes:
        fragment = LAYERS[node.op].emit(node, result.graph, load_target(machine))
        assert fragment.steps == LAYERS[node.op].cost(node, result.graph, load_target(machine))
    # Lines of a fragment share steps, and slices of a node a row: only the sums can be compared.
    assert sum(row["steps"] for row in report["nodes"]) == report["steps"]


def typed_model(
    op: str,
    reads: list[str],
    shapes: Mapping[str, Shape],
    elems: Mapping[str, int],
    attributes: tuple[tuple[str, Any], ...],
) -> onnx.ModelProto:
    """A model of one node; its result's type is inferred."""
    node = onnx.helper.make_node(op, reads, ["out"], name="node", **dict(attributes))
    given = [onnx.helper.make_tensor_value_info(n, elems[n], shapes[n]) for n in shapes]
    out = onnx.helper.make_empty_tensor_value_info("out")
    graph = onnx.helper.make_graph([node], "g", given, [out])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.parametrize(("op", "dtypes"), COMBINATIONS)
@pytest.mark.parametrize(("machine", "examples"), [("mini", 8), ("mncore2", 2)])
def test_operator(op: str, dtypes: tuple[str, ...], machine: str, examples: int) -> None:
    most = 1 << 12 if machine == "mini" else 1 << 17

    @given(operands(most), st.integers(0, 2**32 - 1))
    @settings(max_examples=examples)
    def random_case(shapes: tuple[Shape, Shape, Shape], seed: int) -> None:
        given = (shapes[0], (), ()) if op == "Clip" else shapes  # ONNX wants scalar bounds
        check(op, list(given[: len(dtypes)]), machine, seed, dtypes=dtypes)

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
    assert {*CASES, DOWNLOAD, UPLOAD} <= set(LAYERS)
    assert set(CASES) == set(FUNCTIONS)
