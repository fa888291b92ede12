"""Hyperbolic sine and cosine, and the inverses of the hyperbolic functions.

Below 1, acosh gives some number; so does atanh outside of -1 to 1.
"""

from __future__ import annotations

from math import factorial, log

from ...tolerance import FUNCTION
from .activation import ARTANH_OF_HALF, log_of_one_more
from .elementwise_function import REALS, UNARY, Function
from .exponential import exp_bits
from .logarithm import logarithm
from .program import Result, Row
from .reals import Reals, of_reals
from .roots import quotient, reciprocal_of_moderate, square_root

#: Above it, sqrt(x^2 + 1) is x.
_LARGE = 2.0**13, 2.0**28
#: Above it, half of e^x is infinite.
_HIGHEST = 89.5, 710.5

# sinh(t)/t in t^2 for t up to 1: minimax, 2^-34.2; a series, 2^-56.
_SINH = (
    (1.0, 0.1666666642, 0.008333353206, 0.0001983571388, 2.819018793e-6),
    tuple(1.0 / factorial(2 * k + 1) for k in range(9)),
)
# atanh(t)/t as a polynomial in t^2 for t up to 1/2: minimax, 2^-33.3. Of singles.
_ATANH = (
    0.9999999999, 0.3333333711, 0.1999968609, 0.1429558049, 0.1096059535, 0.1031482238,
    0.02371865731, 0.1767505165,
)  # fmt: skip


def _halves(r: Reals, magnitude: Row) -> tuple[Result, Result]:
    """Return half of e^|x| and half of e^-|x|."""
    up = r.normal(exp_bits(r, r.real("min", magnitude, r.own(_HIGHEST)), scale=-1))
    # Where the second is bounded, the first one hides it.
    bounded = r.real("min", up, r.own((2.0**60, 2.0**500)))
    return up, r.mul(reciprocal_of_moderate(r, bounded), 0.25)


def _sinh(r: Reals, x: Row) -> Row:
    magnitude = r.magnitude(x)
    up, down = _halves(r, magnitude)
    near = r.real("min", magnitude, 1.0)
    near = r.mul(near, r.polynomial(r.mul(near, near), r.own(_SINH)))
    return r.signed(r.select(r.up_to(magnitude, 1.0), near, r.sub(up, down)), x)


def _cosh(r: Reals, x: Row) -> Row:
    return r.add(*_halves(r, r.magnitude(x)))


def _log_of_sum(r: Reals, x: Row, root: Row, rest: Row) -> Row:
    """Return log(x + root); ``rest`` is the sum less 1, which is exact where it is below 1.

    Where x is large, root is x.
    """
    most = r.own(_LARGE)
    large = r.real("max", x, most).flags
    # In large arguments the sum may leave the range: log(2 x) is log(x) + log(2).
    total = r.select(r.mask(large), x, r.add(r.real("min", x, most), root))
    far = r.add(logarithm(r, total), r.keep(large, log(2.0)))
    near = log_of_one_more(r, r.real("min", rest, 1.0))
    return r.select(r.up_to(rest, 1.0), near, far)


def _asinh(r: Reals, x: Row) -> Row:
    """Return log(|x| + sqrt(x^2 + 1)), where the root is 1 + x^2 / (1 + root)."""
    magnitude = r.magnitude(x)
    bounded = r.real("min", magnitude, r.own(_LARGE))
    root = square_root(r, r.fma(bounded, bounded, 1.0))
    part = r.mul(bounded, reciprocal_of_moderate(r, r.add(root, 1.0)))
    return r.signed(_log_of_sum(r, magnitude, root, r.fma(bounded, part, bounded)), x)


def _acosh(r: Reals, x: Row) -> Row:
    """Return log(x + sqrt(x^2 - 1)), with t = x - 1 and the root sqrt(t^2 + 2 t)."""
    t = r.sub(r.real("min", x, r.own(_LARGE)), 1.0)
    root = square_root(r, r.mul(t, r.add(t, 2.0)))
    return _log_of_sum(r, x, root, r.add(t, root))


def _atanh(r: Reals, x: Row) -> Row:
    """Return half of log((1 + |x|) / (1 - |x|)), with the sign of x; near 0 a series."""
    magnitude, bound = r.magnitude(x), r.own((0.5, 1 / 3))
    ratio = quotient(r, r.add(magnitude, 1.0), r.normal(r.sub(1.0, magnitude)))
    near = r.real("min", magnitude, bound)
    argument = r.twice(near) if r.wide else near
    series = r.own((_ATANH, ARTANH_OF_HALF[1]))
    near = r.mul(near, r.polynomial(r.mul(argument, argument), series))
    far = r.mul(logarithm(r, ratio), 0.5)
    found = r.select(r.up_to(magnitude, bound), near, far)
    found = r.real("max", found, r.keep(r.real("max", magnitude, 1.0).flags, r.INFINITY))
    return r.signed(found, x)


FUNCTIONS: tuple[Function, ...] = (
    Function("Sinh", of_reals(_sinh), UNARY, REALS, FUNCTION),
    Function("Cosh", of_reals(_cosh), UNARY, REALS, FUNCTION),
    Function("Asinh", of_reals(_asinh), UNARY, REALS, FUNCTION),
    Function("Acosh", of_reals(_acosh), UNARY, REALS, FUNCTION),
    Function("Atanh", of_reals(_atanh), UNARY, REALS, FUNCTION),
)
