"""Activation functions, built from the elementary functions."""

from __future__ import annotations

import numpy as np

from ...tolerance import ELEMENTWISE, FUNCTION
from .elementwise_function import REALS, UNARY, Function
from .exponential import HIGHEST, falling, minus_one
from .program import Operand, Result, Row
from .reals import Reals, of_reals
from .roots import reciprocal_of_moderate


def _below(r: Reals, x: Operand) -> Result:
    """Return exp(x) - 1; far below 0, it is -1."""
    return minus_one(r, r.real("max", x, r.own((-25.0, -50.0))))


def _elu(r: Reals, x: Row, alpha: float = 1.0) -> Row:
    below = r.mul(_below(r, r.real("min", x, 0.0)), float(alpha))
    return r.add(below, r.real("relu", x, x))


def _selu(
    r: Reals,
    x: Row,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Row:
    below = r.mul(_below(r, r.real("min", x, 0.0)), float(alpha) * float(gamma))
    return r.fma(r.real("relu", x, x), float(gamma), below)


def _celu(r: Reals, x: Row, alpha: float = 1.0) -> Row:
    scaled = r.mul(r.real("min", x, 0.0), 1.0 / alpha)
    if alpha < 0:  # then it is positive
        scaled = r.real("min", scaled, r.own(HIGHEST))
    return r.add(r.mul(_below(r, scaled), float(alpha)), r.real("relu", x, x))


def _hard_sigmoid(r: Reals, x: Row, alpha: float = 0.2, beta: float = 0.5) -> Row:
    # ONNX keeps the attributes as singles.
    line = r.fma(x, float(np.float32(alpha)), float(np.float32(beta)))
    return r.normal(r.real("min", r.real("max", line, 0.0), 1.0))


def _hard_swish(r: Reals, x: Row) -> Row:
    sixfold = r.real("min", r.real("max", r.add(x, 3.0), 0.0), 6.0)
    return r.mul(x, r.mul(sixfold, 1.0 / 6.0))


def _softplus(r: Reals, x: Row) -> Row:
    """Return max(x, 0) + log(1 + e) with e = exp(-|x|)."""
    return r.add(log_of_one_more(r, r.normal(falling(r, x))), r.real("relu", x, x))


# 2 artanh(s/2) / s in s^2 for s up to 2/3: minimax, 2^-27.9; a series, 2^-55.
ARTANH_OF_HALF = (
    (1.000000004, 0.08333289336, 0.01250778442, 0.002184422253, 0.0005503579213),
    tuple(0.25**k / (2 * k + 1) for k in range(16)),
)


def log_of_one_more(r: Reals, e: Operand) -> Result:
    """Return log(1 + e) for e from 0 to 1: 2 artanh(s/2) with s = e / (1 + e/2)."""
    s = r.mul(e, reciprocal_of_moderate(r, r.fma(e, 0.5, 1.0)))
    return r.mul(s, r.polynomial(r.mul(s, s), r.own(ARTANH_OF_HALF)))


def _sign(r: Reals, x: Row) -> Row:
    one = r.bits("or", r.bits("and", x, r.SIGN), r.ONE)
    zero = r.mask(r.bits("and", x, r.EXPONENT).flags)
    return r.bits("and", one, r.alu("lnot", zero))


_ALPHA = frozenset({"alpha"})
FUNCTIONS: tuple[Function, ...] = (
    Function("Sign", of_reals(_sign), UNARY, REALS, ELEMENTWISE),
    Function("Elu", of_reals(_elu), UNARY, REALS, FUNCTION, attributes=_ALPHA),
    Function("Selu", of_reals(_selu), UNARY, REALS, FUNCTION, attributes=_ALPHA | {"gamma"}),
    Function("Celu", of_reals(_celu), UNARY, REALS, FUNCTION, attributes=_ALPHA),
    Function("Softplus", of_reals(_softplus), UNARY, REALS, FUNCTION),
    Function(
        "HardSigmoid", of_reals(_hard_sigmoid), UNARY, REALS, FUNCTION, attributes=_ALPHA | {"beta"}
    ),
    Function("HardSwish", of_reals(_hard_swish), UNARY, REALS, FUNCTION),
)
