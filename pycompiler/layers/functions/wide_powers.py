"""pow, erf and GELU of doubles: the methods of singles, with longer polynomials."""

from __future__ import annotations

from .doubles import (
    EXPONENT,
    FIELD,
    FRACTION,
    LN2_HIGH,
    LN2_LOW,
    ROOT_HALF,
    SIGN,
    Doubles,
    exp_bits,
    exponential,
    reciprocal_of_moderate,
)
from .elementwise_function import Call
from .program import Operand, Program, Result, Row, neg

#: A logarithm that stands for that of 0 and of infinity.
_FAR = 2.0**1022
#: What the second part of a product is bounded to where the first decides alone.
_REST = 2.0**-40
#: (artanh(s) - s) / s^3 as a series in s^2, for s up to 0.1716: 2^-65 of artanh(s).
_ARTANH_TAIL = tuple(1.0 / (2 * k + 1) for k in range(1, 13))


def _log_in_two_parts(d: Doubles, x: Row) -> tuple[Result, Result]:
    """Return two numbers whose sum is log(x) of a positive x within 2^-58 of it.

    For 0 and infinity the sum has a large magnitude instead.
    """
    above = d.alu("lsub", x, ROOT_HALF)
    exponent = d.of_small(d.alu("llsr", above, FIELD))
    fraction = d.alu("lsub", x, d.alu("land", above, ~FRACTION))
    f = d.sub(fraction, 1.0)
    # s = f / (fraction + 1), and the rest that its rounding leaves out
    divisor = d.add(fraction, 1.0)
    divisor_low = d.sub(fraction, d.sub(divisor, 1.0))
    y = reciprocal_of_moderate(d, divisor)
    s = d.mul(f, y)
    minus = neg(d.row(s))
    s_low = d.mul(d.fma(minus, divisor_low, d.fma(minus, divisor, f)), y)
    square = d.mul(s, s)
    tail = d.fma(d.mul(s, square), d.polynomial(square, _ARTANH_TAIL), s_low)
    tail = d.fma(exponent, LN2_LOW, d.add(tail, tail))
    # The exponent's part is the larger one, or 0.
    large, small = d.mul(exponent, LN2_HIGH), d.add(s, s)
    most = d.add(large, small)
    rest = d.add(d.sub(small, d.sub(most, large)), tail)
    high = d.add(most, rest)
    low = d.sub(rest, d.sub(high, most))
    zero, infinite = d.flags("land", x, EXPONENT), d.flags("lxor", x, EXPONENT)
    far = d.alu("lor", d.keep(zero, -_FAR), d.keep(infinite, _FAR))
    return d.add(high, far), low


def power(p: Program, call: Call) -> Row:
    """Return x^y; a negative x needs an integer y."""
    d = Doubles(p)
    x, y = call.inputs
    high, low = _log_in_two_parts(d, d.magnitude(x))
    product = d.mul(y, high)
    rest = d.fma(y, low, d.fma(y, high, neg(d.row(product))))
    rest = d.alu("dmax", d.alu("dmin", rest, _REST), -_REST)
    result = exponential(d, product, rest)
    half = d.mul(y, 0.5)
    even = p.mask(d.flags("lxor", d.alu("dfloor", half), half))
    sign = d.alu("land", d.alu("land", x, SIGN), d.alu("lnot", even))
    return d.alu("lor", result, sign)


# -- erf -------------------------------------------------------------------------------------------

# erf(x)/x as a polynomial in x^2 for |x| <= 1: near minimax, 2^-54.3.
_ERF = (
    1.1283791670955126, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
    0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707,
    -1.492473690741966e-05, 1.6447424703317362e-06, -1.6208483801871705e-07,
    1.3720064546777686e-08, -7.795898827002142e-10,
)  # fmt: skip
# erfc(z) e^(z^2) / t with t = 1/(1 + z/4), as a polynomial in 1 - 2 t for z up to 28: near
# minimax, 2^-53.6.
_ERFC = (
    0.27399891525012277, -0.24413718227022052, 0.19330217556631163, -0.13521345782830507,
    0.08271289696937976, -0.04350273431014398, 0.019095378729843984, -0.006592513331903982,
    0.0015280138878833057, -7.023975040875711e-05, -0.00011376301742176108,
    4.4203419633318765e-05, -9.093348480082289e-07, -4.716057754398525e-06, 1.17474491093388e-06,
    3.5806792615668375e-07, -2.1287602148327444e-07, -2.1829285910376898e-08,
    3.163666549115587e-08, 2.5916291807088857e-09, -3.6319118392480147e-09,
    -7.762512432519365e-10,
)  # fmt: skip
_SLOPE = 0.25


def _erfc_factor(d: Doubles, z: Operand, slope: float) -> Result:
    """Return erfc(y) e^(y^2) for the y with y/4 = ``slope`` z."""
    t = reciprocal_of_moderate(d, d.fma(z, slope, 1.0))
    return d.mul(t, d.polynomial(d.fma(t, -2.0, 1.0), _ERFC))


def error_function(d: Doubles, x: Row) -> Result:
    """Return erf(x)."""
    magnitude = d.magnitude(x)
    z = d.alu("dmin", magnitude, 6.0)  # 1 - erf(6) is 2e-17
    e = exp_bits(d, d.mul(neg(d.row(z)), z))
    far = d.fma(neg(d.row(e)), _erfc_factor(d, z, _SLOPE), 1.0)
    far = d.alu("lor", far, d.alu("land", x, SIGN))
    near = d.mul(x, d.polynomial(d.mul(x, x), _ERF))
    return d.p.select(d.p.mask(d.flags("dmin", magnitude, 1.0)), near, far)


#: GELU is max(x, 0) - |x| Q(|x|): Q may be below the smallest number while the result is not.
_GELU_SCALE = 60
_LINEAR, _CUBIC = 1.5957691216057308, 0.07135481627260025  # 2 sqrt(2/pi), and 0.044715 times it
_LINEAR_LOW, _CUBIC_LOW = -9.96930880911092e-17, -6.175149918155315e-19


def gelu(p: Program, call: Call) -> Row:
    """Return x times the probability of a number below x, or its approximation by tanh."""
    d = Doubles(p)
    (x,) = call.inputs
    build = _by_tanh if call.attributes.get("approximate", "none") == "tanh" else _by_erf
    a, chance, factor = build(d, d.magnitude(x))
    scaled = factor * 2.0**-_GELU_SCALE
    return d.fma(neg(d.row(d.mul(a, chance))), scaled, d.alu("drelu", x, x))


def _by_erf(d: Doubles, magnitude: Row) -> tuple[Row, Row, float]:
    """Return |x|, and two numbers whose product is Q 2^60, with Q = erfc(|x|/sqrt(2))/2."""
    a = d.alu("dmin", magnitude, 38.0)
    square = d.mul(a, a)
    low = d.mul(d.fma(a, a, neg(d.row(square))), -0.5)
    e = exp_bits(d, d.mul(square, -0.5), low, _GELU_SCALE)
    return a, d.mul(e, _erfc_factor(d, a, _SLOPE * 0.5**0.5)), 0.5


def _by_tanh(d: Doubles, magnitude: Row) -> tuple[Row, Row, float]:
    """Return the same for Q = e/(1+e), e = exp(-v), v = a (c0 + c1 a^2); v has two parts."""
    a = d.alu("dmin", magnitude, 21.4)
    square = d.mul(a, a)
    square_low = d.fma(a, a, neg(d.row(square)))
    cubic = d.mul(square, _CUBIC)
    cubic_low = d.fma(square, _CUBIC, neg(d.row(cubic)))
    cubic_low = d.fma(square_low, _CUBIC, d.fma(square, _CUBIC_LOW, cubic_low))
    total = d.add(cubic, _LINEAR)
    part = d.sub(total, _LINEAR)
    rest = d.add(d.sub(_LINEAR, d.sub(total, part)), d.sub(cubic, part))
    rest = d.add(rest, d.add(cubic_low, _LINEAR_LOW))
    v = d.mul(a, total)
    low = d.fma(a, rest, d.fma(a, total, neg(d.row(v))))
    e = exp_bits(d, d.normal(neg(d.row(v))), d.normal(neg(d.row(low))), _GELU_SCALE)
    return a, d.mul(e, reciprocal_of_moderate(d, d.fma(e, 2.0**-_GELU_SCALE, 1.0))), 1.0
