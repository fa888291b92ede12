"""Hyperbolic sine and cosine, and the inverses of the hyperbolic functions.

Below 1, acosh gives some number; so does atanh outside of -1 to 1.
"""

from __future__ import annotations

from math import log

from ...tolerance import FUNCTION
from . import wide_inverses as wide
from .activation import log_of_one_more
from .doubles import by_dtype, of_one
from .elementwise_function import REALS, UNARY, Call, Function
from .exponential import exp_bits
from .logarithm import logarithm
from .program import Program, Result, Row, neg
from .roots import INFINITY, quotient, reciprocal_of_moderate, square_root

_SIGN, _MAGNITUDE = 0x80000000, 0x7FFFFFFF
#: Above it, sqrt(x^2 + 1) is x as a single.
_LARGE = 2.0**13
#: Above it, half of e^x is infinite.
_HIGHEST = 89.5

# sinh(t)/t as a polynomial in t^2 for t up to 1: minimax, 2^-34.2.
_SINH = (1.0, 0.1666666642, 0.008333353206, 0.0001983571388, 2.819018793e-6)
# atanh(t)/t as a polynomial in t^2 for t up to 1/2: minimax, 2^-33.3.
_ATANH = (
    0.9999999999, 0.3333333711, 0.1999968609, 0.1429558049, 0.1096059535, 0.1031482238,
    0.02371865731, 0.1767505165,
)  # fmt: skip


def _halves(p: Program, magnitude: Row) -> tuple[Result, Result]:
    """Return half of e^|x| and half of e^-|x|."""
    up = p.normal(exp_bits(p, p.alu("fmin", magnitude, _HIGHEST), scale=-1))
    # Where the second is bounded, the first one hides it.
    return up, p.mul(reciprocal_of_moderate(p, p.alu("fmin", up, 2.0**60)), 0.25)


def _sinh(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    magnitude = p.alu("iand", x, _MAGNITUDE)
    up, down = _halves(p, magnitude)
    near = p.alu("fmin", magnitude, 1.0)
    near = p.mul(near, p.polynomial(p.mul(near, near), _SINH))
    small = p.mask(p.flags("fmin", magnitude, 1.0))
    found = p.select(small, near, p.sub(up, down))
    return p.alu("ior", found, p.alu("iand", x, _SIGN))


def _cosh(p: Program, call: Call) -> Row:
    up, down = _halves(p, p.alu("iand", call.inputs[0], _MAGNITUDE))
    return p.add(up, down)


def _log_of_sum(p: Program, x: Row, root: Row, rest: Row) -> Row:
    """Return log(x + root); ``rest`` is the sum less 1, which is exact where it is below 1.

    Where x is large, root is x.
    """
    large = p.flags("fmax", x, _LARGE)
    # In large arguments the sum may leave the range: log(2 x) is log(x) + log(2).
    total = p.select(p.mask(large), x, p.add(p.alu("fmin", x, _LARGE), root))
    far = p.add(logarithm(p, total), p.keep(large, log(2.0)))
    near = log_of_one_more(p, p.alu("fmin", rest, 1.0))
    return p.select(p.mask(p.flags("fmin", rest, 1.0)), near, far)


def _asinh(p: Program, call: Call) -> Row:
    """Return log(|x| + sqrt(x^2 + 1)), where the root is 1 + x^2 / (1 + root)."""
    (x,) = call.inputs
    magnitude = p.alu("iand", x, _MAGNITUDE)
    bounded = p.alu("fmin", magnitude, _LARGE)
    root = square_root(p, p.fma(bounded, bounded, 1.0))
    part = p.mul(bounded, reciprocal_of_moderate(p, p.add(root, 1.0)))
    found = _log_of_sum(p, magnitude, root, p.fma(bounded, part, bounded))
    return p.alu("ior", found, p.alu("iand", x, _SIGN))


def _acosh(p: Program, call: Call) -> Row:
    """Return log(x + sqrt(x^2 - 1)), with t = x - 1 and the root sqrt(t^2 + 2 t)."""
    (x,) = call.inputs
    t = p.sub(p.alu("fmin", x, _LARGE), 1.0)
    root = square_root(p, p.mul(t, p.add(t, 2.0)))
    return _log_of_sum(p, x, root, p.add(t, root))


def _atanh(p: Program, call: Call) -> Row:
    """Return half of log((1 + |x|) / (1 - |x|)), with the sign of x."""
    (x,) = call.inputs
    magnitude = p.alu("iand", x, _MAGNITUDE)
    ratio = quotient(p, p.add(magnitude, 1.0), p.normal(p.add(1.0, neg(magnitude))))
    near = p.alu("fmin", magnitude, 0.5)
    small = p.mul(near, p.polynomial(p.mul(near, near), _ATANH))
    found = p.mul(logarithm(p, ratio), 0.5)
    found = p.select(p.mask(p.flags("fmin", magnitude, 0.5)), small, found)
    found = p.alu("fmax", found, p.keep(p.flags("fmax", magnitude, 1.0), INFINITY))
    return p.alu("ior", found, p.alu("iand", x, _SIGN))


FUNCTIONS: tuple[Function, ...] = (
    Function("Sinh", by_dtype(_sinh, of_one(wide.sinh)), UNARY, REALS, FUNCTION),
    Function("Cosh", by_dtype(_cosh, of_one(wide.cosh)), UNARY, REALS, FUNCTION),
    Function("Asinh", by_dtype(_asinh, of_one(wide.asinh)), UNARY, REALS, FUNCTION),
    Function("Acosh", by_dtype(_acosh, of_one(wide.acosh)), UNARY, REALS, FUNCTION),
    Function("Atanh", by_dtype(_atanh, of_one(wide.atanh)), UNARY, REALS, FUNCTION),
)
