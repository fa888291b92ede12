"""log and pow.

log(0) is -infinity and log(infinity) is infinity. The log of a negative number is some number. 0^y
is 0 or infinity, x^0 is 1, and a negative x needs an integer y.
"""

from __future__ import annotations

from ...tolerance import FUNCTION
from .elementwise_function import BINARY, REALS, UNARY, Function
from .exponential import exponential
from .program import Operand, Result, Row
from .reals import Reals, of_reals
from .roots import reciprocal_of_moderate

_ROOT_HALF = 0x3F3504F3, 0x3FE6A09E667F3BCD  # fractions lie between sqrt(1/2) and sqrt(2)
# ln 2 in two parts: an exponent times the first is exact.
_LN2_HIGH = 0.693145751953125, 0.6931471803691238
_LN2_LOW = 1.428606820309417e-06, 1.9082149292705877e-10
# (log(1+f) - f + f^2/2) / f^3 for 1+f from sqrt(1/2) to sqrt(2): minimax, 2^-27.4. Of singles.
_LOG = (
    0.3333333171, -0.2500082106, 0.2000122667, -0.1662335648,
    0.1420176247, -0.1316019507, 0.1276155034, -0.07634429838,
)  # fmt: skip
# artanh(s) / s as a series in s^2, for s up to 0.1716: 2^-55, and 2^-65 with the last three terms.
# Of doubles.
_ARTANH = tuple(1.0 / (2 * k + 1) for k in range(13))
# (2 artanh(s) - 2 s) / s^3 of singles, (artanh(s) - s) / s^3 of doubles, in s^2: minimax, 2^-36.6.
_ARTANH_TAIL = (0.6666666564, 0.4000033564, 0.2853727796, 0.2358276817), _ARTANH[1:]


def _split(r: Reals, x: Operand) -> tuple[Result, Result]:
    """Return the exponent as a number, and the fraction from sqrt(1/2) to sqrt(2)."""
    above = r.bits("sub", x, r.own(_ROOT_HALF))
    exponent = r.of_small(r.bits("lsr", above, r.FIELD))
    return exponent, r.bits("sub", x, r.bits("and", above, ~r.FRACTION))


def _at_ends(r: Reals, x: Row, zero: Operand, infinite: Operand) -> Result:
    """Return a number where x is 0, another where it is infinite, and 0 elsewhere."""
    is_zero = r.bits("and", x, r.EXPONENT).flags
    is_infinite = r.bits("xor", x, r.INFINITY).flags
    return r.bits("or", r.keep(is_zero, zero), r.keep(is_infinite, infinite))


def logarithm(r: Reals, x: Row) -> Result:
    """Return log(x) of 2^exponent (1 + f); of doubles by 2 artanh(f / (2 + f))."""
    exponent, fraction = _split(r, x)
    f = r.sub(fraction, 1.0)
    if r.wide:
        s = r.mul(f, reciprocal_of_moderate(r, r.add(f, 2.0)))
        tail = r.mul(r.twice(s), r.polynomial(r.mul(s, s), _ARTANH[:10]))
        part = r.fma(exponent, r.own(_LN2_LOW), tail)
    else:
        square = r.mul(f, f)
        tail = r.mul(r.mul(f, square), r.polynomial(f, _LOG))
        tail = r.fma(square, -0.5, r.fma(exponent, r.own(_LN2_LOW), tail))
        part = r.add(f, tail)
    result = r.fma(exponent, r.own(_LN2_HIGH), part)
    return r.normal(r.bits("or", result, _at_ends(r, x, r.SIGN | r.INFINITY, r.INFINITY)))


def _log_in_two_parts(r: Reals, x: Row) -> tuple[Result, Result]:
    """Return two numbers whose sum is log(x) of a positive x within 2^-33; of doubles 2^-58.

    For 0 and infinity the sum has a large magnitude instead.
    """
    exponent, fraction = _split(r, x)
    f = r.sub(fraction, 1.0)
    # s = f / (fraction + 1), and the rest that its rounding leaves out
    divisor = r.add(fraction, 1.0)
    divisor_low = r.sub(fraction, r.sub(divisor, 1.0))
    y = reciprocal_of_moderate(r, divisor)
    s = r.mul(f, y)
    minus = r.neg(s)
    s_low = r.mul(r.fma(minus, divisor_low, r.fma(minus, divisor, f)), y)
    square = r.mul(s, s)
    cube, series = r.mul(s, square), r.polynomial(square, r.own(_ARTANH_TAIL))
    rest = r.fma(cube, series, s_low if r.wide else r.twice(s_low))
    tail = r.fma(exponent, r.own(_LN2_LOW), r.twice(rest) if r.wide else rest)
    # The exponent's part is the larger one, or 0.
    large, small = r.mul(exponent, r.own(_LN2_HIGH)), r.twice(s)
    most = r.add(large, small)
    rest = r.add(r.sub(small, r.sub(most, large)), tail)
    high = r.add(most, rest)
    low = r.sub(rest, r.sub(high, most))
    far = 2.0 ** (r.BIAS - 1)
    return r.add(high, _at_ends(r, x, -far, far)), low


def _pow(r: Reals, x: Row, y: Row) -> Row:
    high, low = _log_in_two_parts(r, r.magnitude(x))
    product = r.mul(y, high)
    rest = r.fma(y, low, r.fma(y, high, r.neg(product)))
    # If the product is outside the range of exp, the rest has no meaning: bound it.
    bound = r.own((2.0**-10, 2.0**-40))
    rest = r.real("max", r.real("min", rest, bound), -bound)
    result = exponential(r, product, rest)
    half = r.mul(y, 0.5)
    even = r.mask(r.bits("xor", r.real("floor", half), half).flags)
    sign = r.bits("and", r.bits("and", x, r.SIGN), r.alu("lnot", even))
    return r.bits("or", result, sign)


FUNCTIONS: tuple[Function, ...] = (
    Function("Log", of_reals(logarithm), UNARY, REALS, FUNCTION),
    Function(
        "Pow",
        of_reals(_pow),
        BINARY,
        REALS,
        FUNCTION,
        note="a negative base needs an integer exponent; 0 and infinity none below 2^-120 but 0, "
        "or below 2^-1000 in `Double`",
    ),
)
