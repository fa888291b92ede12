"""Scalar functions over the whole range of their formats, against double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import Node, compiled, model_of, run
from onnx import helper

from pycompiler.layers.operators import LAYERS
from pycompiler.tolerance import FLUSH, bound

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]
MOST = float(np.finfo(np.float32).max)
ELEMS = {"f": onnx.TensorProto.FLOAT, "i": onnx.TensorProto.INT32, "l": onnx.TensorProto.INT64}
ELEMS |= {"q": onnx.TensorProto.INT64, "?": onnx.TensorProto.BOOL}


def apply(
    op: str, *inputs: Array, to: int | None = None, opset: int = 20, **attributes: Any
) -> Array:
    """``op`` on the device; ``to`` is the element type of the result if not the first input's."""
    names = [f"x{number}" for number in range(len(inputs))]
    elem = to or ELEMS[inputs[0].dtype.char]
    if op == "Cast":
        attributes["to"] = to
    node = helper.make_node(op, names, ["out"], **attributes)
    given = [
        helper.make_tensor_value_info(name, ELEMS[x.dtype.char], x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    result = helper.make_tensor_value_info("out", elem, inputs[0].shape)
    graph = helper.make_graph([node], "g", given, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    made, report = compiled(model, "mncore2")
    assert report["host_fallback"] == []
    return run(made, dict(zip(names, inputs, strict=True)), "mncore2")["out"]


def singles(seed: int, per: int = 96) -> Array:
    """Return ``per`` fractions for every exponent and sign, with the ends of each binade."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    exponents = np.repeat(np.arange(255, dtype=np.uint32), per)
    fractions = rng.integers(0, 1 << 23, exponents.size).astype(np.uint32)
    for place, fraction in enumerate((0, 1, (1 << 23) - 1, 0x3504F3, 0x3504F2)):
        fractions[place::per] = fraction
    values = np.where(exponents == 0, np.uint32(0), exponents << 23 | fractions).view(np.float32)
    return np.concatenate([values, -values])


def whole_range(seed: int) -> Array:
    """Return :func:`singles`, more values where functions bend, and the infinities."""
    rng = np.random.default_rng(seed)
    bends = [rng.uniform(-scale, scale, 8000) for scale in (1, 5, 20, 110)]
    around_one = 1 + rng.uniform(-0.5, 1, 8000)
    more = np.concatenate([*bends, around_one, -around_one, [np.inf, -np.inf]])
    return np.concatenate([singles(seed), more.astype(np.float32)])


def differs(op: str, found: Array, wanted: Array, operations: int = 1) -> Array:
    """Tell where a result breaks the stated bound; ``wanted`` is in double precision."""
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32)
        limit = bound("Float", LAYERS[op].error, operations) * np.abs(wanted) + FLUSH["Float"]
        near = np.abs(found.astype(np.float64) - wanted) <= limit
    return ~np.where(np.isinf(rounded), found == rounded, near) & ~np.isnan(wanted)


def by_torch(function: Callable[..., torch.Tensor]) -> Reference:
    def reference(*inputs: Array) -> Array:
        return function(*(torch.from_numpy(x.astype(np.float64)) for x in inputs)).numpy()

    return reference


def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU without the cancellation of torch's own for negative arguments."""
    return x * 0.5 * torch.special.erfc(-x / math.sqrt(2))


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def finite(function: Callable[[torch.Tensor], torch.Tensor]) -> Reference:
    """Leave infinities out: in a product they act as numbers just above the largest."""
    return lambda x: by_torch(function)(np.where(np.isinf(x), np.float32(np.nan), x))


def at_finite(function: Callable[[torch.Tensor], torch.Tensor]) -> Reference:
    """Expect 0 at -infinity, where torch has NaN."""
    return lambda x: by_torch(function)(np.where(x == -np.inf, np.float32(-200), x))


F = torch.nn.functional
UNARY: list[tuple[str, dict[str, Any], Reference]] = [
    ("Exp", {}, by_torch(torch.exp)),
    ("Sigmoid", {}, by_torch(torch.sigmoid)),
    ("Tanh", {}, by_torch(torch.tanh)),
    ("Erf", {}, by_torch(torch.erf)),
    ("Gelu", {"approximate": "none"}, at_finite(gelu)),
    ("Gelu", {"approximate": "tanh"}, at_finite(gelu_tanh)),
    ("Swish", {}, at_finite(lambda x: x * torch.sigmoid(x))),
    ("Log", {}, by_torch(torch.log)),
    ("Sqrt", {}, by_torch(torch.sqrt)),
    ("Reciprocal", {}, by_torch(torch.reciprocal)),
    ("Elu", {"alpha": 0.75}, by_torch(lambda x: F.elu(x, 0.75))),
    ("Celu", {"alpha": 0.5}, by_torch(lambda x: F.celu(x, 0.5))),
    ("Selu", {}, by_torch(F.selu)),
    ("Softplus", {}, by_torch(lambda x: torch.logaddexp(x, torch.zeros_like(x)))),
    ("HardSwish", {}, finite(F.hardswish)),
    ("HardSigmoid", {"alpha": 0.25}, finite(lambda x: (x * 0.25 + 0.5).clamp(0, 1))),
    ("LeakyRelu", {"alpha": 0.25}, finite(lambda x: F.leaky_relu(x, 0.25))),
    ("Relu", {}, by_torch(torch.relu)),
    ("Abs", {}, by_torch(torch.abs)),
    ("Neg", {}, by_torch(torch.neg)),
    ("Sign", {}, by_torch(torch.sign)),
    ("Floor", {}, by_torch(torch.floor)),
    ("Ceil", {}, by_torch(torch.ceil)),
    ("Round", {}, by_torch(torch.round)),
    ("Sin", {}, by_torch(torch.sin)),
    ("Cos", {}, by_torch(torch.cos)),
    ("Tan", {}, by_torch(torch.tan)),
    ("Atan", {}, by_torch(torch.atan)),
    ("Asin", {}, by_torch(torch.asin)),
    ("Acos", {}, by_torch(torch.acos)),
    ("Sinh", {}, by_torch(torch.sinh)),
    ("Cosh", {}, by_torch(torch.cosh)),
    ("Asinh", {}, by_torch(torch.asinh)),
    ("Acosh", {}, by_torch(torch.acosh)),
    ("Atanh", {}, by_torch(torch.atanh)),
]


@pytest.mark.parametrize(("op", "attributes", "reference"), UNARY)
def test_one_argument(op: str, attributes: dict[str, Any], reference: Reference) -> None:
    x = whole_range(1)
    found = apply(op, x, opset=24 if op == "Swish" else 20, **attributes)
    bad = differs(op, found, reference(x))
    assert not bad.any(), (x[bad][:5], found[bad][:5], reference(x)[bad][:5])


@pytest.mark.parametrize(
    ("nodes", "reference"),
    [
        ([("Sqrt", ["x"], "r"), ("Reciprocal", ["r"], "y")], by_torch(torch.rsqrt)),
        ([("Sigmoid", ["x"], "s"), ("Mul", ["x", "s"], "y")], at_finite(F.silu)),
    ],
    ids=["Rsqrt", "Silu"],
)
def test_what_torch_writes_as_two(nodes: list[Node], reference: Reference) -> None:
    x = whole_range(13)
    x = x[np.isfinite(x) & ((x != 0) | ~np.signbit(x))]  # the root of -0 is +0
    result, report = compiled(model_of(nodes, {"x": x.shape}, ["y"]), "mncore2")
    assert report["host_fallback"] == []
    found, wanted = run(result, {"x": x}, "mncore2")["y"], reference(x)
    # A result that the first operator flushes to zero is missing in the second.
    lost = np.abs(found - wanted) <= FLUSH["Float"] * np.abs(x)
    bad = differs("Exp", found, wanted, operations=2) & ~lost
    assert not bad.any(), (x[bad][:5], found[bad][:5], wanted[bad][:5])


DENORMALS = np.array([1e-40, -1e-40, 1.4e-45, -1.1754942e-38], dtype=np.float32)


@pytest.mark.parametrize(("op", "attributes", "reference"), UNARY)
def test_a_denormal_counts_as_zero(
    op: str, attributes: dict[str, Any], reference: Reference
) -> None:
    found = apply(op, DENORMALS, opset=24 if op == "Swish" else 20, **attributes)
    wanted = reference(np.copysign(np.float32(0), DENORMALS))
    # Operators on bits return the denormal itself, or round it to the next whole number.
    itself = reference(DENORMALS)
    assert not (differs(op, found, wanted) & differs(op, found, itself)).any()


def test_remainders_are_exact_over_the_whole_range() -> None:
    """Draw any two numbers, numbers of like size, and multiples with their neighbours."""
    x = whole_range(5)
    x = x[np.isfinite(x)]
    made = np.random.default_rng(5)
    y = made.permutation(x)
    third = len(x) // 3
    y[:third] = x[:third] / made.uniform(1, 2000, third).astype(np.float32)
    few = np.round(made.uniform(-900, 900, third)).astype(np.float32)
    with np.errstate(all="ignore"):
        x[third : 2 * third] = np.nextafter(y[third : 2 * third] * few, np.float32(few.sum()))
    known = np.isfinite(x) & (np.abs(y) >= FLUSH["Float"]) & np.isfinite(y)
    x, y = x[known], y[known]
    found, wanted = apply("Mod", x, y, fmod=1), np.fmod(x, y)
    wanted = np.where(np.abs(wanted) < FLUSH["Float"], 0, wanted)
    bad = found != wanted
    assert not bad.any(), (x[bad][:5], y[bad][:5], found[bad][:5], wanted[bad][:5])


def test_special_values_in_pairs() -> None:
    """Test both zeros, infinities and both ends of the range; torch's NaN is not compared."""
    most, least = np.finfo(np.float32).max, np.finfo(np.float32).tiny
    some = [0.0, -0.0, 1, -1, 2, -3, 0.5, most, -most, least, -least, 1e-40, np.inf, -np.inf]
    a, b = (grid.reshape(-1).astype(np.float32) for grid in np.meshgrid(some, some))
    flushed = [np.where(np.abs(x) < least, np.copysign(np.float32(0), x), x) for x in (a, b)]
    for op in ("Div", "Pow", "Max", "Min"):
        bound_to = np.ones(a.shape, bool)
        if op == "Div":  # in products, infinities act as numbers just above the largest
            bound_to = np.isfinite(a)
        if op == "Pow":  # the range that docs/operators.md promises
            bound_to = ((a >= 0) | (b == np.round(b))) & ((np.abs(b) >= 2.0**-120) | (b == 0))
        found, wanted = apply(op, a, b), BINARY[op](*flushed)
        bad = differs(op, found, wanted) & bound_to
        assert not bad.any(), (op, a[bad][:5], b[bad][:5], found[bad][:5], wanted[bad][:5])


def pairs() -> list[tuple[str, Array, Array]]:
    rng = np.random.default_rng(2)
    x = singles(2)
    any_two = rng.permutation(x), rng.permutation(x)
    small = np.abs(x) < 2.0**-124
    edge = np.resize(x[small | (np.abs(x) > 2.0**126)], x.size)
    base = np.abs(any_two[0])
    with np.errstate(divide="ignore"):
        slope = np.maximum(np.abs(np.log2(base.astype(np.float64))), 1e-3)
    power = (rng.uniform(-130, 130, x.size) / slope).astype(np.float32)
    near_one = (1 + rng.uniform(-0.3, 0.5, x.size)).astype(np.float32)
    steep = (rng.uniform(-88, 88, x.size) / np.abs(np.log(near_one))).astype(np.float32)
    whole = rng.integers(-9, 10, (2, 4096)).astype(np.float32)
    return [
        ("Add", *any_two),
        ("Sub", *any_two),
        ("Mul", *any_two),
        ("Div", *any_two),
        ("Div", edge, rng.uniform(0.2, 5, x.size).astype(np.float32)),
        ("Max", *any_two),
        ("Min", *any_two),
        ("Pow", base, power),
        ("Pow", near_one, np.nan_to_num(steep, posinf=1, neginf=1)),
        ("Pow", whole[0], whole[1]),
    ]


BINARY: dict[str, Reference] = {
    "Add": by_torch(torch.add),
    "Sub": by_torch(torch.sub),
    "Mul": by_torch(torch.mul),
    "Div": by_torch(torch.div),
    "Max": by_torch(torch.maximum),
    "Min": by_torch(torch.minimum),
    "Pow": by_torch(torch.pow),
}


@pytest.mark.parametrize("case", range(len(pairs())))
def test_two_arguments(case: int) -> None:
    op, a, b = pairs()[case]
    found, wanted = apply(op, a, b), BINARY[op](a, b)
    bad = differs(op, found, wanted)
    assert not bad.any(), (a[bad][:5], b[bad][:5], found[bad][:5], wanted[bad][:5])


def integers(dtype: type[np.signedinteger[Any]], seed: int, count: int = 40000) -> Array:
    """Return integers of every length, and those around every power of two."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    bits = np.dtype(dtype).itemsize * 8
    lengths = rng.integers(0, bits, count).astype(np.uint64)
    whole = rng.integers(0, 2**64, count, dtype=np.uint64) >> np.uint64(64 - bits)
    random = (whole >> lengths).astype(np.uint64)
    edges = [sign * (1 << n) + d for n in range(bits) for d in (-1, 0, 1) for sign in (-1, 1)]
    edge = np.array([e % (1 << bits) for e in edges], dtype=np.uint64)
    values = np.concatenate([random, edge])
    return rng.permutation(values.astype(f"u{bits // 8}").view(dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Max", "Min"])
def test_integers(op: str, dtype: type[np.signedinteger[Any]]) -> None:
    a, b = integers(dtype, 3), integers(dtype, 4)
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
    wanted = (functions | {"Max": np.maximum, "Min": np.minimum})[op](a, b)
    assert np.array_equal(apply(op, a, b), wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Equal", np.equal),
        ("Less", np.less),
        ("Greater", np.greater),
        ("LessOrEqual", np.less_equal),
        ("GreaterOrEqual", np.greater_equal),
    ],
)
def test_comparisons_of_integers(op: str, function: Any, dtype: Any) -> None:
    a, b = integers(dtype, 5), integers(dtype, 6)
    b[::3] = a[::3]
    assert np.array_equal(apply(op, a, b, to=onnx.TensorProto.BOOL), function(a, b))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op", ["Neg", "Abs"])
def test_signs_of_integers(op: str, dtype: type[np.signedinteger[Any]]) -> None:
    x = integers(dtype, 7)
    assert np.array_equal(apply(op, x), np.negative(x) if op == "Neg" else np.abs(x))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_to_other_types(dtype: Any) -> None:
    x = integers(dtype, 8)
    assert np.array_equal(apply("Cast", x, to=onnx.TensorProto.FLOAT), x.astype(np.float32))
    assert np.array_equal(apply("Cast", x, to=onnx.TensorProto.BOOL), x != 0)
    assert np.array_equal(apply("Cast", x, to=onnx.TensorProto.INT32), x.astype(np.int32))
    assert np.array_equal(apply("Cast", x, to=onnx.TensorProto.INT64), x.astype(np.int64))


@pytest.mark.parametrize(("elem", "bits"), [("INT32", 31), ("INT64", 63)])
def test_singles_to_integers(elem: str, bits: int) -> None:
    x = singles(9)
    x = x[np.abs(x) < 2.0**bits]
    found = apply("Cast", x, to=onnx.TensorProto.DataType.Value(elem))
    assert np.array_equal(found, x.astype(np.dtype(elem.lower())))


def test_singles_to_bool_and_back() -> None:
    x = singles(10)
    found = apply("Cast", x, to=onnx.TensorProto.BOOL)
    assert np.array_equal(found, x != 0)
    for elem in ("FLOAT", "INT32", "INT64"):
        number = onnx.TensorProto.DataType.Value(elem)
        wanted = found.astype(helper.tensor_dtype_to_np_dtype(number))
        assert np.array_equal(apply("Cast", found, to=number), wanted)


def test_singles_to_half_precision() -> None:
    x = singles(11)
    x = x[(np.abs(x) >= 2.0**-14) | (x == 0)]
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float16)
    assert np.array_equal(apply("Cast", x, to=onnx.TensorProto.FLOAT16), wanted)


@pytest.mark.parametrize("op", ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
def test_comparisons_of_singles(op: str) -> None:
    rng = np.random.default_rng(12)
    a = np.concatenate([singles(12), np.float32([np.inf, -np.inf, 0, -0.0])])
    b = rng.permutation(a)
    b[::3] = a[::3]
    b[1::7] = np.nextafter(a[1::7], np.float32(np.inf))
    b[np.abs(b) < 2.0**-126] = 0
    a[-2:], b[-2:] = (0.0, -0.0), (-0.0, 0.0)
    functions = {"Equal": np.equal, "Less": np.less, "Greater": np.greater}
    functions |= {"LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal}
    assert np.array_equal(apply(op, a, b, to=onnx.TensorProto.BOOL), functions[op](a, b))
