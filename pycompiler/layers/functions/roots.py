"""Quotients and roots, by Newton's iteration.

At the ends of the range: 1/0 is infinity with the sign of the zero, 1/infinity is 0, sqrt(0) is 0,
sqrt(infinity) is infinity, rsqrt(0) is infinity, rsqrt(infinity) is 0. The root of a negative
number is the root of its magnitude.
"""

from __future__ import annotations

from ...tolerance import FUNCTION
from .elementwise_function import BINARY, REALS, UNARY, Function
from .program import Operand, Result, Row
from .reals import Reals, of_reals

#: 1/sqrt(x), which the compiler makes of a root and its reciprocal.
RSQRT = "MNCoreRsqrt"

# The bits of a number are roughly the logarithm of its value. So this constant minus the bits of x
# is 1/x within 12.2 %, and within 5.0e-8 after three iterations.
_RECIPROCAL_START = 0x7EF311C7, 0x7FDE623822FC16E6


def reciprocal_of_moderate(r: Reals, x: Operand) -> Result:
    """Return 1/x for magnitudes between 2^-124 and 2^124, within 2^-23.

    Of doubles, for magnitudes between 2^-1020 and 2^1020, within 2^-52.
    """
    y = r.bits("sub", r.own(_RECIPROCAL_START), x)
    for _ in range(3):
        y = r.fma(y, r.fma(r.neg(x), y, 1.0), y)
    if not r.wide:
        return y
    rest = r.fma(r.neg(x), y, 1.0)
    return r.fma(y, r.fma(rest, rest, rest), y)


def quotient(r: Reals, a: Operand, b: Row) -> Result:
    """Return a / b, over the whole range."""
    signed_fraction = r.bits("or", r.bits("and", b, r.SIGN | r.FRACTION), r.ONE)
    y = reciprocal_of_moderate(r, signed_fraction)
    # y becomes the reciprocal of b with the exponent of b bounded to -60 .. 60 (of doubles 500).
    # For exponents in these bounds a y needs no other factor, and leaves the range only where the
    # quotient does.
    field, bound = r.bits("and", b, r.EXPONENT), r.own((60, 500))
    near = r.bits("max", field, (r.BIAS - bound) << r.FIELD)
    near = r.bits("min", near, (r.BIAS + bound) << r.FIELD)
    y = r.mul(y, r.bits("sub", 2 * r.ONE, near))
    rest = r.bits("add", r.bits("sub", near, field), r.ONE)
    finite = r.bits("sub", 2 * r.ONE, field).flags
    zero = r.bits("and", b, r.EXPONENT).flags
    result = r.mul(r.mul(a, y), r.keep(finite, rest))
    return r.normal(r.bits("or", result, r.keep(zero, r.INFINITY)))


def _error(r: Reals, root: Row, y: Row) -> Result:
    """Return ``1 - x y^2`` for y near 1/sqrt(x), where ``root`` is ``x y``."""
    return r.fma(r.neg(root), y, 1.0)


def _better_rsqrt(r: Reals, x: Row) -> Result:
    """Return 1/sqrt(x) within 4e-5, of doubles 2e-13, for any x from the smallest number on.

    The table of the machine alone gives 2.75 %.
    """
    y = r.real("rsqrt", x)
    for _ in range(r.own((1, 2))):
        error = _error(r, r.mul(x, y), y)
        y = r.fma(r.mul(y, error), r.fma(error, 0.375, 0.5), y)
    return y


def rsqrt(r: Reals, x: Row) -> Result:
    """Return 1/sqrt(x) of a single."""
    bounded = r.real("max", r.bits("min", r.magnitude(x), r.LARGEST), r.SMALLEST)
    y = _better_rsqrt(r, bounded)
    error = _error(r, r.mul(bounded, y), y)
    y = r.fma(r.mul(y, 0.5), error, y)
    finite = r.keep(r.bits("sub", r.LARGEST, r.magnitude(x)).flags, y)
    zero = r.bits("and", x, r.EXPONENT).flags
    return r.real("max", finite, r.keep(zero, r.INFINITY))


def square_root(r: Reals, x: Row) -> Result:
    """Return sqrt(x)."""
    magnitude = r.magnitude(x)
    bounded = r.bits("min", magnitude, r.LARGEST)
    y = _better_rsqrt(r, r.real("max", bounded, r.SMALLEST))
    root = r.mul(bounded, y)
    # The order of the instructions is part of a program: the scheduler breaks ties by it.
    if r.wide:
        half, error = r.mul(root, 0.5), _error(r, root, y)
    else:
        error, half = _error(r, root, y), r.mul(root, 0.5)
    root = r.fma(half, error, root)
    infinite = r.bits("xor", magnitude, r.INFINITY).flags
    return r.real("max", root, r.keep(infinite, r.INFINITY))


def _reciprocal(r: Reals, x: Row) -> Result:
    return quotient(r, 1.0, x)


FUNCTIONS: tuple[Function, ...] = (
    Function("Div", of_reals(quotient), BINARY, REALS, FUNCTION),
    Function("Reciprocal", of_reals(_reciprocal), UNARY, REALS, FUNCTION),
    Function("Sqrt", of_reals(square_root), UNARY, REALS, FUNCTION),
    Function(RSQRT, of_reals(rsqrt), UNARY, error=FUNCTION),
)
