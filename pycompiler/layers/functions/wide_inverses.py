"""Hyperbolic functions of doubles, and the inverses of these and of sine, cosine and tangent."""

from __future__ import annotations

from math import factorial, log, pi, sqrt

from .doubles import (
    ARTANH_OF_HALF,
    EXPONENT,
    SIGN,
    Doubles,
    exp_bits,
    log_of_one_more,
    logarithm,
    quotient,
    reciprocal_of_moderate,
    square_root,
)
from .program import Operand, Result, Row, neg

#: Above it, sqrt(x^2 + 1) is x.
_LARGE = 2.0**28
#: Above it, half of e^x is infinite.
_HIGHEST = 710.5
# sinh(t)/t as a series in t^2, for t up to 1: 2^-56.
_SINH = tuple(1.0 / factorial(2 * k + 1) for k in range(9))
# atan(t)/t as a polynomial in t^2 for t up to sqrt(2) - 1: near minimax, 2^-58.
_ATAN = (
    1.0, -0.3333333333333312, 0.19999999999940868, -0.14285714279248055, 0.11111110744810647,
    -0.09090896805912162, 0.07692045274291998, -0.06662951162727927, 0.05846873503411509,
    -0.05035080589113427, 0.03796469507021349, -0.01780477396050943,
)  # fmt: skip
# asin(t)/t as a polynomial in t^2 for t up to 1/2: near minimax, 2^-57.9.
_ASIN = (
    1.0, 0.16666666666666796, 0.07499999999966611, 0.04464285717686322, 0.030381942642327187,
    0.022372216106072148, 0.017351600625343435, 0.01398088299217101, 0.011398850408440755,
    0.010778675120995992, 0.0037180577483250537, 0.02166805886905636, -0.02093065831518245,
    0.03257934796692842,
)  # fmt: skip


def _signed(d: Doubles, found: Operand, x: Row) -> Result:
    """Give a positive number the sign of x."""
    return d.alu("lor", found, d.alu("land", x, SIGN))


def _up_to(d: Doubles, magnitude: Row, bound: float) -> Result:
    """Return the mask of numbers up to a bound."""
    return d.p.mask(d.flags("dmin", magnitude, bound))


# -- hyperbolic functions --------------------------------------------------------------------------


def _halves(d: Doubles, magnitude: Row) -> tuple[Result, Result]:
    """Return half of e^|x| and half of e^-|x|."""
    up = d.normal(exp_bits(d, d.alu("dmin", magnitude, _HIGHEST), scale=-1))
    # Where the second is bounded, the first one hides it.
    return up, d.mul(reciprocal_of_moderate(d, d.alu("dmin", up, 2.0**500)), 0.25)


def sinh(d: Doubles, x: Row) -> Row:
    """Return the hyperbolic sine."""
    magnitude = d.magnitude(x)
    up, down = _halves(d, magnitude)
    near = d.alu("dmin", magnitude, 1.0)
    near = d.mul(near, d.polynomial(d.mul(near, near), _SINH))
    return _signed(d, d.p.select(_up_to(d, magnitude, 1.0), near, d.sub(up, down)), x)


def cosh(d: Doubles, x: Row) -> Row:
    """Return the hyperbolic cosine."""
    return d.add(*_halves(d, d.magnitude(x)))


def _log_of_sum(d: Doubles, x: Row, root: Row, rest: Row) -> Row:
    """Return log(x + root); ``rest`` is the sum less 1, which is exact where it is below 1.

    Where x is large, root is x.
    """
    large = d.flags("dmax", x, _LARGE)
    # In large arguments the sum may leave the range: log(2 x) is log(x) + log(2).
    total = d.p.select(d.p.mask(large), x, d.add(d.alu("dmin", x, _LARGE), root))
    far = d.add(logarithm(d, total), d.keep(large, log(2.0)))
    near = log_of_one_more(d, d.alu("dmin", rest, 1.0))
    return d.p.select(_up_to(d, rest, 1.0), near, far)


def asinh(d: Doubles, x: Row) -> Row:
    """Return log(|x| + sqrt(x^2 + 1)), where the root is 1 + x^2 / (1 + root)."""
    magnitude = d.magnitude(x)
    bounded = d.alu("dmin", magnitude, _LARGE)
    root = square_root(d, d.fma(bounded, bounded, 1.0))
    part = d.mul(bounded, reciprocal_of_moderate(d, d.add(root, 1.0)))
    return _signed(d, _log_of_sum(d, magnitude, root, d.fma(bounded, part, bounded)), x)


def acosh(d: Doubles, x: Row) -> Row:
    """Return log(x + sqrt(x^2 - 1)), with t = x - 1 and the root sqrt(t^2 + 2 t)."""
    t = d.sub(d.alu("dmin", x, _LARGE), 1.0)
    root = square_root(d, d.mul(t, d.add(t, 2.0)))
    return _log_of_sum(d, x, root, d.add(t, root))


def atanh(d: Doubles, x: Row) -> Row:
    """Return half of log((1 + |x|) / (1 - |x|)), with the sign of x; near 0 a series."""
    magnitude = d.magnitude(x)
    ratio = quotient(d, d.add(magnitude, 1.0), d.normal(d.sub(1.0, magnitude)))
    third = 1 / 3
    near = d.alu("dmin", magnitude, third)
    twice = d.add(near, near)
    near = d.mul(near, d.polynomial(d.mul(twice, twice), ARTANH_OF_HALF))
    found = d.p.select(_up_to(d, magnitude, third), near, d.mul(logarithm(d, ratio), 0.5))
    found = d.alu("dmax", found, d.keep(d.flags("dmax", magnitude, 1.0), EXPONENT))
    return _signed(d, found, x)


# -- inverses of sine, cosine and tangent ----------------------------------------------------------


def atan(d: Doubles, x: Row) -> Row:
    """Return the angle of an eighth of a turn or two less, plus these.

    The tangent of the difference is (x - 1) / (x + 1), and -1/x for a quarter.
    """
    magnitude = d.magnitude(x)
    low, high = (_up_to(d, magnitude, bound) for bound in (sqrt(2) - 1, sqrt(2) + 1))
    above = d.p.select(high, d.sub(magnitude, 1.0), d.row(-1.0).row)
    below = d.p.select(high, d.add(magnitude, 1.0), magnitude)
    above = d.p.select(low, magnitude, above)
    below = d.p.select(low, d.row(1.0).row, below)
    start = d.p.select(high, d.row(pi / 4).row, d.row(pi / 2).row)
    start = d.alu("land", start, d.alu("lnot", low))
    t = quotient(d, above, below)
    return _signed(d, d.fma(t, d.polynomial(d.mul(t, t), _ATAN), start), x)


def _near_and_far(d: Doubles, x: Row) -> tuple[Result, Result]:
    """Return the mask of |x| up to 1/2, and asin(|x|) there; elsewhere asin of a root.

    The root is that of (1 - |x|)/2: asin(|x|) is pi/2 less twice its asin.
    """
    magnitude = d.magnitude(x)
    near = _up_to(d, magnitude, 0.5)
    root = square_root(d, d.fma(magnitude, -0.5, 0.5))
    t = d.p.select(near, magnitude, root)
    return near, d.mul(t, d.polynomial(d.mul(t, t), _ASIN))


def asin(d: Doubles, x: Row) -> Row:
    """Return the arc sine of numbers from -1 to 1."""
    near, found = _near_and_far(d, x)
    return _signed(d, d.p.select(near, found, d.fma(found, -2.0, pi / 2)), x)


def acos(d: Doubles, x: Row) -> Row:
    """Return pi/2 - asin(x) near 0; else twice asin of the root, or pi less it."""
    near, found = _near_and_far(d, x)
    negative = d.flags("llsr", x, 63)  # set where no bit is left: x is positive
    twice = d.add(found, found)
    far = d.p.select(d.p.mask(negative), twice, d.sub(pi, twice))
    return d.p.select(near, d.add(pi / 2, neg(d.row(_signed(d, found, x)))), far)
