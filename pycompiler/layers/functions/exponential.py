"""exp and the functions built on it.

exp(-infinity) is 0. Overflow gives infinity, underflow gives 0.
"""

from __future__ import annotations

from math import factorial

from ...tolerance import FUNCTION
from .elementwise_function import REALS, UNARY, Function
from .program import Operand, Result, Row
from .reals import Reals, of_reals
from .roots import reciprocal_of_moderate

LOG2_E = 1.4426950408889634
# ln 2 in two parts: n times the first is exact for every exponent n.
_LN2_HIGH = 0.693359375, 0.6931471803691238
_LN2_LOW = -2.1219444005469057e-4, 1.9082149292705877e-10
# (e^r - 1) / r for |r| <= ln(2)/2: minimax of the relative error, 2^-26.5; Taylor's series, 2^-56.
_EXPM1 = (
    (1.0, 0.4999999812, 0.1666650617, 0.04166713641, 0.008369073997, 0.001388886891),
    tuple(1.0 / factorial(k + 1) for k in range(13)),
)

# Below the lower bound exp is below the smallest number. At the bound the exponent field of 2^n is
# 0, but the rest is at least 1, so the sum of the exponents does not become negative. Above the
# upper bound exp is infinite.
_LOWEST, HIGHEST = (-88.0, -709.0), (88.73, 709.79)


def reduced(r: Reals, x: Operand, low: Operand | None = None) -> tuple[Result, Result]:
    """Return n as an exponent, and ``expm1(y)``, with x = n ln 2 + y.

    ``low`` is a small addition to x.
    """
    n = r.real("floor", r.fma(x, LOG2_E, 0.5))
    y = r.fma(n, -r.own(_LN2_LOW), r.fma(n, -r.own(_LN2_HIGH), x))
    if low is not None:
        y = r.add(y, low)
    return r.bits("lsl", r.real("ftoi", n), r.FIELD), r.mul(y, r.polynomial(y, r.own(_EXPM1)))


def exp_bits(r: Reals, x: Operand, low: Operand | None = None, scale: int = 0) -> Result:
    """Return exp(x + low) times 2^scale, for x whose result is in range.

    If 2^n is below the smallest number, the exponent field of the result is 0.
    """
    n, rest = reduced(r, x, low)
    if scale:
        n = r.bits("add", n, scale << r.FIELD)
    return r.bits("add", r.add(rest, 1.0), n)


def exponential(r: Reals, x: Operand, low: Operand | None = None) -> Result:
    """Return exp(x + low) over the whole range."""
    bounded = r.real("min", r.real("max", x, r.own(_LOWEST)), r.own(HIGHEST))
    return r.normal(exp_bits(r, bounded, low))


def falling(r: Reals, x: Row) -> Result:
    """Return exp(-|x|); its exponent field may be 0."""
    return exp_bits(r, r.real("max", r.bits("or", x, r.SIGN), r.own(_LOWEST)))


def minus_one(r: Reals, x: Operand) -> Result:
    """Return exp(x) - 1: if exp(x) = 2^n (1 + q), it is q 2^n + (2^n - 1).

    2^n - 1 is exact where it matters.
    """
    n, rest = reduced(r, x)
    power = r.bits("add", n, r.ONE)
    return r.fma(rest, power, r.sub(power, 1.0))


def _sigmoid(r: Reals, x: Row) -> Row:
    """Return 1/(1+e), or e/(1+e) for negative x, with e = exp(-|x|)."""
    e = falling(r, x)
    above = r.real("max", e, r.real("relu", x, 1.0))
    return r.mul(above, reciprocal_of_moderate(r, r.add(e, 1.0)))


# As x falls, x e^x leaves the range of numbers a little later than e^x: compute with e^x 2^8.
_SILU_SCALE, _SILU_LOWEST = 8, -92.0


def _silu(r: Reals, x: Row) -> Row:
    """Return SiLU for either sign of x, as the larger of x/(1+e) and x e/(1+e) with e = exp(-|x|).

    Of doubles, with e^(x/2) twice, which leaves the range after the result.
    """
    if r.wide:
        half = r.real("max", r.mul(r.bits("or", x, r.SIGN), 0.5), r.own(_LOWEST))
        e = r.normal(exp_bits(r, half))
        factor = r.real("max", e, r.real("relu", x, 1.0))
        y = reciprocal_of_moderate(r, r.fma(e, e, 1.0))
        return r.mul(r.mul(r.mul(x, factor), y), factor)
    x = r.real("max", x, _SILU_LOWEST)
    power = r.real("max", r.bits("or", x, r.SIGN), _SILU_LOWEST)
    e = exp_bits(r, power, scale=_SILU_SCALE)
    unit = 2.0**-_SILU_SCALE
    quotient = r.mul(x, reciprocal_of_moderate(r, r.fma(e, unit, 1.0)))
    return r.real("max", quotient, r.mul(r.mul(quotient, e), unit))


def _tanh(r: Reals, x: Row) -> Row:
    """Return m/(m+2) with m = exp(2|x|) - 1."""
    m = minus_one(r, r.mul(r.real("min", r.magnitude(x), r.own((10.0, 20.0))), 2.0))
    return r.signed(r.mul(m, reciprocal_of_moderate(r, r.add(m, 2.0))), x)


# erfc(z) e^(z^2) / t with t = 1/(1 + slope z). Of singles as a polynomial in t, for z up to 10.2:
# minimax, 2^-26.8. Of doubles as one in 1 - 2 t, for z up to 28: near minimax, 2^-53.6.
_ERFC_SLOPE = 0.4, 0.25
_ERFC = (
    (
        0.2257055592, 0.2249782921, 0.2147006524, 0.1306995271, 0.2691149452,
        -0.2788673883, 0.5408229049, -0.4938530865, 0.1959047573, -0.02920615508,
    ),
    (
        0.27399891525012277, -0.24413718227022052, 0.19330217556631163, -0.13521345782830507,
        0.08271289696937976, -0.04350273431014398, 0.019095378729843984, -0.006592513331903982,
        0.0015280138878833057, -7.023975040875711e-05, -0.00011376301742176108,
        4.4203419633318765e-05, -9.093348480082289e-07, -4.716057754398525e-06,
        1.17474491093388e-06, 3.5806792615668375e-07, -2.1287602148327444e-07,
        -2.1829285910376898e-08, 3.163666549115587e-08, 2.5916291807088857e-09,
        -3.6319118392480147e-09, -7.762512432519365e-10,
    ),
)  # fmt: skip
# erf(x)/x as a polynomial in x^2 for |x| <= 1: minimax, 2^-29.6; near minimax, 2^-54.3.
_ERF = (
    (
        1.128379166, -0.3761262582, 0.1128358515, -0.02685381187,
        0.00518832756, -0.0008010192524, 7.853857715e-05,
    ),
    (
        1.1283791670955126, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
        0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707,
        -1.492473690741966e-05, 1.6447424703317362e-06, -1.6208483801871705e-07,
        1.3720064546777686e-08, -7.795898827002142e-10,
    ),
)  # fmt: skip


def _erfc_factor(r: Reals, z: Operand, factor: float = 1.0) -> Result:
    """Return erfc(y) e^(y^2) for y = ``factor`` z."""
    t = reciprocal_of_moderate(r, r.fma(z, r.own(_ERFC_SLOPE) * factor, 1.0))
    argument = r.fma(t, -2.0, 1.0) if r.wide else t
    return r.mul(t, r.polynomial(argument, r.own(_ERFC)))


def _erf(r: Reals, x: Row) -> Row:
    magnitude = r.magnitude(x)
    z = r.real("min", magnitude, r.own((4.0, 6.0)))  # 1 - erf(z) is 1.5e-8, or 2e-17
    e = exp_bits(r, r.mul(r.neg(z), z))
    far = r.signed(r.fma(r.neg(e), _erfc_factor(r, z), 1.0), x)
    near = r.mul(x, r.polynomial(r.mul(x, x), r.own(_ERF)))
    return r.select(r.up_to(magnitude, 1.0), near, far)


# GELU is max(x, 0) - |x| Q(|x|), where Q is the probability of a number above |x|. Q may be below
# the smallest number while the result is not: compute with Q times a power of two.
_GELU_SCALE = 20, 60


def _gelu(r: Reals, x: Row, approximate: str = "none") -> Row:
    build = _gelu_tanh if approximate == "tanh" else _gelu_none
    a, chance, factor = build(r, r.magnitude(x))
    unit = factor * 2.0 ** -r.own(_GELU_SCALE)
    return r.fma(r.neg(r.mul(a, chance)), unit, r.real("relu", x, x))


def _gelu_none(r: Reals, magnitude: Row) -> tuple[Row, Row, float]:
    """Return |x|, and two numbers whose product is Q scaled, with Q = erfc(|x|/sqrt(2))/2.

    The square of |x| has two parts, because exp magnifies its error.
    """
    a = r.real("min", magnitude, r.own((14.0, 38.0)))
    square = r.mul(a, a)
    low = r.mul(r.fma(a, a, r.neg(square)), -0.5)
    e = exp_bits(r, r.mul(square, -0.5), low, r.own(_GELU_SCALE))
    return a, r.mul(e, _erfc_factor(r, a, 0.5**0.5)), 0.5


# 2 sqrt(2/pi), and 0.044715 times it: each as a number, and the rest that the number leaves out.
_TANH_LINEAR = 1.5957691669464111, 1.5957691216057308
_TANH_LINEAR_LOW = -4.534068032e-08, -9.96930880911092e-17
_TANH_CUBIC = 0.07135481387376785, 0.07135481627260025
_TANH_CUBIC_LOW = 2.398832397e-09, -6.175149918155315e-19


def _gelu_tanh(r: Reals, magnitude: Row) -> tuple[Row, Row, float]:
    """Return the same as :func:`_gelu_none` for Q = e/(1+e), e = exp(-v), v = a (c0 + c1 a^2).

    v and the terms of v have two parts each.
    """
    linear, cube = r.own(_TANH_LINEAR), r.own(_TANH_CUBIC)
    a = r.real("min", magnitude, r.own((10.4, 21.4)))
    square = r.mul(a, a)
    square_low = r.fma(a, a, r.neg(square))
    cubic = r.mul(square, cube)
    cubic_low = r.fma(square, cube, r.neg(cubic))
    cubic_low = r.fma(square_low, cube, r.fma(square, r.own(_TANH_CUBIC_LOW), cubic_low))
    total = r.add(cubic, linear)
    part = r.sub(total, linear)
    rest = r.add(r.sub(linear, r.sub(total, part)), r.sub(cubic, part))
    rest = r.add(rest, r.add(cubic_low, r.own(_TANH_LINEAR_LOW)))
    v = r.mul(a, total)
    low = r.fma(a, rest, r.fma(a, total, r.neg(v)))
    scale = r.own(_GELU_SCALE)
    e = exp_bits(r, r.normal(r.neg(v)), r.normal(r.neg(low)), scale)
    return a, r.mul(e, reciprocal_of_moderate(r, r.fma(e, 2.0**-scale, 1.0))), 1.0


def _known_gelu(attributes: object) -> str | None:
    assert isinstance(attributes, dict)
    kind = attributes.get("approximate", "none")
    return None if kind in ("none", "tanh") else f"Gelu has no approximation `{kind}`"


FUNCTIONS: tuple[Function, ...] = (
    Function("Exp", of_reals(exponential), UNARY, REALS, FUNCTION),
    Function("Sigmoid", of_reals(_sigmoid), UNARY, REALS, FUNCTION),
    Function("Swish", of_reals(_silu), UNARY, REALS, FUNCTION, note="SiLU"),
    Function("Tanh", of_reals(_tanh), UNARY, REALS, FUNCTION),
    Function("Erf", of_reals(_erf), UNARY, REALS, FUNCTION),
    Function(
        "Gelu",
        of_reals(_gelu),
        UNARY,
        REALS,
        FUNCTION,
        attributes=frozenset({"approximate"}),
        refuse=_known_gelu,
    ),
)
