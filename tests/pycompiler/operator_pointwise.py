"""Rows of the elementwise operators."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper
from operator_rows import (
    DTYPES,
    HUGE,
    LONG,
    NATURAL,
    NUMBERS,
    REAL,
    REALS,
    SIGNED,
    TRUTH,
    WHOLE,
    WIDE,
    Array,
    Row,
    Sample,
    part_of,
    random_shape,
    values,
)

from pycompiler.layers.functions.table import FUNCTIONS

F = torch.nn.functional
MOST = 1 << 11  # elements


@dataclass(frozen=True)
class Case:
    """An operator: torch function, element types of its inputs, and of its result if it differs."""

    function: Callable[..., torch.Tensor]
    dtypes: tuple[tuple[str, ...], ...]
    result: str | None = None
    positive: bool = False
    attributes: tuple[tuple[str, Any], ...] = ()
    #: allowed absolute error of onnxruntime, whose functions are different
    absolute: float = 0.0
    opset: int = 20
    #: all operands but the first are scalars
    scalars: bool = False
    #: the function's domain
    within: tuple[float, float] = (-np.inf, np.inf)


def _same(count: int, *dtypes: str) -> tuple[tuple[str, ...], ...]:
    return tuple((dtype,) * count for dtype in dtypes)


def _gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU without the errors of torch's own for negative arguments.

    Their square has two parts, because the exponential function magnifies the error of one.
    """
    high = x * 134217729.0 - (x * 134217729.0 - x)
    square, low = x * x, x - high
    rest = (high * high - square) + 2 * high * low + low * low
    power = torch.exp(square * -0.5) * (1 - rest * 0.5)
    below = torch.special.erfcx((-x * 0.5**0.5).clamp(min=0)) * power
    return x * 0.5 * torch.where(x < 0, below, torch.special.erfc(-x * 0.5**0.5))


def _clip(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x.maximum(a).minimum(b)


CASES: dict[str, Case] = {
    "Add": Case(torch.add, _same(2, *NUMBERS)),
    "Sub": Case(torch.sub, _same(2, *NUMBERS)),
    "Mul": Case(torch.mul, _same(2, *NUMBERS)),
    "Div": Case(torch.div, _same(2, *REALS)),
    "Pow": Case(torch.pow, _same(2, *REALS), positive=True),
    "Mod": Case(torch.fmod, _same(2, *REALS), attributes=(("fmod", 1),)),
    "Min": Case(torch.minimum, _same(2, *NUMBERS)),
    "Max": Case(torch.maximum, _same(2, *NUMBERS)),
    "Sum": Case(torch.add, _same(2, *REALS)),
    "Clip": Case(_clip, _same(3, *NUMBERS), scalars=True),
    "Where": Case(torch.where, tuple((TRUTH, d, d) for d in (*NUMBERS, TRUTH))),
    "Equal": Case(torch.eq, _same(2, *NUMBERS, TRUTH), TRUTH),
    "Less": Case(torch.lt, _same(2, *NUMBERS), TRUTH),
    "Greater": Case(torch.gt, _same(2, *NUMBERS), TRUTH),
    "LessOrEqual": Case(torch.le, _same(2, *NUMBERS), TRUTH),
    "GreaterOrEqual": Case(torch.ge, _same(2, *NUMBERS), TRUTH),
    "And": Case(torch.logical_and, _same(2, TRUTH)),
    "Or": Case(torch.logical_or, _same(2, TRUTH)),
    "Xor": Case(torch.logical_xor, _same(2, TRUTH)),
    "BitwiseAnd": Case(torch.bitwise_and, _same(2, WHOLE, LONG, HUGE)),
    "BitwiseOr": Case(torch.bitwise_or, _same(2, WHOLE, LONG, HUGE)),
    "BitwiseXor": Case(torch.bitwise_xor, _same(2, WHOLE, LONG, HUGE)),
    "BitwiseNot": Case(torch.bitwise_not, _same(1, WHOLE, LONG, HUGE)),
    "Not": Case(torch.logical_not, _same(1, TRUTH)),
    "Neg": Case(torch.neg, _same(1, *SIGNED)),
    "Abs": Case(torch.abs, _same(1, *NUMBERS)),
    "Relu": Case(torch.relu, _same(1, *SIGNED)),
    "LeakyRelu": Case(lambda x: F.leaky_relu(x, 0.01), _same(1, *REALS), absolute=1e-6),
    "Reciprocal": Case(torch.reciprocal, _same(1, *REALS)),
    "Sqrt": Case(torch.sqrt, _same(1, *REALS), positive=True),
    "Exp": Case(torch.exp, _same(1, *REALS)),
    "Log": Case(torch.log, _same(1, *REALS), positive=True),
    "Sigmoid": Case(torch.sigmoid, _same(1, *REALS), absolute=1e-6),
    "Tanh": Case(torch.tanh, _same(1, *REALS), absolute=1e-6),
    "Erf": Case(torch.erf, _same(1, *REALS), absolute=1e-6),
    "Gelu": Case(_gelu, _same(1, *REALS), absolute=1e-5),
    "Elu": Case(F.elu, _same(1, *REALS), absolute=1e-6),
    "Selu": Case(
        lambda x: 1.25 * F.elu(x, 1.5),
        _same(1, *REALS),
        attributes=(("alpha", 1.5), ("gamma", 1.25)),
        absolute=1e-6,
    ),
    "Celu": Case(F.celu, _same(1, *REALS), absolute=1e-6),
    "Softplus": Case(
        lambda x: torch.logaddexp(x, torch.zeros_like(x)), _same(1, *REALS), absolute=1e-6
    ),
    "HardSigmoid": Case(
        lambda x: (x * 0.25 + 0.5).clamp(0, 1),
        _same(1, *REALS),
        attributes=(("alpha", 0.25),),
        absolute=1e-6,
    ),
    "HardSwish": Case(F.hardswish, _same(1, *REALS), absolute=1e-5),
    "Swish": Case(lambda x: x * torch.sigmoid(x), _same(1, *REALS), absolute=1e-5, opset=24),
    "Sign": Case(torch.sign, _same(1, *REALS)),
    "Floor": Case(torch.floor, _same(1, *REALS)),
    "Ceil": Case(torch.ceil, _same(1, *REALS)),
    "Round": Case(torch.round, _same(1, *REALS)),
    "Sin": Case(torch.sin, _same(1, *REALS), absolute=1e-6),
    "Cos": Case(torch.cos, _same(1, *REALS), absolute=1e-6),
    "Tan": Case(torch.tan, _same(1, *REALS), absolute=1e-2),
    "Atan": Case(torch.atan, _same(1, *REALS), absolute=1e-6),
    "Asin": Case(torch.asin, _same(1, *REALS), absolute=1e-6, within=(-1, 1)),
    "Acos": Case(torch.acos, _same(1, *REALS), absolute=1e-6, within=(-1, 1)),
    "Sinh": Case(torch.sinh, _same(1, *REALS), absolute=1e-6),
    "Cosh": Case(torch.cosh, _same(1, *REALS), absolute=1e-6),
    "Asinh": Case(torch.asinh, _same(1, *REALS), absolute=1e-5),
    "Acosh": Case(torch.acosh, _same(1, *REALS), absolute=1e-5, within=(1, np.inf)),
    "Atanh": Case(torch.atanh, _same(1, *REALS), absolute=1e-5, within=(-1, 1)),
    "IsInf": Case(torch.isinf, _same(1, *REALS), TRUTH),
    "IsNaN": Case(torch.isnan, _same(1, *REALS), TRUTH),
}
_TORCH = {
    REAL: torch.float64,
    WIDE: torch.float64,
    WHOLE: torch.int32,
    LONG: torch.int64,
    TRUTH: torch.bool,
    HUGE: torch.int64,
}
#: Casts of `uint32`; torch does not define those of floats to it.
_OF_NATURAL = (
    *((NATURAL, to) for to in (*_TORCH, NATURAL)),
    *((source, NATURAL) for source in (WHOLE, LONG, TRUTH, HUGE)),
)


def _operand(rng: random.Random, dtype: str, shape: tuple[int, ...], case: Case) -> Array:
    found = values(rng, dtype, shape)
    if case.within != (-np.inf, np.inf):
        found = np.clip(found, *case.within).astype(dtype)
    return np.asarray(np.abs(found) + found.dtype.type(0.25)) if case.positive else found


def _sampler(case: Case, dtypes: tuple[str, ...]) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 0, 6, MOST)
        names = "xab" if case.scalars else "xyz"
        shapes = [shape] + [part_of(rng, shape) for _ in dtypes[1:]]
        if case.scalars:
            shapes[1:] = [() for _ in dtypes[1:]]
        else:
            rng.shuffle(shapes)
        operands = {
            name: _operand(rng, dtype, size, case)
            for name, dtype, size in zip(names, dtypes, shapes, strict=False)
        }
        return Sample(
            operands,
            lambda **given: case.function(*given.values()),
            attributes=dict(case.attributes),
            absolute=case.absolute,
        )

    return sample


def _cast(source: str, to: str) -> Callable[[random.Random], Sample]:
    """Cast numbers that the target type can hold; torch does not define the others."""
    number = int(helper.np_dtype_to_tensor_dtype(np.dtype(to)))

    def sample(rng: random.Random) -> Sample:
        x = values(rng, source, random_shape(rng, 0, 6, MOST))
        if to == HUGE:
            x = np.abs(x) if x.dtype.kind == "f" else x
        if to == NATURAL:  # torch computes with int64 instead
            function = lambda x: x.to(torch.int64) & 0xFFFFFFFF  # noqa: E731
            return Sample({"x": x}, function, attributes={"to": number})
        return Sample({"x": x}, lambda x: x.to(_TORCH[to]), attributes={"to": number})

    return sample


def _shift(dtype: str) -> Callable[[random.Random], Sample]:
    """Shift by counts inside and outside of the width, also below zero."""
    bits = np.iinfo(dtype).bits

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 0, 6, MOST)
        right = rng.random() < 0.5
        shapes = [shape, part_of(rng, shape)]
        rng.shuffle(shapes)
        x = values(rng, dtype, shapes[0])
        made = np.random.default_rng(rng.getrandbits(32))
        count = made.integers(-2, bits + 3, shapes[1]).astype(dtype)

        def function(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
            far = (count < 0) | (count >= bits)
            near = torch.where(far, 0, count)
            if right:
                return torch.where(far, torch.where(x < 0, -1, 0), x >> near).to(x.dtype)
            return torch.where(far, 0, x << near).to(x.dtype)

        direction = "RIGHT" if right else "LEFT"
        return Sample({"x": x, "count": count}, function, attributes={"direction": direction})

    return sample


def _truths_as_integers(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a Where of truth values with integers, because onnxruntime has no kernel for it."""
    number, truth = onnx.TensorProto.INT32, onnx.TensorProto.BOOL
    condition, *rest = node.input
    casts = [helper.make_node("Cast", [name], [f"{name}.int"], to=number) for name in rest]
    chosen = helper.make_node("Where", [condition, *(f"{name}.int" for name in rest)], ["chosen"])
    return [*casts, chosen, helper.make_node("Cast", ["chosen"], list(node.output), to=truth)]


def _relu_of_integers(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a Relu of int64 with other operators, because onnxruntime has no kernel for it."""
    zero = helper.make_node("Sub", [node.input[0]] * 2, ["zero"])
    return [zero, helper.make_node("Max", [node.input[0], "zero"], list(node.output))]


_OTHERWISE = {("Where", TRUTH): _truths_as_integers, ("Relu", LONG): _relu_of_integers}


#: Programs that take a second to schedule; `layers/test_functions.py` has their whole range.
_LONG_PROGRAMS = frozenset(["Mod", "Sin", "Cos", "Tan", "Asinh", "Acosh", "Atanh"])
#: The same of doubles, which `test_doubles.py` has.
_LONG_DOUBLES = frozenset(
    [
        *("Sigmoid", "Swish", "Tanh", "Softplus", "Log", "Elu", "Selu", "Celu", "Erf", "Gelu"),
        *("Pow", "Sinh", "Cosh", "Atan", "Asin", "Acos"),
    ]
)


def _rows() -> Iterator[Row]:
    for op, case in CASES.items():
        for dtypes in case.dtypes:
            last = dtypes[-1]
            yield Row(
                op,
                DTYPES[last].value,
                case.result or last,
                _sampler(case, dtypes),
                FUNCTIONS[op].error,
                opset=case.opset,
                host=_OTHERWISE.get((op, last)),
                slow=op in _LONG_PROGRAMS or (last == WIDE and op in _LONG_DOUBLES),
            )
    for source in _TORCH:
        for to in _TORCH:
            if (source, to) == (REAL, HUGE):
                continue
            claim = f"{DTYPES[source].value} to {DTYPES[to].value}"
            yield Row("Cast", claim, to, _cast(source, to), FUNCTIONS["Cast"].error)
    for source, to in _OF_NATURAL:
        claim = f"{DTYPES[source].value} to {DTYPES[to].value}"
        yield Row("Cast", claim, to, _cast(source, to), FUNCTIONS["Cast"].error)
    for dtype in (WHOLE, LONG, HUGE):
        error = FUNCTIONS["BitShift"].error
        yield Row("BitShift", DTYPES[dtype].value, dtype, _shift(dtype), error, opset=28)


ROWS: tuple[Row, ...] = tuple(_rows())
