"""Activation functions, built from the elementary functions."""

from __future__ import annotations

import numpy as np

from ...tolerance import ELEMENTWISE, FUNCTION
from . import doubles
from .doubles import Doubles, by_dtype, of_one
from .elementwise_function import REALS, UNARY, Call, Function
from .exponential import exp_bits, reduced
from .program import ZERO, Operand, Program, Result, Row
from .roots import reciprocal_of_moderate

_SIGN = 0x80000000
_ONE = 0x3F800000


def _number(call: Call, name: str, default: float) -> float:
    value = call.attributes.get(name, default)
    assert isinstance(value, int | float)
    return float(value)


def _minus_one(p: Program, x: Operand) -> Result:
    """Return exp(x) - 1 for x <= 0: if exp(x) = 2^n (1 + q), it is q 2^n + (2^n - 1)."""
    n, rest = reduced(p, p.alu("fmax", x, -25.0))
    power = p.alu("iadd", n, _ONE)
    return p.fma(rest, power, p.sub(power, 1.0))


def _elu(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    below = p.mul(_minus_one(p, p.alu("fmin", x, ZERO)), _number(call, "alpha", 1.0))
    return p.add(below, p.alu("frelu", x, x))


def _wide_elu(p: Program, call: Call) -> Row:
    alpha = _number(call, "alpha", 1.0)
    return doubles.exponential_unit(Doubles(p), call.inputs[0], alpha)


def _selu(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    alpha = _number(call, "alpha", 1.67326319217681884765625)
    gamma = _number(call, "gamma", 1.05070102214813232421875)
    below = p.mul(_minus_one(p, p.alu("fmin", x, ZERO)), alpha * gamma)
    return p.fma(p.alu("frelu", x, x), gamma, below)


def _celu(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    alpha = _number(call, "alpha", 1.0)
    below = p.mul(_minus_one(p, p.mul(p.alu("fmin", x, ZERO), 1.0 / alpha)), alpha)
    return p.add(below, p.alu("frelu", x, x))


def _wide_selu(p: Program, call: Call) -> Row:
    alpha = _number(call, "alpha", 1.67326319217681884765625)
    gamma = _number(call, "gamma", 1.05070102214813232421875)
    return doubles.scaled_unit(Doubles(p), call.inputs[0], alpha, gamma)


def _wide_celu(p: Program, call: Call) -> Row:
    return doubles.stretched_unit(Doubles(p), call.inputs[0], _number(call, "alpha", 1.0))


def _wide_hard_sigmoid(p: Program, call: Call) -> Row:
    alpha, beta = (float(np.float32(_number(call, *fact))) for fact in _LINE)
    return doubles.hard_sigmoid(Doubles(p), call.inputs[0], alpha, beta)


#: The attributes of HardSigmoid, which ONNX keeps as singles.
_LINE = (("alpha", 0.2), ("beta", 0.5))


def _hard_sigmoid(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    line = p.fma(x, _number(call, "alpha", 0.2), _number(call, "beta", 0.5))
    return p.normal(p.alu("fmin", p.alu("fmax", line, ZERO), 1.0))


def _hard_swish(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    sixfold = p.alu("fmin", p.alu("fmax", p.add(x, 3.0), ZERO), 6.0)
    return p.mul(x, p.mul(sixfold, 1.0 / 6.0))


def _softplus(p: Program, call: Call) -> Row:
    """Return max(x, 0) + log(1 + e) with e = exp(-|x|)."""
    (x,) = call.inputs
    e = p.normal(exp_bits(p, p.alu("fmax", p.alu("ior", x, _SIGN), -88.0)))
    return p.add(log_of_one_more(p, e), p.alu("frelu", x, x))


# 2 artanh(s/2) / s as a polynomial in s^2 for s up to 2/3: minimax, 2^-27.9.
_ARTANH = (1.000000004, 0.08333289336, 0.01250778442, 0.002184422253, 0.0005503579213)


def log_of_one_more(p: Program, e: Row) -> Result:
    """Return log(1 + e) for e from 0 to 1: 2 artanh(s/2) with s = e / (1 + e/2)."""
    s = p.mul(e, reciprocal_of_moderate(p, p.fma(e, 0.5, 1.0)))
    return p.mul(s, p.polynomial(p.mul(s, s), _ARTANH))


def _sign(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    one = p.alu("ior", p.alu("iand", x, _SIGN), _ONE)
    zero = p.mask(p.flags("iand", x, 0x7F800000))
    return p.alu("iand", one, p.alu("lnot", zero))


FUNCTIONS: tuple[Function, ...] = (
    Function("Sign", by_dtype(_sign, of_one(doubles.sign)), UNARY, REALS, ELEMENTWISE),
    Function(
        "Elu", by_dtype(_elu, _wide_elu), UNARY, REALS, FUNCTION, attributes=frozenset({"alpha"})
    ),
    Function(
        "Selu",
        by_dtype(_selu, _wide_selu),
        UNARY,
        REALS,
        FUNCTION,
        attributes=frozenset({"alpha", "gamma"}),
    ),
    Function(
        "Celu", by_dtype(_celu, _wide_celu), UNARY, REALS, FUNCTION, attributes=frozenset({"alpha"})
    ),
    Function("Softplus", by_dtype(_softplus, of_one(doubles.softplus)), UNARY, REALS, FUNCTION),
    Function(
        "HardSigmoid",
        by_dtype(_hard_sigmoid, _wide_hard_sigmoid),
        UNARY,
        REALS,
        FUNCTION,
        attributes=frozenset({"alpha", "beta"}),
    ),
    Function(
        "HardSwish", by_dtype(_hard_swish, of_one(doubles.hard_swish)), UNARY, REALS, FUNCTION
    ),
)
