"""Functions of single elements that torch's exporter does not know, in operators that it knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

_ATEN = torch.ops.aten
Operand = torch.Tensor | float


def _extreme_of_numbers(pick: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Any:
    """Return fmax or fmin: of a number and a NaN, they give the number."""

    def made_of(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        found = pick(a, b)
        if not found.is_floating_point():
            return found
        return torch.where(a != a, b, torch.where(b != b, a, found))

    return made_of


def _hypot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return sqrt(a² + b²); the larger operand is a factor, so that no square overflows."""
    a, b = a.abs(), b.abs()
    large, small = torch.maximum(a, b), torch.minimum(a, b)
    ratio = small / torch.where(large == 0, torch.ones_like(large), large)
    return large * torch.sqrt(1 + ratio * ratio)


def _angle(x: torch.Tensor) -> torch.Tensor:
    """Return 0 or pi for a real number, and NaN for a NaN.

    The exporter's form gives complex numbers below zero -pi, and zero any angle.
    """
    if x.is_complex():
        return torch.atan2(x.imag, x.real)
    x = _floats(x)
    found = torch.where(x < 0, torch.full_like(x, math.pi), torch.zeros_like(x))
    return torch.where(x != x, x, found)


def _copysign(magnitude: torch.Tensor, sign: Operand) -> torch.Tensor:
    """Return the magnitude with the sign of a number."""
    if not isinstance(sign, torch.Tensor):
        size = _floats(magnitude).abs()
        return -size if math.copysign(1.0, sign) < 0 else size
    magnitude, sign = _both(magnitude, sign)
    size = magnitude.abs()
    return _turned(size, _signbit(sign))


def _turned(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Change the signs of some numbers, by a product: onnxruntime's choices have no -0."""
    return x * (1.0 - 2.0 * turns.to(x.dtype))


def _signbit(x: torch.Tensor) -> torch.Tensor:
    """Whether a number is below 0 or -0; the inverse of -0 is an infinity with its sign."""
    if not x.is_floating_point():
        return x < 0 if x.dtype != torch.bool else torch.zeros_like(x)
    return torch.where(x == 0, x.reciprocal(), x) < 0


def _frexp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mantissas from 0.5 to below 1, and exponents."""
    size = x.abs()
    plain = (size > 0) & (size < math.inf)
    known = torch.where(plain, size, torch.ones_like(size))
    exponent = torch.floor(torch.log2(known)) + 1
    mantissa = _scaled(known, -exponent)
    # The logarithm may round across a whole number.
    exponent = torch.where(mantissa >= 1, exponent + 1, exponent)
    exponent = torch.where(mantissa < 0.5, exponent - 1, exponent)
    exponent = torch.where(plain, exponent, torch.zeros_like(exponent))
    return _scaled(x, -exponent), exponent.to(torch.int32)


def _scaled(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Return ``x`` times a power of two, which may lie beyond the range of its type."""
    half = torch.floor(exponent * 0.5)
    return x * torch.pow(2.0, half) * torch.pow(2.0, exponent - half)


def polynomial(x: torch.Tensor, coefficients: Sequence[float]) -> torch.Tensor:
    """Return the polynomial with those coefficients, the highest power first."""
    found = torch.full_like(x, coefficients[0])
    for one in coefficients[1:]:
        found = found * x + one
    return found


#: B(2n) / 2n for n from 8 down to 1: the asymptotic series of digamma.
_BERNOULLI = (
    -3617 / 8160, 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12,
)  # fmt: skip
#: Below this argument and half, the series has not the digits of a double.
_SHIFTS = 8


def digamma(x: torch.Tensor) -> torch.Tensor:
    """Return the logarithmic derivative of the gamma function."""
    low = x < 0.5
    y = torch.where(low, 1 - x, x)
    found = torch.zeros_like(y)
    for step in range(_SHIFTS):
        found = found - 1 / (y + step)
    y = y + _SHIFTS
    square = 1 / (y * y)
    found = found + torch.log(y) - 0.5 / y - square * polynomial(square, _BERNOULLI)
    # The reflection: the argument of the tangent is reduced first, which is exact.
    part = x - torch.round(x)
    tangent = torch.tan(math.pi * torch.where(low, part, torch.full_like(part, 0.25)))
    found = torch.where(low, found - math.pi / tangent, found)
    found = torch.where(low & (part == 0), torch.full_like(found, math.nan), found)
    return torch.where(x == 0, torch.full_like(found, -math.inf), found)


#: Giles, Approximating the erfinv function, 2012: for w < 5, and for larger w.
_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def erfinv(x: torch.Tensor) -> torch.Tensor:
    """Return the inverse of the error function."""
    inside = x.abs() < 1
    known = torch.where(inside, x, torch.zeros_like(x))
    w = -torch.log((1 - known) * (1 + known))
    if x.dtype == torch.float64:
        return torch.where(inside, _erfinv_of_doubles(known, w), _edge_of_erfinv(x))
    near = polynomial(w - 2.5, _NEAR)
    far = polynomial(torch.sqrt(torch.clamp(w, min=5.0)) - 3, _FAR)
    found = torch.where(w < 5, near, far) * known
    return torch.where(inside, found, _edge_of_erfinv(x))


def _edge_of_erfinv(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() == 1, x * math.inf, torch.full_like(x, math.nan))


def _erfinv_of_doubles(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return Winitzki's approximation, which two steps of Halley make exact."""
    a = 0.147
    half = 2 / (math.pi * a) - 0.5 * w
    found = torch.sqrt(torch.sqrt(half * half + w / a) - half)
    found = torch.where(x < 0, -found, found)
    for _ in range(2):
        off = (torch.erf(found) - x) * (0.5 * math.sqrt(math.pi)) * torch.exp(found * found)
        found = found - off / (1 + found * off)
    return torch.where(x.abs() < 1e-8, x * (0.5 * math.sqrt(math.pi)), found)


def _floats(x: torch.Tensor) -> torch.Tensor:
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of floats take whole numbers too."""

    def made_of(*args: Any, **kwargs: Any) -> Any:
        return function(*(_floats(x) if isinstance(x, torch.Tensor) else x for x in args), **kwargs)

    return made_of


def _expm1(x: torch.Tensor) -> torch.Tensor:
    """Return exp(x) - 1. Elu has it for negative x; expm1(x) = -expm1(-x) exp(x)."""
    if x.dtype == torch.float64:
        near = x.abs() < 1
        half = torch.tanh(0.5 * torch.where(near, x, torch.zeros_like(x)))
        return torch.where(near, 2 * half / (1 - half), torch.exp(x) - 1)
    below = torch.nn.functional.elu(-x.abs())
    return torch.where(x < 0, below, -below * torch.exp(x))


def _both(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors in the element type of the result, which is one of floats."""
    kind = torch.result_type(a, b)
    kind = kind if kind.is_floating_point else torch.get_default_dtype()
    return a.to(kind), b.to(kind)


def log1p(x: torch.Tensor) -> torch.Tensor:
    """Return log(1 + x); near 0 as 2 atanh(x / (2 + x)), where 1 + x would lose digits of x."""
    near = x.abs() < 0.5
    if x.dtype == torch.float64:  # the device has no atanh of doubles
        sum_ = 1 + x
        lost = sum_ == 1
        kept = torch.where(near & ~lost, sum_ - 1, torch.ones_like(x))
        found = torch.log(sum_) * torch.where(near, x / kept, torch.ones_like(x))
        return torch.where(lost, x, found)
    ratio = torch.where(near, x, torch.zeros_like(x))
    found = torch.where(near, 2 * torch.atanh(ratio / (2 + ratio)), torch.log(1 + x))
    return torch.where(x.abs() < 2.0**-24, x, found)  # half of the smallest numbers is 0


def _soft_margin_loss(x: torch.Tensor, target: torch.Tensor, reduction: int = 1) -> torch.Tensor:
    """Return the loss; torch's kernel rounds each step, so that the powers of halves overflow."""
    power, wide = -x * target, torch.promote_types(x.dtype, torch.float32)
    each = log1p(torch.exp(power.to(wide)))
    if x.dtype == torch.float16:
        each = torch.where(power > math.log(65520), math.inf, each)
    return (each, each.mean(), each.sum())[reduction].to(x.dtype)


def _logaddexp(base: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the logarithm of a sum of powers; the larger one is a factor, so nothing overflows."""
    scale = math.log(base)

    def made_of(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = _both(a, b)
        apart = torch.where(a == b, torch.zeros_like(a), (a - b).abs())
        return torch.maximum(a, b) + torch.nn.functional.softplus(-scale * apart) / scale

    return made_of


def _atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the angle of a point. A zero has the angle of its sign."""
    y, x = _both(y, x)
    up, across = y.abs(), x.abs()
    large, small = torch.maximum(up, across), torch.minimum(up, across)
    one = torch.ones_like(large)
    ratio = torch.where(small == large, one, small / torch.where(large == 0, one, large))
    angle = torch.atan(torch.where(large == 0, large, ratio))
    angle = torch.where(up > across, math.pi / 2 - angle, angle)
    angle = torch.where(_signbit(x), math.pi - angle, angle)
    return _turned(angle, _signbit(y))


def in_singles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute short floats as singles, and round the results."""
    short = (torch.float16, torch.bfloat16)

    def made_of(*args: Any, **kwargs: Any) -> Any:
        kinds = [x.dtype for x in args if isinstance(x, torch.Tensor) and x.dtype in short]
        if not kinds:
            return function(*args, **kwargs)
        whole = [x.float() if getattr(x, "dtype", None) in short else x for x in args]
        kind = kinds[0] if len(set(kinds)) == 1 else torch.float32
        floats = (torch.float32, torch.float64)
        if any(getattr(x, "dtype", None) in floats and x.ndim for x in args):
            return function(*whole, **kwargs)
        found = function(*whole, **kwargs)
        parts = found if isinstance(found, tuple) else (found,)
        made = tuple(x.to(kind) if x.dtype == torch.float32 else x for x in parts)
        return made if isinstance(found, tuple) else made[0]

    return made_of


ELEMENTWISE: dict[Any, Callable[..., Any]] = {
    _ATEN.fmax.default: _extreme_of_numbers(torch.maximum),
    _ATEN.fmin.default: _extreme_of_numbers(torch.minimum),
    _ATEN.hypot.default: _hypot,
    _ATEN.angle.default: _angle,
    _ATEN.copysign.Tensor: _copysign,
    _ATEN.copysign.Scalar: _copysign,
    _ATEN.signbit.default: _signbit,
    _ATEN.frexp.Tensor: _frexp,
    _ATEN.expm1.default: of_floats(_expm1),
    _ATEN.log1p.default: of_floats(log1p),
    _ATEN.logaddexp.default: _logaddexp(math.e),
    _ATEN.logaddexp2.default: _logaddexp(2),
    _ATEN.atan2.default: _atan2,
    _ATEN.digamma.default: of_floats(digamma),
    _ATEN.erfinv.default: of_floats(erfinv),
}
ELEMENTWISE = {op: in_singles(function) for op, function in ELEMENTWISE.items()}
# It rounds short floats at each step, as torch does.
ELEMENTWISE[_ATEN.soft_margin_loss.default] = _soft_margin_loss
