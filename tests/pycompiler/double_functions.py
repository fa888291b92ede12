"""Functions of doubles over their whole range, against numbers with 64 bits of mantissa."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import mpmath
import numpy as np
from compiling import compiled, run
from onnx import TensorProto, helper

Array = np.ndarray[Any, Any]
LONG = np.longdouble
SMALLEST, LARGEST = 2.0**-1022, 1.7e308


def everywhere(made: np.random.Generator) -> Array:
    """Return numbers of every exponent and both signs."""
    exponents = np.repeat(np.arange(-1022, 1023), 2)
    signs = np.tile([-1.0, 1.0], len(exponents) // 2)
    return signs * made.uniform(1, 2, len(exponents)) * np.exp2(exponents)


def drawn_doubles(made: np.random.Generator, count: int) -> Array:
    """Return numbers of any exponent and sign; some fractions have ends of zeros or of ones."""
    fractions = made.integers(0, 1 << 52, count, dtype=np.uint64)
    ends = (np.uint64(1) << made.integers(0, 53, count, dtype=np.uint64)) - np.uint64(1)
    kinds = made.integers(0, 4, count)
    fractions = np.choose(kinds, [fractions, fractions & ends, fractions & ~ends, fractions | ends])
    exponents = made.integers(1, 2047, count, dtype=np.uint64)
    signs = made.integers(0, 2, count, dtype=np.uint64)
    bits = signs << np.uint64(63) | exponents << np.uint64(52) | fractions
    found: Array = bits.view(np.float64)
    return found


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def selu(x: Array) -> Array:
    """SELU with the factors that ONNX keeps as singles."""
    alpha, gamma = (LONG(np.float32(number)) for number in (1.6732632423543772, 1.0507009873554805))
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def by_mpmath(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Return a function of arrays that numpy has no wide form of."""

    def one(x: Any) -> Any:
        with mpmath.workprec(160):
            found = function(mpmath.mpf(float(x)))
            high = float(found)
            return LONG(high) + LONG(float(found - high)) if np.isfinite(high) else LONG(high)

    return lambda x: np.array([one(number) for number in x], LONG)


def gelu(x: Any) -> Any:
    """Return x Q(-x); far from 0, it is x or nothing."""
    if abs(x) > 60:
        return max(x, mpmath.mpf(0))
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_tanh(x: Any) -> Any:
    """Return x (1 + tanh u) / 2, as one quotient that loses nothing where tanh u is near -1."""
    if abs(x) > 60:
        return max(x, mpmath.mpf(0))
    u = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / (1 + mpmath.exp(-2 * u))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


#: The function in more digits, and what is drawn beside numbers of every exponent.
FUNCTIONS: dict[str, tuple[Callable[..., Array], tuple[float, float]]] = {
    "Reciprocal": (lambda x: 1 / x, (-4, 4)),
    "Sqrt": (lambda x: np.sqrt(np.abs(x)), (0, 4)),
    "Exp": (np.exp, (-710, 710)),
    "Log": (lambda x: np.log(np.abs(x)), (0.5, 2)),
    "Sigmoid": (sigmoid, (-720, 720)),
    "Tanh": (np.tanh, (-22, 22)),
    "Swish": (lambda x: x * sigmoid(x), (-720, 40)),
    "Softplus": (softplus, (-720, 40)),
    "Elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), (-40, 4)),
    "Selu": (selu, (-40, 4)),
    "Celu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), (-40, 4)),
    "HardSwish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (-4, 4)),
    "Sin": (np.sin, (-9, 9)),
    "Cos": (np.cos, (-9, 9)),
    "Tan": (np.tan, (-9, 9)),
    "Atan": (np.arctan, (-4, 4)),
    "Asin": (np.arcsin, (-1, 1)),
    "Acos": (np.arccos, (-1, 1)),
    "Sinh": (np.sinh, (-711, 711)),
    "Cosh": (np.cosh, (-711, 711)),
    "Asinh": (np.arcsinh, (-4, 4)),
    "Acosh": (np.arccosh, (1, 4)),
    "Atanh": (np.arctanh, (-1, 1)),
    "Erf": (by_mpmath(mpmath.erf), (-6, 6)),
    "Gelu": (by_mpmath(gelu), (-39, 8)),
    "Gelu with tanh": (by_mpmath(gelu_tanh), (-22, 8)),
    "Pow": (np.power, (-9, 9)),
}
#: The attributes of functions, which are named by their operator and some words.
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Gelu with tanh": {"approximate": "tanh"},
    "Mod with fmod": {"fmod": 1},
    "Celu with a negative alpha": {"alpha": -1.5},
}
#: Where the functions that are not defined everywhere are.
DOMAINS = {"Asin": (-1, 1), "Acos": (-1, 1), "Atanh": (-1, 1), "Acosh": (1, np.inf)}
#: Doubles that lie near multiples of quarter turns, the nearest of all among them.
NEAR_TURNS = (6381956970095103 * 2.0**797, pi / 2, pi, 3 * pi / 2, 1e22, 355.0)


def arguments(op: str) -> tuple[Array, ...]:
    """Return numbers of every exponent, and more of them where the function bends."""
    _, bounds = FUNCTIONS[op]
    made = np.random.default_rng(len(op))
    if op == "Pow":
        return _powers(made)
    x = np.concatenate([everywhere(made), made.uniform(*bounds, 2000)])
    if op in ("Sqrt", "Log"):
        x = np.abs(x)
    return (np.clip(np.append(x, NEAR_TURNS), *DOMAINS.get(op, (-np.inf, np.inf))),)


def _powers(made: np.random.Generator) -> tuple[Array, Array]:
    """Return a base of any size, an exponent for which the power is in range, and whole ones."""
    x = np.abs(everywhere(made))
    y = made.uniform(-1020, 1020, x.size) / np.maximum(np.abs(np.log2(x)), 1e-3)
    y = np.clip(y, -1e6, 1e6)
    near = 1 + made.uniform(-0.4, 0.4, 2000)
    x = np.concatenate([x, near, made.uniform(-9, 9, 500)])
    whole = made.integers(-20, 20, 500)
    return x, np.concatenate([y, made.uniform(-700, 700, 2000), whole])


def results(op: str, operands: tuple[Array, ...]) -> Array:
    """Return what the device computes."""
    names = [f"x{place}" for place in range(len(operands))]
    node = helper.make_node(op.split()[0], names, ["y"], **ATTRIBUTES.get(op, {}))
    infos = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, operands[0].shape)
        for name in (*names, "y")
    ]
    graph = helper.make_graph([node], "g", infos[:-1], infos[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    return run(result, dict(zip(names, operands, strict=True)))["y"]


def errors(op: str) -> tuple[tuple[Array, ...], Array, Array, Array]:
    """Return arguments, results, the results in more digits, and errors relative to these.

    An error counts if the result is a normal double; others are 0.
    """
    operands = arguments(op)
    found = results(op, operands)
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[op][0](*(x.astype(LONG) for x in operands))
        inside = (np.abs(wanted) >= SMALLEST) & (np.abs(wanted) <= LARGEST)
        relative = np.abs(found.astype(LONG) - wanted) / np.abs(wanted)
    return operands, found, wanted, np.where(inside, relative, 0)
