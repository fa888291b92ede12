"""Special functions that torch's exporter does not know, by polynomials.

Abramowitz and Stegun, Handbook of Mathematical Functions, 9.8; errors are some 2e-7 of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from .elementwise import digamma, in_singles, of_floats, polynomial
from .series import coefficients, summed

_ATEN = torch.ops.aten
_EDGE = 3.75

_I0_NEAR = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
_I0_FAR = (
    0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281,
    -0.00157565, 0.00225319, 0.01328592, 0.39894228,
)  # fmt: skip
_I1_NEAR = (0.00032411, 0.00301532, 0.02658733, 0.15084934, 0.51498869, 0.87890594, 0.5)
_I1_FAR = (
    -0.00420059, 0.01787654, -0.02895312, 0.02282967, -0.01031555,
    0.00163801, -0.00362018, -0.03988024, 0.39894228,
)  # fmt: skip


#: Up to this size, the series of doubles is one in the number, then one in its inverse.
_MIDDLE_OF_BESSEL = 8.0


def _scaled_bessel(size: torch.Tensor, scaled: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return exp(-x) times a modified Bessel function of doubles from 0 on."""
    edge = _MIDDLE_OF_BESSEL
    small, large = size.clamp(max=edge), size.clamp(min=edge)
    inner = summed(small * (2 / edge) - 1, _of_bessel(scaled, False))
    outer = summed(2 * edge / large - 1, _of_bessel(scaled, True)) / torch.sqrt(large)
    return torch.where(size < edge, inner, outer)


@cache
def _of_bessel(scaled: Callable[[torch.Tensor], torch.Tensor], far: bool) -> tuple[float, ...]:
    edge = _MIDDLE_OF_BESSEL

    def outside(t: torch.Tensor) -> torch.Tensor:
        x = 2 * edge / (t + 1)
        return torch.sqrt(x) * scaled(x)

    return coefficients(outside if far else lambda t: scaled((t + 1) * (edge / 2)), 32)


def _bessel(near: Any, far: Any, odd: bool, scaled: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a modified Bessel function, with the factor exp(-|x|) if ``scaled``."""

    def made_of(x: torch.Tensor) -> torch.Tensor:
        size = x.abs()
        if x.dtype == torch.float64:
            found = _scaled_bessel(size, torch.special.i1e if odd else torch.special.i0e)
            if not scaled:
                half = torch.exp(0.5 * size)
                found = found * half * half
            return torch.where(x < 0, -found, found) if odd else found
        small, large = size.clamp(max=_EDGE), size.clamp(min=_EDGE)
        square = (small / _EDGE) * (small / _EDGE)
        inner, outer = polynomial(square, near), polynomial(_EDGE / large, far)
        if odd:
            inner = inner * small
        outer = outer / torch.sqrt(large)
        if scaled:
            inner = inner * torch.exp(-small)
        else:  # in two steps: the power alone overflows before the result does
            half = torch.exp(0.5 * large)
            outer = outer * half * half
        found = torch.where(size < _EDGE, inner, outer)
        return torch.where(x < 0, -found, found) if odd else found

    return made_of


#: B(2n) / (2n (2n - 1)) for n from 8 down to 1: Stirling's series.
_STIRLING = (
    -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12,
)  # fmt: skip
_SHIFTS = 8


def _lgamma(x: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of the size of the gamma function."""
    low = x < 0.5
    y = torch.where(low, 1 - x, x)
    small = y < _SHIFTS
    known, factors = y.clamp(max=_SHIFTS), torch.ones_like(y)
    for step in range(_SHIFTS):
        factors = factors * (known + step)
    y = torch.where(small, y + _SHIFTS, y)
    series = polynomial(1 / (y * y), _STIRLING) / y
    # (y - 1/2) log y - y, without a product that overflows before the result does
    found = (y - 0.5) * (torch.log(y) - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + series
    found = torch.where(small, found - torch.log(factors), found)
    # The reflection: the argument of the sine is reduced first, which is exact.
    part = (x - torch.round(x)).abs()
    sine = torch.sin(math.pi * torch.where(low, part, torch.full_like(part, 0.25)))
    return torch.where(low, math.log(math.pi) - torch.log(sine) - found, found)


def _sinc(x: torch.Tensor) -> torch.Tensor:
    """Return sin(pi x) / (pi x); the argument of the sine is reduced first, which is exact."""
    zero, whole = x == 0, torch.round(x)
    known = torch.where(zero, torch.ones_like(x), x)
    half = 0.5 * whole
    sine = torch.sin(math.pi * (x - whole))
    sine = torch.where(torch.floor(half) == half, sine, -sine)
    return torch.where(zero, torch.ones_like(x), sine / known * (1 / math.pi))


def _spherical_bessel_j0(x: torch.Tensor) -> torch.Tensor:
    zero = x == 0
    known = torch.where(zero, torch.ones_like(x), x)
    return torch.where(zero, torch.ones_like(x), torch.sin(known) / known)


#: B(2n) / (2n)! for n from 1: the Euler-Maclaurin formula.
_EULER = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
_TERMS = 16


def _hurwitz(order: int, x: torch.Tensor) -> torch.Tensor:
    """Return the sum of (x + k)^-order over all k, for x of 0.5 and more."""
    found = torch.zeros_like(x)
    for step in range(_TERMS):
        found = found + (1 / (x + step)) ** order
    y = x + _TERMS
    inverse = 1 / y
    power = inverse ** (order - 1)
    found = found + power / (order - 1) + 0.5 * power * inverse
    rising, power = float(order), power * inverse * inverse
    for step, factor in enumerate(_EULER):
        found = found + factor * rising * power
        rising *= (order + 2 * step + 1) * (order + 2 * step + 2)
        power = power * inverse * inverse
    return found


def _turned(order: int, x: torch.Tensor) -> torch.Tensor:
    """Return the derivative of pi cot(pi x): a polynomial in the cotangent."""
    powers = [0.0, math.pi]
    for _ in range(order):
        slopes = [power * factor for power, factor in enumerate(powers)][1:]
        following = [0.0] * (len(slopes) + 2)
        for power, slope in enumerate(slopes):
            following[power] -= math.pi * slope
            following[power + 2] -= math.pi * slope
        powers = following
    return polynomial(1 / torch.tan(math.pi * x), powers[::-1])


def _polygamma(order: int, x: torch.Tensor) -> torch.Tensor:
    """Return a derivative of digamma."""
    if order == 0:
        return digamma(x)
    low, sign = x < 0.5, -1.0 if order % 2 == 0 else 1.0
    found = sign * math.factorial(order) * _hurwitz(order + 1, torch.where(low, 1 - x, x))
    part = x - torch.round(x)
    turned = _turned(order, torch.where(low, part, torch.full_like(part, 0.25)))
    return torch.where(low, -sign * found - turned, found)


#: Press et al., Numerical Recipes, erfcc: the logarithm of erfcx / t for t = 1 / (1 + x / 2).
_ERFCX = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
    -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
)  # fmt: skip


def _exp_of_square(x: torch.Tensor, sign: float) -> torch.Tensor:
    """Return exp(x²) or exp(-x²). The square of a few bits is exact, the rest is a small factor."""
    few = torch.round(x * 16) * (1 / 16)
    rest = (x - few) * (x + few)
    return torch.exp(sign * few * few) * torch.exp(sign * rest)


def _most(x: torch.Tensor) -> float:
    """Return a number whose square no exponential of the element type holds."""
    return 27.0 if x.dtype == torch.float64 else 16.0


def _erfcx_on_unit(t: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = torch.special.erfcx(4 * (1 + t) / (1 - t))
    return found


def _erfcx_of(size: torch.Tensor) -> torch.Tensor:
    if size.dtype == torch.float64:
        return summed((size - 4) / (size + 4), coefficients(_erfcx_on_unit, 48))
    t = 1 / (1 + 0.5 * size)
    return t * torch.exp(polynomial(t, _ERFCX))


def _erfcx(x: torch.Tensor) -> torch.Tensor:
    """Return exp(x²) erfc(x)."""
    found = _erfcx_of(x.abs())
    return torch.where(x < 0, 2 * _exp_of_square(x.clamp(-_most(x), 0.0), 1.0) - found, found)


def _erfc(x: torch.Tensor) -> torch.Tensor:
    """Return 1 - erf(x), with as many digits where it is small."""
    begin = 0.5
    large = x.clamp(begin, _most(x))
    far = _erfcx_of(large) * _exp_of_square(large, -1.0)
    return torch.where(x > begin, far, 1 - torch.erf(x))


def _ndtr(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * _erfc(-math.sqrt(0.5) * x)


#: Wichura, Algorithm AS 241, PPND7: numerators and denominators near 1/2, farther out, and far out.
_MIDDLE = (59.109374720, 159.29113202, 50.434271938, 3.3871327179)
_MIDDLE_BELOW = (67.187563600, 78.757757664, 17.895169469, 1.0)
_OUTER = (0.17023821103, 1.3067284816, 2.7568153900, 1.4234372777)
_OUTER_BELOW = (0.12021132975, 0.73700164250, 1.0)
_TAIL = (0.017337203997, 0.42868294337, 3.0812263860, 6.6579051150)
_TAIL_BELOW = (0.012258202635, 0.24197894225, 1.0)
_SPLIT, _NEAR_TAIL = 0.425, 5.0


def _ndtri(x: torch.Tensor) -> torch.Tensor:
    """Return the point below which a normal variable lies with this probability."""
    known, x = x, torch.minimum(x, 1 - x) if x.dtype == torch.float64 else x
    q, inside = x - 0.5, (x > 0) & (x < 1)
    square = _SPLIT * _SPLIT - q * q
    middle = q * polynomial(square, _MIDDLE) / polynomial(square, _MIDDLE_BELOW)
    rest = torch.where(inside, torch.minimum(x, 1 - x), torch.full_like(x, 0.5))
    r = torch.sqrt(-torch.log(rest))
    outer, far = r - 1.6, r - _NEAR_TAIL
    outer = polynomial(outer, _OUTER) / polynomial(outer, _OUTER_BELOW)
    far = polynomial(far, _TAIL) / polynomial(far, _TAIL_BELOW)
    found = torch.where(r <= _NEAR_TAIL, outer, far)
    found = torch.where(q < 0, -found, found)
    found = torch.where(q.abs() <= _SPLIT, middle, found)
    if x.dtype == torch.float64:
        for _ in range(2):
            off = (_ndtr(found) - x) * math.sqrt(2 * math.pi) * torch.exp(0.5 * found * found)
            found = found - off / (1 + 0.5 * found * off)
        found, x = torch.where(known > 0.5, -found, found), known
        inside = (x > 0) & (x < 1)
    ends = torch.where(x == 0, -math.inf, torch.where(x == 1, math.inf, math.nan)).to(x.dtype)
    return torch.where(inside, found, ends)


def _uniform(
    x: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None
) -> torch.Tensor:
    return low + (high - low) * torch.rand_like(x)


SPECIAL: dict[Any, Callable[..., Any]] = {
    _ATEN.i0.default: _bessel(_I0_NEAR, _I0_FAR, odd=False, scaled=False),
    _ATEN.special_modified_bessel_i0.default: _bessel(_I0_NEAR, _I0_FAR, False, False),
    _ATEN.special_i0e.default: _bessel(_I0_NEAR, _I0_FAR, odd=False, scaled=True),
    _ATEN.special_i1.default: _bessel(_I1_NEAR, _I1_FAR, odd=True, scaled=False),
    _ATEN.special_modified_bessel_i1.default: _bessel(_I1_NEAR, _I1_FAR, True, False),
    _ATEN.special_i1e.default: _bessel(_I1_NEAR, _I1_FAR, odd=True, scaled=True),
    _ATEN.lgamma.default: _lgamma,
    _ATEN.special_erfcx.default: _erfcx,
    _ATEN.erfc.default: _erfc,
    _ATEN.special_ndtr.default: _ndtr,
    _ATEN.special_ndtri.default: _ndtri,
    _ATEN.uniform.default: _uniform,
    _ATEN.polygamma.default: _polygamma,
    _ATEN.sinc.default: _sinc,
    _ATEN.special_spherical_bessel_j0.default: _spherical_bessel_j0,
}
SPECIAL = {op: in_singles(of_floats(function)) for op, function in SPECIAL.items()}
