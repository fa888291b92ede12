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

from .doubles import BIAS, EXPONENT, FIELD, FRACTION, ONE, SIGN, Doubles, reciprocal_of_moderate
from .elementwise_function import Call
from .program import Operand, Program, Result, Row, neg

#: The bits of the lower part of a factor.
_LOW = 26
#: The bits of k that need a square each; those above them give a power that is a double.
_SQUARES = 5
#: Of a sum with this number, only multiples of 1 are left.
_WHOLE = 1.5 * 2.0**FIELD


@dataclass(frozen=True)
class _Modulus:
    """Rests by an integer from 2^52 to 2^53."""

    d: Doubles
    value: Result
    inverse: Result

    def rest(self, number: Operand, low: int = 0) -> Result:
        """Return the rest of an integer by m 2^low, which must have 53 bits there."""
        d, value, inverse = self.d, self.value, self.inverse
        if low:
            value, inverse = (
                d.alu("ladd", value, low << FIELD),
                d.alu("lsub", inverse, low << FIELD),
            )
        quotient = d.sub(d.fma(number, inverse, _WHOLE), _WHOLE)
        return d.fma(neg(d.row(quotient)), value, number)

    def product(self, a: Operand, b: Operand) -> Result:
        """Return the rest of a product of a rest with an integer up to 2^53.

        The sums of the first part and its rounding, and of the second part without its last bits,
        are multiples of 2^26 below 2^79.
        """
        d = self.d
        grid, finer = _WHOLE * 2.0**_LOW, _WHOLE * 2.0 ** (_LOW + 1)
        upper = d.sub(d.add(b, grid), grid)
        lower = d.sub(b, upper)
        first = d.mul(a, upper)
        error = d.fma(a, upper, neg(first))
        second = d.sub(d.fma(a, lower, finer), finer)
        last = d.fma(a, lower, neg(second))
        whole = d.add(d.add(self.rest(first, _LOW), error), second)
        return d.add(self.rest(whole), last)


def remainder(p: Program, call: Call) -> Row:
    """Return x - y trunc(x / y), with the sign of x."""
    d = Doubles(p)
    x, y = call.inputs
    field, divisor = d.alu("land", x, EXPONENT), d.alu("land", y, EXPONENT)
    modulus = _integer(d, y)
    by = _Modulus(d, modulus, reciprocal_of_moderate(d, modulus))
    apart = d.alu("lsub", field, divisor)
    first = d.alu("land", d.alu("llsr", apart, _SQUARES), EXPONENT)
    rest = by.rest(d.alu("ladd", first, ONE))
    for place in reversed(range(_SQUARES)):
        bit = d.alu("land", d.alu("llsr", apart, place), 1 << FIELD)
        # A rest of 0 becomes some other small number, but the product is 0.
        rest = by.product(rest, d.alu("ladd", rest, bit))
    rest = by.product(rest, _integer(d, x))
    positive = d.flags("llsr", rest, 63)  # set where no bit is left
    more = d.alu("lxor", modulus, d.keep(positive, modulus))
    made = d.mul(d.mul(d.add(rest, more), 2.0**-FIELD), divisor)
    own = d.magnitude(x)
    reached = p.mask(d.flags("lmax", field, divisor))
    found = d.normal(p.select(reached, made, own))
    return d.alu("lor", found, d.alu("land", x, SIGN))


def _integer(d: Doubles, x: Operand) -> Result:
    """Return the fraction of a number as an integer from 2^52 to 2^53."""
    return d.alu("lor", d.alu("land", x, FRACTION), (BIAS + FIELD) << FIELD)
