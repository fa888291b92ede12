"""Quotients and roots, by Newton's iteration.

At the ends of the range: 1/0 is infinity with the sign of the zero, 1/infinity is 0, sqrt(0) is 0,
sqrt(infinity) is infinity, rsqrt(0) is infinity, rsqrt(infinity) is 0. The root of a negative
number is the root of its magnitude.
"""

from __future__ import annotations

from ...tolerance import FUNCTION
from . import doubles
from .doubles import Doubles, by_dtype, of_one
from .elementwise_function import BINARY, REALS, UNARY, Call, Function
from .program import Operand, Program, Result, Row, neg

_SIGN, _MAGNITUDE, _EXPONENT, _FRACTION = 0x80000000, 0x7FFFFFFF, 0x7F800000, 0x007FFFFF
INFINITY = 0x7F800000
_ONE = 0x3F800000
_LARGEST = 0x7F7FFFFF
_FIELD, _BIAS = 23, 127

#: 1/sqrt(x), which the compiler makes of a root and its reciprocal.
RSQRT = "MNCoreRsqrt"

# The bits of a single are roughly the logarithm of its value. So this constant minus the bits of x
# is 1/x within 12.2 %, and within 5.0e-8 after three iterations.
_RECIPROCAL_START = 0x7EF311C7


def reciprocal_of_moderate(p: Program, x: Operand) -> Result:
    """Return 1/x for magnitudes between 2^-124 and 2^124, within 2^-23."""
    y = p.alu("isub", _RECIPROCAL_START, x)
    for _ in range(3):
        y = p.fma(y, p.fma(neg(x), y, 1.0), y)
    return y


def quotient(p: Program, a: Operand, b: Row) -> Result:
    """Return a / b, over the whole range."""
    signed_fraction = p.alu("ior", p.alu("iand", b, _SIGN | _FRACTION), _ONE)
    y = reciprocal_of_moderate(p, signed_fraction)
    # y becomes the reciprocal of b with the exponent of b bounded to -60 .. 60. For exponents in
    # these bounds a y needs no other factor, and leaves the range only where the quotient does.
    field = p.alu("iand", b, _EXPONENT)
    near = p.alu("imin", p.alu("imax", field, (_BIAS - 60) << _FIELD), (_BIAS + 60) << _FIELD)
    y = p.mul(y, p.alu("isub", 2 * _BIAS << _FIELD, near))
    rest = p.alu("iadd", p.alu("isub", near, field), _ONE)
    finite = p.flags("isub", 2 * _BIAS << _FIELD, field)
    zero = p.flags("iand", b, _EXPONENT)
    result = p.mul(p.mul(a, y), p.keep(finite, rest))
    return p.normal(p.alu("ior", result, p.keep(zero, INFINITY)))


def _halved_rsqrt_error(p: Program, x: Operand, y: Row) -> tuple[Result, Result]:
    """Return ``x * y`` and ``1 - x y^2`` for y near 1/sqrt(x)."""
    root = p.mul(x, y)
    return root, p.fma(neg(root), y, 1.0)


def _better_rsqrt(p: Program, x: Row) -> Result:
    """Return 1/sqrt(x) within 4e-5 for x from the smallest to the largest number.

    The table of `frsqrt` alone gives 2.75 %.
    """
    y = p.alu("frsqrt", x)
    _, error = _halved_rsqrt_error(p, x, y)
    return p.fma(p.mul(y, error), p.fma(error, 0.375, 0.5), y)


def rsqrt(p: Program, x: Row) -> Result:
    """Return 1/sqrt(x)."""
    bounded = p.alu("fmax", p.alu("imin", p.alu("iand", x, _MAGNITUDE), _LARGEST), 2.0**-126)
    y = _better_rsqrt(p, bounded)
    _, error = _halved_rsqrt_error(p, bounded, y)
    y = p.fma(p.mul(y, 0.5), error, y)
    finite = p.keep(p.flags("isub", _LARGEST, p.alu("iand", x, _MAGNITUDE)), y)
    zero = p.flags("iand", x, _EXPONENT)
    return p.alu("fmax", finite, p.keep(zero, INFINITY))


def square_root(p: Program, x: Row) -> Result:
    """Return sqrt(x)."""
    magnitude = p.alu("iand", x, _MAGNITUDE)
    bounded = p.alu("imin", magnitude, _LARGEST)
    y = _better_rsqrt(p, p.alu("fmax", bounded, 2.0**-126))
    root, error = _halved_rsqrt_error(p, bounded, y)
    root = p.fma(p.mul(root, 0.5), error, root)
    infinite = p.flags("ixor", magnitude, INFINITY)
    return p.alu("fmax", root, p.keep(infinite, INFINITY))


def _div(p: Program, call: Call) -> Row:
    return quotient(p, *call.inputs)


def _reciprocal(p: Program, call: Call) -> Row:
    return quotient(p, 1.0, call.inputs[0])


def _sqrt(p: Program, call: Call) -> Row:
    return square_root(p, call.inputs[0])


def _wide_div(p: Program, call: Call) -> Row:
    return doubles.quotient(Doubles(p), *call.inputs)


def _wide_reciprocal(p: Program, call: Call) -> Row:
    return doubles.quotient(Doubles(p), 1.0, call.inputs[0])


FUNCTIONS: tuple[Function, ...] = (
    Function("Div", by_dtype(_div, _wide_div), BINARY, REALS, FUNCTION),
    Function("Reciprocal", by_dtype(_reciprocal, _wide_reciprocal), UNARY, REALS, FUNCTION),
    Function("Sqrt", by_dtype(_sqrt, of_one(doubles.square_root)), UNARY, REALS, FUNCTION),
    Function(RSQRT, lambda p, call: rsqrt(p, call.inputs[0]), UNARY, error=FUNCTION),
)
