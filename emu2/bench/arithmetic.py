"""The machine's arithmetic on whole numpy arrays, bit for bit, for all operands.

Floats have no denormals and no NaN: exponent field 0 is zero, and a field of all ones is an
ordinary number. A sum is rounded once. If a double cannot hold it, the double is rounded to odd.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.unsignedinteger[Any]]
Words = NDArray[np.uint64]
Doubles = NDArray[np.float64]

EXPONENTS = np.uint64(0xFFF << 52)
FRACTION = np.uint64((1 << 52) - 1)
SIGN = np.uint64(1 << 63)

OMITTED_SINGLE = 5  # the products of this many low bits of two significands are not formed
OMITTED_DOUBLE = 16


def power(exponent: int) -> float:
    """Return 2 to the power of `exponent`."""
    return 2.0**exponent


def widen(bits: Bits, exponent: int, fraction: int) -> Doubles:
    """Return the values of floats with this many exponent and fraction bits."""
    wide = bits.astype(np.uint64)
    magnitude = wide & np.uint64((1 << (exponent + fraction)) - 1)
    rebias = 1023 - ((1 << (exponent - 1)) - 1)
    value = (magnitude << np.uint64(52 - fraction)) + np.uint64(rebias << 52)
    value[magnitude < (1 << fraction)] = 0
    value |= (wide >> np.uint64(exponent + fraction)) << np.uint64(63)
    return value.view(np.float64)


def single(bits: Bits) -> Doubles:
    """Return the values of singles."""
    return widen(bits, 8, 23)


def half(bits: Bits) -> Doubles:
    """Return the values of halves."""
    return widen(bits, 6, 9)


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Return the rounded sum and its error."""
    total = a + b
    t = total - a
    return total, (a - (total - t)) + (b - t)


def add_odd(a: Doubles, b: Doubles) -> Doubles:
    """Return the sum rounded to odd: an inexact sum becomes its odd neighbour."""
    total, error = two_sum(a, b)
    bits = total.view(np.uint64)
    inexact = (error != 0).astype(np.uint64)
    beyond = (bits ^ error.view(np.uint64)) >> np.uint64(63)
    odd: Doubles = ((bits - (inexact & beyond)) | inexact).view(np.float64)
    return odd


def to_single(value: Doubles) -> NDArray[np.uint32]:
    """Round to singles: zeros are positive, underflow gives zero, overflow gives infinity."""
    least = power(-126) * (1 - power(-25))
    with np.errstate(over="ignore"):
        rounded = np.where(np.abs(value) < least, 0.0, value).astype(np.float32)
    return (rounded + np.float32(0)).view(np.uint32)


def product(a: Doubles, b: Doubles, omitted: int) -> Doubles:
    """Return the multiplier's products of singles, which doubles hold exactly."""
    kept = ~np.uint64((1 << (29 + omitted)) - 1)
    low_a = a - (a.view(np.uint64) & kept).view(np.float64)
    low_b = b - (b.view(np.uint64) & kept).view(np.float64)
    low = low_a * low_b
    unit = (a.view(np.uint64) & EXPONENTS).view(np.float64)
    unit = unit * (b.view(np.uint64) & EXPONENTS).view(np.float64)
    stand_in = np.where(low == 0, 0.0, unit * power(2 * omitted - 2 - 46))
    return a * b - low + stand_in


def fma_single(x: Bits, y: Bits, z: Bits) -> NDArray[np.uint32]:
    """Return x*y + z on singles."""
    return to_single(add_odd(product(single(x), single(y), OMITTED_SINGLE), single(z)))


def fma_half(x: Bits, y: Bits, z: Bits) -> NDArray[np.uint32]:
    """Return x*y + z; factors are halves, addend and result are singles."""
    return to_single(add_odd(half(x) * half(y), single(z)))


def split(a: Doubles) -> tuple[Doubles, Doubles]:
    """Return two halves of the significand, 26 bits each."""
    t = a * (power(27) + 1)
    high = t - (t - a)
    return high, a - high


def fma_double(x: Words, y: Words, z: Words) -> Words:
    """Return x*y + z on doubles.

    The product is formed as two doubles and corrected for the part that the multiplier omits. The
    sum of three doubles is rounded to odd before its last addition (Boldo and Melquiond). Lanes
    near the ends of the exponent range are computed one by one.
    """
    a, b, c = (
        np.where((v & EXPONENTS) << np.uint64(1) == 0, 0.0, v.view(np.float64)) for v in (x, y, z)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        high = a * b
        (ah, al), (bh, bl) = split(a), split(b)
        low = ((ah * bh - high) + ah * bl + al * bh) + al * bl
        kept = ~np.uint64((1 << OMITTED_DOUBLE) - 1)
        dropped = a - (a.view(np.uint64) & kept).view(np.float64)
        dropped = dropped * (b - (b.view(np.uint64) & kept).view(np.float64))
        unit = (a.view(np.uint64) & EXPONENTS).view(np.float64)
        unit = unit * (b.view(np.uint64) & EXPONENTS).view(np.float64)
        stand_in = np.where(dropped == 0, 0.0, unit * power(2 * OMITTED_DOUBLE - 2 - 104))
        low = low - dropped + stand_in
        sum_high, sum_low = two_sum(c, low)
        top, rest = two_sum(high, sum_high)
        result = top + add_odd(rest, sum_low)
    out = (result + 0.0).view(np.uint64)
    sizes = np.abs([a, b, c, result])
    usual = ((sizes == 0) | ((sizes > power(-400)) & (sizes < power(400)))).all(axis=0)
    for at in np.argwhere(~usual):
        k = tuple(at)
        out[k] = fma_double_exactly(int(x[k]), int(y[k]), int(z[k]))
    return out


def fma_double_exactly(x: int, y: int, z: int) -> int:
    """Return the bits of x*y + z on doubles, computed with integers."""

    def parts(bits: int) -> tuple[int, int, int]:
        field = bits >> 52 & 0x7FF
        return -1 if bits >> 63 else 1, field, bits & int(FRACTION) | 1 << 52 if field else 0

    (sx, ex, mx), (sy, ey, my), (sz, ez, mz) = parts(x), parts(y), parts(z)
    mask = (1 << OMITTED_DOUBLE) - 1
    low = (mx & mask) * (my & mask)
    formed = mx * my - low + ((1 << 2 * OMITTED_DOUBLE - 2) if low else 0)
    total = sx * sy * formed * Fraction(2) ** (ex + ey - 2 * 1075)
    total += sz * mz * Fraction(2) ** (ez - 1075)
    if total == 0:
        return 0
    size = abs(total)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    significand = round(size * Fraction(2) ** (52 - exponent))
    if significand >> 53:
        significand, exponent = significand >> 1, exponent + 1
    field, sign = exponent + 1023, int(total < 0) << 63
    if field <= 0:
        return 0
    return (
        sign | 0x7FF << 52 if field >= 0x7FF else sign | field << 52 | significand & int(FRACTION)
    )


def sum_doubles(x: Words, axis: int) -> Words:
    """Return one stage of a sum of doubles over `axis`, aligned with three guard bits."""
    field = ((x >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    top = field.max(axis=axis, keepdims=True)
    significand = ((x & FRACTION | np.uint64(1 << 52)) << np.uint64(3)).astype(np.int64)
    significand[field == 0] = 0
    shift = np.minimum(top - field, 58)
    floor = significand >> shift
    rest = significand - (floor << shift)
    middle = (np.int64(1) << shift) >> 1
    aligned = floor + ((rest > middle) | ((rest == middle) & (shift != 0) & (floor & 1 == 1)))
    total = np.where(x & SIGN, -aligned, aligned).sum(axis=axis)
    # The conversion to double rounds the sum and may raise its exponent.
    bits = total.astype(np.float64).view(np.uint64)
    place = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64) + top.squeeze(axis) - 1078
    out = place.astype(np.uint64) << np.uint64(52) | bits & FRACTION
    out = np.where(place >= 0x7FF, np.uint64(0x7FF << 52), out) | bits & SIGN
    return np.where((place <= 0) | (total == 0), np.uint64(0), out)


def sum_singles(x: Bits, axis: int) -> NDArray[np.uint32]:
    """Return one stage of a sum of singles over `axis`."""
    field = ((x >> np.uint32(23)) & np.uint32(0xFF)).max(axis=axis, keepdims=True)
    # Near `aligner`, doubles are multiples of the last guard bit, so adding it rounds to that bit.
    place = field.astype(np.uint64) + np.uint64(1023 + 52 - 127 - 23 - 3)
    aligner = (place << np.uint64(52) | np.uint64(1 << 51)).view(np.float64)
    return to_single((single(x) + aligner - aligner).sum(axis=axis))


def block(bits: Bits, exponent: int, fraction: int) -> tuple[Doubles, Doubles]:
    """Return the signed mantissas of block floats and the value of their last bit."""
    wide = bits.astype(np.uint64)
    field = (wide >> np.uint64(fraction)) & np.uint64((1 << exponent) - 1)
    place = field + np.uint64(1023 - ((1 << (exponent - 1)) - 1) - (fraction - 1))
    mantissa = (wide & np.uint64((1 << fraction) - 1)).astype(np.float64)
    negative = (wide >> np.uint64(exponent + fraction)) != 0
    return np.where(negative, -mantissa, mantissa), (place << np.uint64(52)).view(np.float64)
