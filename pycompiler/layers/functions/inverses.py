"""The inverses of sine, cosine and tangent.

Outside of -1 to 1, asin and acos give some number.
"""

from __future__ import annotations

from math import pi

from ...tolerance import FUNCTION
from . import wide_inverses as wide
from .doubles import by_dtype, of_one
from .elementwise_function import REALS, UNARY, Call, Function
from .program import Program, Result, Row, neg
from .roots import quotient, square_root

_SIGN, _MAGNITUDE = 0x80000000, 0x7FFFFFFF

# atan(t)/t as a polynomial in t^2 for t up to 1: minimax, 2^-28.4.
_ATAN = (
    0.9999999972, -0.3333327629, 0.1999807528, -0.1426001608, 0.109323415,
    -0.08349724968, 0.05708955593, -0.03035186479, 0.01048764925, -0.001701170064,
)  # fmt: skip
# asin(t)/t as a polynomial in t^2 for t up to 1/2: minimax, 2^-31.7.
_ASIN = (
    1.0, 0.1666665761, 0.07500572723, 0.0445084493, 0.03185943623, 0.01428641134, 0.03769007058,
)  # fmt: skip


def _atan(p: Program, call: Call) -> Row:
    """Return atan(|x|), or pi/2 - atan(1/|x|) above 1, with the sign of x."""
    (x,) = call.inputs
    magnitude = p.alu("iand", x, _MAGNITUDE)
    below = p.mask(p.flags("fmin", magnitude, 1.0))
    t = p.select(below, magnitude, quotient(p, 1.0, magnitude))
    found = p.mul(t, p.polynomial(p.mul(t, t), _ATAN))
    found = p.select(below, found, p.sub(pi / 2, found))
    return p.alu("ior", found, p.alu("iand", x, _SIGN))


def _near_and_far(p: Program, x: Row) -> tuple[Result, Result]:
    """Return the mask of |x| up to 1/2, and asin(|x|) there; elsewhere asin of a root.

    The root is that of (1 - |x|)/2: asin(|x|) is pi/2 less twice its asin.
    """
    magnitude = p.alu("iand", x, _MAGNITUDE)
    near = p.mask(p.flags("fmin", magnitude, 0.5))
    root = square_root(p, p.fma(magnitude, -0.5, 0.5))
    t = p.select(near, magnitude, root)
    return near, p.mul(t, p.polynomial(p.mul(t, t), _ASIN))


def _asin(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    near, found = _near_and_far(p, x)
    found = p.select(near, found, p.fma(found, -2.0, pi / 2))
    return p.alu("ior", found, p.alu("iand", x, _SIGN))


def _acos(p: Program, call: Call) -> Row:
    """Return pi/2 - asin(x) near 0; else twice asin of the root, or pi less it."""
    (x,) = call.inputs
    near, found = _near_and_far(p, x)
    signed = p.alu("ior", found, p.alu("iand", x, _SIGN))
    negative = p.flags("ilsr", x, 31)  # set where no bit is left: x is positive
    twice = p.mul(found, 2.0)
    far = p.select(p.mask(negative), twice, p.sub(pi, twice))
    return p.select(near, p.add(pi / 2, neg(signed)), far)


FUNCTIONS: tuple[Function, ...] = (
    Function("Atan", by_dtype(_atan, of_one(wide.atan)), UNARY, REALS, FUNCTION),
    Function("Asin", by_dtype(_asin, of_one(wide.asin)), UNARY, REALS, FUNCTION),
    Function("Acos", by_dtype(_acos, of_one(wide.acos)), UNARY, REALS, FUNCTION),
)
