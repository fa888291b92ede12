"""The inverses of sine, cosine and tangent.

Outside of -1 to 1, asin and acos give some number.
"""

from __future__ import annotations

from math import pi, sqrt

from ...tolerance import FUNCTION
from .elementwise_function import REALS, UNARY, Function
from .program import Result, Row
from .reals import Reals, of_reals
from .roots import quotient, square_root

# atan(t)/t as a polynomial in t^2. Of singles for t up to 1: minimax, 2^-28.4. Of doubles for t up
# to sqrt(2) - 1: near minimax, 2^-58.
_ATAN = (
    (
        0.9999999972, -0.3333327629, 0.1999807528, -0.1426001608, 0.109323415,
        -0.08349724968, 0.05708955593, -0.03035186479, 0.01048764925, -0.001701170064,
    ),
    (
        1.0, -0.3333333333333312, 0.19999999999940868, -0.14285714279248055, 0.11111110744810647,
        -0.09090896805912162, 0.07692045274291998, -0.06662951162727927, 0.05846873503411509,
        -0.05035080589113427, 0.03796469507021349, -0.01780477396050943,
    ),
)  # fmt: skip
# asin(t)/t as a polynomial in t^2 for t up to 1/2: minimax, 2^-31.7; near minimax, 2^-57.9.
_ASIN = (
    (1.0, 0.1666665761, 0.07500572723, 0.0445084493, 0.03185943623, 0.01428641134, 0.03769007058),
    (
        1.0, 0.16666666666666796, 0.07499999999966611, 0.04464285717686322, 0.030381942642327187,
        0.022372216106072148, 0.017351600625343435, 0.01398088299217101, 0.011398850408440755,
        0.010778675120995992, 0.0037180577483250537, 0.02166805886905636, -0.02093065831518245,
        0.03257934796692842,
    ),
)  # fmt: skip


def _atan(r: Reals, x: Row) -> Row:
    """Return atan(|x|), or pi/2 - atan(1/|x|) above 1, with the sign of x.

    Of doubles the angle of an eighth of a turn or two less, plus these: the tangent of the
    difference is (x - 1) / (x + 1), and -1/x for a quarter.
    """
    magnitude = r.magnitude(x)
    if not r.wide:
        below = r.up_to(magnitude, 1.0)
        t = r.select(below, magnitude, quotient(r, 1.0, magnitude))
        found = r.mul(t, r.polynomial(r.mul(t, t), r.own(_ATAN)))
        return r.signed(r.select(below, found, r.sub(pi / 2, found)), x)
    low, high = (r.up_to(magnitude, bound) for bound in (sqrt(2) - 1, sqrt(2) + 1))
    upper = r.select(high, r.sub(magnitude, 1.0), -1.0)
    lower = r.select(high, r.add(magnitude, 1.0), magnitude)
    upper = r.select(low, magnitude, upper)
    lower = r.select(low, 1.0, lower)
    start = r.select(high, pi / 4, pi / 2)
    start = r.bits("and", start, r.alu("lnot", low))
    t = quotient(r, upper, lower)
    return r.signed(r.fma(t, r.polynomial(r.mul(t, t), r.own(_ATAN)), start), x)


def _near_and_far(r: Reals, x: Row) -> tuple[Result, Result]:
    """Return the mask of |x| up to 1/2, and asin(|x|) there; elsewhere asin of a root.

    The root is that of (1 - |x|)/2: asin(|x|) is pi/2 less twice its asin.
    """
    magnitude = r.magnitude(x)
    near = r.up_to(magnitude, 0.5)
    root = square_root(r, r.fma(magnitude, -0.5, 0.5))
    t = r.select(near, magnitude, root)
    return near, r.mul(t, r.polynomial(r.mul(t, t), r.own(_ASIN)))


def _asin(r: Reals, x: Row) -> Row:
    near, found = _near_and_far(r, x)
    return r.signed(r.select(near, found, r.fma(found, -2.0, pi / 2)), x)


def _acos(r: Reals, x: Row) -> Row:
    """Return pi/2 - asin(x) near 0; else twice asin of the root, or pi less it."""
    near, found = _near_and_far(r, x)
    signed = r.signed(found, x)
    positive = r.bits("lsr", x, r.WIDTH - 1).flags  # set where no bit is left
    twice = r.twice(found)
    far = r.select(r.mask(positive), twice, r.sub(pi, twice))
    return r.select(near, r.sub(pi / 2, signed), far)


FUNCTIONS: tuple[Function, ...] = (
    Function("Atan", of_reals(_atan), UNARY, REALS, FUNCTION),
    Function("Asin", of_reals(_asin), UNARY, REALS, FUNCTION),
    Function("Acos", of_reals(_acos), UNARY, REALS, FUNCTION),
)
