"""exp and the functions built on it.

exp(-infinity) is 0. Overflow gives infinity, underflow gives 0.
"""

from __future__ import annotations

from ...tolerance import FUNCTION
from . import doubles
from . import wide_powers as wide
from .doubles import by_dtype, of_one
from .elementwise_function import REALS, UNARY, Call, Function
from .program import Operand, Program, Result, Row, neg
from .roots import reciprocal_of_moderate

_SIGN, _MAGNITUDE = 0x80000000, 0x7FFFFFFF
_ONE = 0x3F800000
_FIELD = 23  # bits below the exponent field

LOG2_E = 1.4426950408889634
# ln 2 in two parts: n times the first is exact for every exponent n.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.1219444005469057e-4
# (e^r - 1) / r for |r| <= ln(2)/2, minimax of the relative error: 2^-26.5.
_EXPM1 = (1.0, 0.4999999812, 0.1666650617, 0.04166713641, 0.008369073997, 0.001388886891)

# Below the lower bound exp is below the smallest number. At the bound the exponent field of 2^n is
# 0, but the rest is at least 1, so the sum of the exponents does not become negative.
_LOWEST, _HIGHEST = -88.0, 88.73


def reduced(p: Program, x: Operand, low: Operand | None = None) -> tuple[Result, Result]:
    """Return ``n << 23`` and ``expm1(r)`` with x = n ln 2 + r; ``low`` is a small addition to x."""
    n = p.alu("ffloor", p.fma(x, LOG2_E, 0.5))
    r = p.fma(n, -_LN2_LOW, p.fma(n, -_LN2_HIGH, x))
    if low is not None:
        r = p.add(r, low)
    return p.alu("ilsl", p.alu("fftoi", n), _FIELD), p.mul(r, p.polynomial(r, _EXPM1))


def exp_bits(p: Program, x: Operand, low: Operand | None = None, scale: int = 0) -> Result:
    """Return exp(x) times 2^scale, for x whose result is in range.

    If 2^n is below the smallest number, the exponent field of the result is 0.
    """
    n, rest = reduced(p, x, low)
    if scale:
        n = p.alu("iadd", n, scale << _FIELD)
    return p.alu("iadd", p.add(rest, 1.0), n)


def exponential(p: Program, x: Operand, low: Operand | None = None) -> Result:
    """Return exp(x + low) over the whole range."""
    bounded = p.alu("fmin", p.alu("fmax", x, _LOWEST), _HIGHEST)
    return p.normal(exp_bits(p, bounded, low))


def _exp(p: Program, call: Call) -> Row:
    return exponential(p, call.inputs[0])


def _magnitude(p: Program, x: Row) -> Result:
    return p.alu("iand", x, _MAGNITUDE)


def _sigmoid(p: Program, call: Call) -> Row:
    """Return 1/(1+e), or e/(1+e) for negative x, with e = exp(-|x|)."""
    (x,) = call.inputs
    e = exp_bits(p, p.alu("fmax", p.alu("ior", x, _SIGN), _LOWEST))
    above = p.alu("fmax", e, p.alu("frelu", x, 1.0))
    return p.mul(above, reciprocal_of_moderate(p, p.add(e, 1.0)))


# As x falls, x e^x leaves the range of numbers a little later than e^x: compute with e^x 2^8.
_SILU_SCALE, _SILU_LOWEST = 8, -92.0


def _silu(p: Program, call: Call) -> Row:
    """Return the larger of x/(1+e) and x e/(1+e) with e = exp(-|x|): SiLU for either sign of x."""
    x = p.alu("fmax", call.inputs[0], _SILU_LOWEST)
    power = p.alu("fmax", p.alu("ior", x, _SIGN), _SILU_LOWEST)
    e = exp_bits(p, power, scale=_SILU_SCALE)
    unit = 2.0**-_SILU_SCALE
    quotient = p.mul(x, reciprocal_of_moderate(p, p.fma(e, unit, 1.0)))
    return p.alu("fmax", quotient, p.mul(p.mul(quotient, e), unit))


def _tanh(p: Program, call: Call) -> Row:
    """Return m/(m+2) with m = exp(2|x|) - 1; 2^n - 1 is exact where it matters."""
    (x,) = call.inputs
    doubled = p.mul(p.alu("fmin", _magnitude(p, x), 10.0), 2.0)
    n, rest = reduced(p, doubled)
    power = p.alu("iadd", n, _ONE)
    m = p.fma(rest, power, p.sub(power, 1.0))
    result = p.mul(m, reciprocal_of_moderate(p, p.add(m, 2.0)))
    return p.alu("ior", result, p.alu("iand", x, _SIGN))


# erfc(z) e^(z^2) = t H(t) with t = 1/(1 + 0.4 z), for z up to 10.2: minimax, 2^-26.8.
_ERFC_SLOPE = 0.4
_ERFC = (
    0.2257055592, 0.2249782921, 0.2147006524, 0.1306995271, 0.2691149452,
    -0.2788673883, 0.5408229049, -0.4938530865, 0.1959047573, -0.02920615508,
)  # fmt: skip
# erf(x)/x as a polynomial in x^2 for |x| <= 1: minimax, 2^-29.6.
_ERF = (
    1.128379166, -0.3761262582, 0.1128358515, -0.02685381187,
    0.00518832756, -0.0008010192524, 7.853857715e-05,
)  # fmt: skip


def _erfc_factor(p: Program, z: Operand, slope: float) -> Result:
    """Return erfc(y) e^(y^2) for the y with 0.4 y = ``slope`` z."""
    t = reciprocal_of_moderate(p, p.fma(z, slope, 1.0))
    return p.mul(t, p.polynomial(t, _ERFC))


def _erf(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    magnitude = _magnitude(p, x)
    z = p.alu("fmin", magnitude, 4.0)  # 1 - erf(4) is 1.5e-8
    e = exp_bits(p, p.mul(neg(z), z))
    far = p.fma(neg(e), _erfc_factor(p, z, _ERFC_SLOPE), 1.0)
    far = p.alu("ior", far, p.alu("iand", x, _SIGN))
    near = p.mul(x, p.polynomial(p.mul(x, x), _ERF))
    return p.select(p.mask(p.flags("fmin", magnitude, 1.0)), near, far)


# GELU is max(x, 0) - |x| Q(|x|), where Q is the probability of a number above |x|. Q may be below
# the smallest number while the result is not: compute with Q 2^20.
_GELU_SCALE = 20


def _gelu(p: Program, call: Call) -> Row:
    (x,) = call.inputs
    build = _gelu_tanh if call.attributes.get("approximate", "none") == "tanh" else _gelu_none
    a, chance, factor = build(p, _magnitude(p, x))
    return p.fma(neg(p.mul(a, chance)), factor * 2.0**-_GELU_SCALE, p.alu("frelu", x, x))


def _gelu_none(p: Program, magnitude: Row) -> tuple[Row, Row, float]:
    """Return |x|, and two numbers whose product is Q 2^20, with Q = erfc(|x|/sqrt(2))/2.

    The square of |x| has two parts, because exp magnifies its error.
    """
    a = p.alu("fmin", magnitude, 14.0)
    square = p.mul(a, a)
    low = p.mul(p.fma(a, a, neg(square)), -0.5)
    e = exp_bits(p, p.mul(square, -0.5), low, _GELU_SCALE)
    return a, p.mul(e, _erfc_factor(p, a, _ERFC_SLOPE * 0.5**0.5)), 0.5


# 2 sqrt(2/pi), and 0.044715 times it: each as a single, and the rest that the single leaves out.
_TANH_LINEAR, _TANH_LINEAR_LOW = 1.5957691669464111, -4.534068032e-08
_TANH_CUBIC, _TANH_CUBIC_LOW = 0.07135481387376785, 2.398832397e-09


def _gelu_tanh(p: Program, magnitude: Row) -> tuple[Row, Row, float]:
    """Return the same as :func:`_gelu_none` for Q = e/(1+e), e = exp(-v), v = a (c0 + c1 a^2).

    v and the terms of v have two parts each.
    """
    a = p.alu("fmin", magnitude, 10.4)
    square = p.mul(a, a)
    square_low = p.fma(a, a, neg(square))
    cubic = p.mul(square, _TANH_CUBIC)
    cubic_low = p.fma(square, _TANH_CUBIC, neg(cubic))
    cubic_low = p.fma(square_low, _TANH_CUBIC, p.fma(square, _TANH_CUBIC_LOW, cubic_low))
    total = p.add(cubic, _TANH_LINEAR)
    part = p.sub(total, _TANH_LINEAR)
    rest = p.add(p.sub(_TANH_LINEAR, p.sub(total, part)), p.sub(cubic, part))
    rest = p.add(rest, p.add(cubic_low, _TANH_LINEAR_LOW))
    v = p.mul(a, total)
    low = p.fma(a, rest, p.fma(a, total, neg(v)))
    e = exp_bits(p, p.normal(neg(v)), p.normal(neg(low)), _GELU_SCALE)
    return a, p.mul(e, reciprocal_of_moderate(p, p.fma(e, 2.0**-_GELU_SCALE, 1.0))), 1.0


def _known_gelu(attributes: object) -> str | None:
    assert isinstance(attributes, dict)
    kind = attributes.get("approximate", "none")
    return None if kind in ("none", "tanh") else f"Gelu has no approximation `{kind}`"


FUNCTIONS: tuple[Function, ...] = (
    Function("Exp", by_dtype(_exp, of_one(doubles.exponential)), UNARY, REALS, FUNCTION),
    Function("Sigmoid", by_dtype(_sigmoid, of_one(doubles.sigmoid)), UNARY, REALS, FUNCTION),
    Function("Swish", by_dtype(_silu, of_one(doubles.silu)), UNARY, REALS, FUNCTION, note="SiLU"),
    Function("Tanh", by_dtype(_tanh, of_one(doubles.tanh)), UNARY, REALS, FUNCTION),
    Function("Erf", by_dtype(_erf, of_one(wide.error_function)), UNARY, REALS, FUNCTION),
    Function(
        "Gelu",
        by_dtype(_gelu, wide.gelu),
        UNARY,
        REALS,
        FUNCTION,
        attributes=frozenset({"approximate"}),
        refuse=_known_gelu,
    ),
)
