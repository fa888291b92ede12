"""log and pow.

log(0) is -infinity and log(infinity) is infinity. The log of a negative number is some number. 0^y
is 0 or infinity, x^0 is 1, and a negative x needs an integer y.
"""

from __future__ import annotations

from ...tolerance import FUNCTION
from . import doubles
from . import wide_powers as wide
from .convert import small_to_float
from .doubles import by_dtype, of_one
from .elementwise_function import BINARY, REALS, UNARY, Call, Function
from .exponential import exponential
from .program import Flags, Operand, Program, Result, Row, neg
from .roots import INFINITY, reciprocal_of_moderate

_SIGN, _MAGNITUDE, _EXPONENT = 0x80000000, 0x7FFFFFFF, 0x7F800000
_FIELD = 23
_ROOT_HALF = 0x3F3504F3  # sqrt(1/2): fractions lie between it and sqrt(2)
# ln 2 in two parts: an exponent times the first is exact.
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.428606820309417e-06
# (log(1+f) - f + f^2/2) / f^3 for 1+f from sqrt(1/2) to sqrt(2): minimax, 2^-27.4.
_LOG = (
    0.3333333171, -0.2500082106, 0.2000122667, -0.1662335648,
    0.1420176247, -0.1316019507, 0.1276155034, -0.07634429838,
)  # fmt: skip
# (2 artanh(s) - 2 s) / s^3 as a polynomial in s^2, for s up to 0.1716: minimax, 2^-36.6.
_ARTANH = (0.6666666564, 0.4000033564, 0.2853727796, 0.2358276817)


def _split(p: Program, x: Operand) -> tuple[Result, Result]:
    """Return the exponent as a single, and the fraction from sqrt(1/2) to sqrt(2)."""
    above = p.alu("isub", x, _ROOT_HALF)
    exponent = small_to_float(p, p.alu("ilsr", above, _FIELD))
    return exponent, p.alu("isub", x, p.alu("iand", above, -(1 << _FIELD)))


def logarithm(p: Program, x: Row) -> Result:
    """Return log(x)."""
    exponent, fraction = _split(p, x)
    f = p.sub(fraction, 1.0)
    square = p.mul(f, f)
    tail = p.mul(p.mul(f, square), p.polynomial(f, _LOG))
    tail = p.fma(square, -0.5, p.fma(exponent, _LN2_LOW, tail))
    result = p.fma(exponent, _LN2_HIGH, p.add(f, tail))
    zero, infinite = _ends(p, x)
    ends = p.alu("ior", p.keep(zero, _SIGN | INFINITY), p.keep(infinite, INFINITY))
    return p.normal(p.alu("ior", result, ends))


def _log(p: Program, call: Call) -> Row:
    return logarithm(p, call.inputs[0])


def _ends(p: Program, x: Row) -> tuple[Flags, Flags]:
    """Return the flags of zeros and of infinities."""
    return p.flags("iand", x, _EXPONENT), p.flags("ixor", x, INFINITY)


def _log_in_two_parts(p: Program, x: Row) -> tuple[Result, Result]:
    """Return two numbers whose sum is log(x) of a positive x within 2^-33.

    For 0 and infinity the sum has a large magnitude instead.
    """
    exponent, fraction = _split(p, x)
    f = p.sub(fraction, 1.0)
    # s = f / (fraction + 1), and the rest that its rounding leaves out
    divisor = p.add(fraction, 1.0)
    divisor_low = p.sub(fraction, p.sub(divisor, 1.0))
    y = reciprocal_of_moderate(p, divisor)
    s = p.mul(f, y)
    s_low = p.mul(p.fma(neg(s), divisor_low, p.fma(neg(s), divisor, f)), y)
    square = p.mul(s, s)
    tail = p.fma(p.mul(s, square), p.polynomial(square, _ARTANH), p.mul(s_low, 2.0))
    tail = p.fma(exponent, _LN2_LOW, tail)
    # The exponent's part is the larger one, or 0.
    large, small = p.mul(exponent, _LN2_HIGH), p.mul(s, 2.0)
    most = p.add(large, small)
    rest = p.add(p.sub(small, p.sub(most, large)), tail)
    high = p.add(most, rest)
    low = p.sub(rest, p.sub(high, most))
    zero, infinite = _ends(p, x)
    far = p.alu("ior", p.keep(zero, -(2.0**126)), p.keep(infinite, 2.0**126))
    return p.add(high, far), low


def _pow(p: Program, call: Call) -> Row:
    x, y = call.inputs
    high, low = _log_in_two_parts(p, p.alu("iand", x, _MAGNITUDE))
    product = p.mul(y, high)
    rest = p.fma(y, low, p.fma(y, high, neg(product)))
    # If the product is outside the range of exp, the rest has no meaning: bound it.
    rest = p.alu("fmax", p.alu("fmin", rest, 2.0**-10), -(2.0**-10))
    result = exponential(p, product, rest)
    half = p.mul(y, 0.5)
    even = p.mask(p.flags("ixor", p.alu("ffloor", half), half))
    sign = p.alu("iand", p.alu("iand", x, _SIGN), p.alu("lnot", even))
    return p.alu("ior", result, sign)


FUNCTIONS: tuple[Function, ...] = (
    Function("Log", by_dtype(_log, of_one(doubles.logarithm)), UNARY, REALS, FUNCTION),
    Function(
        "Pow",
        by_dtype(_pow, wide.power),
        BINARY,
        REALS,
        FUNCTION,
        note="a negative base needs an integer exponent; 0 and infinity none below 2^-120 but 0, "
        "or below 2^-1000 in `Double`",
    ),
)
