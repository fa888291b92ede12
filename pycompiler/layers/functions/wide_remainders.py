"""The remainder of a division of doubles, exact over their whole range.

The fractions of both numbers count as integers: that of the divisor is the modulus m, from 2^52 to
2^53. So the remainder is that of the other fraction times 2^k, where k is the difference of the
exponents. The rest of 2^k by m is found as powers are: from the first bits of k, by a square for
each other bit, doubled where the bit is set. All rests lie from -m/2 to m/2, but for 2^-22 of it.

The multiplier forms a product exactly if one of its factors has 37 bits or fewer. So a factor is
cut in two, and quotients have 28 bits at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from .program import Operand, Result, Row
from .reals import Reals
from .roots import reciprocal_of_moderate

#: The bits of the lower part of a factor.
_LOW = 26
#: The bits of k that need a square each; those above them give a power that is a double.
_SQUARES = 5
#: Of a sum with this number, only multiples of 1 are left.
_WHOLE = 1.5 * 2.0**52


@dataclass(frozen=True)
class _Modulus:
    """Rests by an integer from 2^52 to 2^53."""

    r: Reals
    value: Result
    inverse: Result

    def rest(self, number: Operand, low: int = 0) -> Result:
        """Return the rest of an integer by m 2^low, which must have 53 bits there."""
        r, value, inverse = self.r, self.value, self.inverse
        if low:
            value = r.bits("add", value, low << r.FIELD)
            inverse = r.bits("sub", inverse, low << r.FIELD)
        quotient = r.sub(r.fma(number, inverse, _WHOLE), _WHOLE)
        return r.fma(r.neg(quotient), value, number)

    def product(self, a: Operand, b: Operand) -> Result:
        """Return the rest of a product of a rest with an integer up to 2^53.

        The sums of the first part and its rounding, and of the second part without its last bits,
        are multiples of 2^26 below 2^79.
        """
        r = self.r
        grid, finer = _WHOLE * 2.0**_LOW, _WHOLE * 2.0 ** (_LOW + 1)
        upper = r.sub(r.add(b, grid), grid)
        lower = r.sub(b, upper)
        first = r.mul(a, upper)
        error = r.fma(a, upper, r.neg(first))
        second = r.sub(r.fma(a, lower, finer), finer)
        last = r.fma(a, lower, r.neg(second))
        whole = r.add(r.add(self.rest(first, _LOW), error), second)
        return r.add(self.rest(whole), last)


def remainder(r: Reals, x: Row, y: Row) -> Row:
    """Return x - y trunc(x / y), with the sign of x."""
    field, divisor = r.bits("and", x, r.EXPONENT), r.bits("and", y, r.EXPONENT)
    modulus = _integer(r, y)
    by = _Modulus(r, modulus, reciprocal_of_moderate(r, modulus))
    apart = r.bits("sub", field, divisor)
    first = r.bits("and", r.bits("lsr", apart, _SQUARES), r.EXPONENT)
    rest = by.rest(r.bits("add", first, r.ONE))
    for place in reversed(range(_SQUARES)):
        bit = r.bits("and", r.bits("lsr", apart, place), 1 << r.FIELD)
        # A rest of 0 becomes some other small number, but the product is 0.
        rest = by.product(rest, r.bits("add", rest, bit))
    rest = by.product(rest, _integer(r, x))
    positive = r.bits("lsr", rest, r.WIDTH - 1).flags  # set where no bit is left
    more = r.bits("xor", modulus, r.keep(positive, modulus))
    made = r.mul(r.mul(r.add(rest, more), 2.0**-r.FIELD), divisor)
    own = r.magnitude(x)
    reached = r.mask(r.bits("max", field, divisor).flags)
    return r.signed(r.normal(r.select(reached, made, own)), x)


def _integer(r: Reals, x: Operand) -> Result:
    """Return the fraction of a number as an integer from 2^52 to 2^53."""
    return r.bits("or", r.bits("and", x, r.FRACTION), (r.BIAS + r.FIELD) << r.FIELD)
