"""Functions of doubles: the same methods as for singles, with more iterations and longer series.

A product of doubles takes two instructions, because half of the PEs of a MAB multiply in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

from .elementwise_function import DOUBLE, Build, Call
from .program import Flags, Operand, Program, Result, Row, Source, double, horner, long, neg

FIELD, BIAS = 52, 1023
SIGN = 1 << 63
MAGNITUDE = SIGN - 1
EXPONENT = 0x7FF << FIELD
FRACTION = (1 << FIELD) - 1
ONE = BIAS << FIELD
LARGEST = EXPONENT - 1
SMALLEST = 2.0**-1022


@dataclass(frozen=True)
class Doubles:
    """Instructions of a program on doubles; a float stands for a double, an int for 64 bits."""

    p: Program

    def row(self, operand: Operand) -> Source:
        """Return an operand as a source."""
        if isinstance(operand, float):
            return Source(double(operand))
        return Source(long(operand)) if isinstance(operand, int) else Program.row(operand)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Result:
        """Return ``a * b + c``, rounded once."""
        a, b = self.row(a), self.row(b)
        upper = self.p.op("mau", "dvfmau", a, b, self.row(c))
        return self.p.op("mau", "dvfmad", a, b, upper)

    def mul(self, a: Operand, b: Operand) -> Result:
        """Return ``a * b``."""
        a, b = self.row(a), self.row(b)
        return self.p.op("mau", "dvfmad", a, b, self.p.op("mau", "dvmulu", a, b))

    def add(self, a: Operand, b: Operand) -> Result:
        """Return ``a + b``."""
        return self.p.op("mau", "dvadd", self.row(a), self.row(b))

    def sub(self, a: Operand, b: Operand) -> Result:
        """Return ``a - b``."""
        return self.add(a, neg(self.row(b)))

    def normal(self, a: Operand) -> Result:
        """Return ``a`` with positive zeros; numbers below the smallest double become 0."""
        return self.p.op("mau", "dvpassa", self.row(a))

    def polynomial(self, x: Operand, coefficients: Sequence[float]) -> Result:
        """Return ``c0 + c1 x + c2 x^2 ...`` by Horner's rule; at least two coefficients."""
        return horner(self.fma, x, coefficients)

    def alu(self, mnemonic: str, *operands: Operand) -> Result:
        """Return the result of an ALU instruction."""
        return self.p.alu(mnemonic, *map(self.row, operands))

    def flags(self, mnemonic: str, *operands: Operand) -> Flags:
        """Return the flags of an ALU instruction."""
        return Flags(self.alu(mnemonic, *operands).index)

    def keep(self, flags: Flags, a: Operand) -> Result:
        """Return ``a`` where the flag is set, 0 elsewhere."""
        return self.p.keep(flags, self.row(a))

    def magnitude(self, x: Operand) -> Result:
        """Return ``|x|``."""
        return self.alu("land", x, MAGNITUDE)

    def of_small(self, x: Operand) -> Result:
        """Convert 64-bit integers of magnitude below 2^51, exactly."""
        magic = 1.5 * 2.0**FIELD
        return self.sub(self.alu("ladd", x, double(magic)), magic)


def by_dtype(single: Build, wide: Build) -> Build:
    """Return the program of singles, or that of doubles, by the dtype of the last input."""
    return lambda p, call: (wide if call.dtypes[-1] is DOUBLE else single)(p, call)


# -- quotients and roots ---------------------------------------------------------------------------

# As for singles: this constant minus the bits of x is 1/x within 12.2 %.
_RECIPROCAL_START = 0x7FDE623822FC16E6


def reciprocal_of_moderate(d: Doubles, x: Operand) -> Result:
    """Return 1/x for magnitudes between 2^-1020 and 2^1020, within 2^-52."""
    y = d.alu("lsub", _RECIPROCAL_START, x)
    for _ in range(3):
        y = d.fma(y, d.fma(neg(d.row(x)), y, 1.0), y)
    rest = d.fma(neg(d.row(x)), y, 1.0)
    return d.fma(y, d.fma(rest, rest, rest), y)


def quotient(d: Doubles, a: Operand, b: Row) -> Result:
    """Return a / b, over the whole range."""
    y = reciprocal_of_moderate(d, d.alu("lor", d.alu("land", b, SIGN | FRACTION), ONE))
    # The steps are those of `roots.quotient`.
    field = d.alu("land", b, EXPONENT)
    near = d.alu("lmin", d.alu("lmax", field, (BIAS - 500) << FIELD), (BIAS + 500) << FIELD)
    y = d.mul(y, d.alu("lsub", 2 * BIAS << FIELD, near))
    rest = d.alu("ladd", d.alu("lsub", near, field), ONE)
    finite = d.flags("lsub", 2 * BIAS << FIELD, field)
    zero = d.flags("land", b, EXPONENT)
    result = d.mul(d.mul(a, y), d.keep(finite, rest))
    return d.normal(d.alu("lor", result, d.keep(zero, EXPONENT)))


def square_root(d: Doubles, x: Row) -> Result:
    """Return sqrt(x)."""
    magnitude = d.magnitude(x)
    bounded = d.alu("lmin", magnitude, LARGEST)
    start = d.alu("dmax", bounded, SMALLEST)
    y = d.alu("drsqrt", start)
    for _ in range(2):  # errors 2.75 %, 4e-5, 2e-13
        error = d.fma(neg(d.mul(start, y)), y, 1.0)
        y = d.fma(d.mul(y, error), d.fma(error, 0.375, 0.5), y)
    root = d.mul(bounded, y)
    root = d.fma(d.mul(root, 0.5), d.fma(neg(root), y, 1.0), root)
    infinite = d.flags("lxor", magnitude, EXPONENT)
    return d.alu("dmax", root, d.keep(infinite, EXPONENT))


# -- exp and log -----------------------------------------------------------------------------------

LOG2_E = 1.4426950408889634
# ln 2 in two parts: n times the first is exact for every exponent n.
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
# (e^r - 1) / r for |r| <= ln(2)/2, Taylor's series: 2^-56.
EXPM1 = tuple(1.0 / factorial(k + 1) for k in range(13))
# Below the lower bound exp is below the smallest number, above the upper one it is infinite.
LOWEST, HIGHEST = -709.0, 709.79
# artanh(s) / s as a series in s^2, for s up to 0.1716: 2^-55.
ARTANH = tuple(1.0 / (2 * k + 1) for k in range(10))
# 2 artanh(s/2) / s as a series in s^2, for s up to 2/3: 2^-55.
ARTANH_OF_HALF = tuple(0.25**k / (2 * k + 1) for k in range(16))
ROOT_HALF = 0x3FE6A09E667F3BCD  # sqrt(1/2)


def reduced(d: Doubles, x: Operand, low: Operand | None = None) -> tuple[Result, Result]:
    """Return ``n << 52`` and ``expm1(r)`` with x = n ln 2 + r; ``low`` is a small addition to x."""
    n = d.alu("dfloor", d.fma(x, LOG2_E, 0.5))
    r = d.fma(n, -LN2_LOW, d.fma(n, -LN2_HIGH, x))
    if low is not None:
        r = d.add(r, low)
    return d.alu("llsl", d.alu("dftoi", n), FIELD), d.mul(r, d.polynomial(r, EXPM1))


def exp_bits(d: Doubles, x: Operand, low: Operand | None = None, scale: int = 0) -> Result:
    """Return exp(x + low) times 2^scale, for results in range; its exponent field may be 0."""
    n, rest = reduced(d, x, low)
    if scale:
        n = d.alu("ladd", n, scale << FIELD)
    return d.alu("ladd", d.add(rest, 1.0), n)


def exponential(d: Doubles, x: Operand, low: Operand | None = None) -> Result:
    """Return exp(x + low) over the whole range."""
    return d.normal(exp_bits(d, d.alu("dmin", d.alu("dmax", x, LOWEST), HIGHEST), low))


def logarithm(d: Doubles, x: Row) -> Result:
    """Return log(x): 2 artanh(f / (2 + f)) of the fraction 1 + f, and the exponent's part."""
    above = d.alu("lsub", x, ROOT_HALF)
    exponent = d.of_small(d.alu("llsr", above, FIELD))
    f = d.sub(d.alu("lsub", x, d.alu("land", above, ~FRACTION)), 1.0)
    s = d.mul(f, reciprocal_of_moderate(d, d.add(f, 2.0)))
    tail = d.mul(d.add(s, s), d.polynomial(d.mul(s, s), ARTANH))
    result = d.fma(exponent, LN2_HIGH, d.fma(exponent, LN2_LOW, tail))
    zero, infinite = d.flags("land", x, EXPONENT), d.flags("lxor", x, EXPONENT)
    ends = d.alu("lor", d.keep(zero, SIGN | EXPONENT), d.keep(infinite, EXPONENT))
    return d.normal(d.alu("lor", result, ends))


def sigmoid(d: Doubles, x: Row) -> Result:
    """Return 1/(1+e), or e/(1+e) for negative x, with e = exp(-|x|)."""
    e = exp_bits(d, d.alu("dmax", d.alu("lor", x, SIGN), LOWEST))
    above = d.alu("dmax", e, d.alu("drelu", x, 1.0))
    return d.mul(above, reciprocal_of_moderate(d, d.add(e, 1.0)))


def silu(d: Doubles, x: Row) -> Result:
    """Return ``x e^x / (1 + e^x)``: with e^(x/2) twice, which leaves the range after the result."""
    half = d.alu("dmax", d.mul(d.alu("lor", x, SIGN), 0.5), LOWEST)
    e = d.normal(exp_bits(d, half))
    factor = d.alu("dmax", e, d.alu("drelu", x, 1.0))
    y = reciprocal_of_moderate(d, d.fma(e, e, 1.0))
    return d.mul(d.mul(d.mul(x, factor), y), factor)


def tanh(d: Doubles, x: Row) -> Result:
    """Return m/(m+2) with m = exp(2|x|) - 1; 2^n - 1 is exact where it matters."""
    n, rest = reduced(d, d.mul(d.alu("dmin", d.magnitude(x), 20.0), 2.0))
    power = d.alu("ladd", n, ONE)
    m = d.fma(rest, power, d.sub(power, 1.0))
    result = d.mul(m, reciprocal_of_moderate(d, d.add(m, 2.0)))
    return d.alu("lor", result, d.alu("land", x, SIGN))


def softplus(d: Doubles, x: Row) -> Result:
    """Return max(x, 0) + log(1 + e) with e = exp(-|x|)."""
    e = d.normal(exp_bits(d, d.alu("dmax", d.alu("lor", x, SIGN), LOWEST)))
    return d.add(log_of_one_more(d, e), d.alu("drelu", x, x))


def log_of_one_more(d: Doubles, e: Operand) -> Result:
    """Return log(1 + e) for e from 0 to 1: 2 artanh(s/2) with s = e / (1 + e/2)."""
    s = d.mul(e, reciprocal_of_moderate(d, d.fma(e, 0.5, 1.0)))
    return d.mul(s, d.polynomial(d.mul(s, s), ARTANH_OF_HALF))


# -- activations -----------------------------------------------------------------------------------


def minus_one(d: Doubles, x: Operand) -> Result:
    """Return exp(x) - 1 for x <= 0: if exp(x) = 2^n (1 + q), it is q 2^n + (2^n - 1)."""
    n, rest = reduced(d, d.alu("dmax", d.alu("dmin", x, 0.0), -50.0))
    power = d.alu("ladd", n, ONE)
    return d.fma(rest, power, d.sub(power, 1.0))


def exponential_unit(d: Doubles, x: Row, alpha: float) -> Result:
    """Return ``x`` above 0, ``alpha (exp(x) - 1)`` below."""
    return d.add(d.mul(minus_one(d, x), alpha), d.alu("drelu", x, x))


def scaled_unit(d: Doubles, x: Row, alpha: float, gamma: float) -> Result:
    """Return ``gamma x`` above 0, ``gamma alpha (exp(x) - 1)`` below."""
    return d.fma(d.alu("drelu", x, x), gamma, d.mul(minus_one(d, x), alpha * gamma))


def stretched_unit(d: Doubles, x: Row, alpha: float) -> Result:
    """Return ``x`` above 0, ``alpha (exp(x / alpha) - 1)`` below."""
    below = d.mul(minus_one(d, d.mul(d.alu("dmin", x, 0.0), 1 / alpha)), alpha)
    return d.add(below, d.alu("drelu", x, x))


def hard_sigmoid(d: Doubles, x: Row, alpha: float, beta: float) -> Result:
    """Return a line, cut at 0 and 1."""
    return d.normal(d.alu("dmin", d.alu("dmax", d.fma(x, alpha, beta), 0.0), 1.0))


def hard_swish(d: Doubles, x: Row) -> Result:
    """Return ``x`` times a line, cut at 0 and 1."""
    sixfold = d.alu("dmin", d.alu("dmax", d.add(x, 3.0), 0.0), 6.0)
    return d.mul(x, d.mul(sixfold, 1.0 / 6.0))


def round_to_even(d: Doubles, x: Row) -> Result:
    """Round to the nearest integer, ties to even; above 2^52 every double is an integer."""
    magnitude, large = d.magnitude(x), 2.0**FIELD
    near = d.sub(d.add(d.alu("dmin", magnitude, large), large), large)
    kept = d.keep(d.flags("dmax", magnitude, large), magnitude)
    return d.normal(d.alu("lor", d.alu("dmax", near, kept), d.alu("land", x, SIGN)))


def sign(d: Doubles, x: Row) -> Row:
    """Return -1, 0 or 1."""
    one = d.alu("lor", d.alu("land", x, SIGN), ONE)
    zero = d.p.mask(d.flags("land", x, EXPONENT))
    return d.alu("land", one, d.alu("lnot", zero))


def of_one(function: object) -> Build:
    """Return the program of a function of one double."""
    assert callable(function)

    def build(p: Program, call: Call) -> Row:
        found: Row = function(Doubles(p), call.inputs[0])
        return found

    return build
